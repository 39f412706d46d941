//! Ruby 3.1: `ruby:method__entry` and `ruby:method__return`.

use crate::common::{Lab, events_named, need_tool, run, test};

/// Ruby passes its methods to the probes only while something else traces them, too.
const SCRIPT: &str = r#"class Greeter
  def greet(name)
    "hello #{name}"
  end
end
TracePoint.new(:call, :return) {}.enable
greeter = Greeter.new
7.times { greeter.greet("world") }
"#;

#[test]
fn method_entry_and_return() {
    let lab = Lab::privileged();
    need_tool("ruby3.1");
    std::fs::write(lab.file("script.rb"), SCRIPT).expect("a file");
    let library = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1";
    lab.usdtrec(["buildid-cache", "--add", library]).success();
    let mut record = lab.command([
        "record",
        "-o",
        "trace",
        "-e",
        "sdt_ruby:method__entry,ruby:method__return",
    ]);
    record.args(["--", "ruby3.1", "--disable-gems", "script.rb"]);
    run(record).success();
    let events = lab.events("trace");
    let (entries, returns) = (
        events_named(&events, "method__entry"),
        events_named(&events, "method__return"),
    );
    assert_eq!((entries.len(), returns.len()), (7, 7));
    for (entry, back) in entries.iter().zip(&returns) {
        assert!(entry.time_ns < back.time_ns);
        assert_eq!(entry.integer(4), 3, "the line that the method begins with");
        for event in [entry, back] {
            assert_eq!((event.string(1), event.string(2)), ("Greeter", "greet"));
            assert_eq!(event.string(3), "script.rb");
        }
    }
}
