//! OpenJDK 17: `hotspot:*`.

use std::collections::HashSet;

use crate::common::{Event, Lab, events_named, need_tool, run, test};

const PROGRAM: &str = r#"
public class Churn {
    static int work(int i) { return i * 3; }
    public static void main(String[] arguments) throws Exception {
        int sum = 0;
        for (int i = 0; i < 10; i++) sum += work(i);
        for (int i = 0; i < 3; i++) System.gc();
        Thread thread = new Thread(() -> {}, "churner");
        thread.start();
        thread.join();
        System.out.println(sum);
    }
}
"#;

/// The virtual machine's library, where Debian keeps it.
const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";

/// Compiles the program and records the virtual machine while it runs it; the events, and what was printed.
#[track_caller]
fn record(lab: &Lab, event: &str, options: &[&str]) -> (Vec<Event>, String) {
    need_tool("javac");
    need_tool(LIBRARY);
    std::fs::write(lab.file("Churn.java"), PROGRAM).expect("a file");
    run(lab.at_home("javac".as_ref(), ["Churn.java"])).success();
    lab.usdtrec(["buildid-cache", "--add", LIBRARY]).success();
    let mut record = lab.command(["record", "-m", "1G", "-o", "trace"]);
    record.args(["-e", event, "--"]);
    record.args(["java", "-XX:+ExtendedDTraceProbes", "-XX:+UseSerialGC"]);
    record.args(options);
    record.args(["-Xlog:class+load:file=loaded", "Churn"]);
    let recorded = run(record).success();
    assert!(recorded.stdout.contains("135\n"), "{}", recorded.stdout);
    let printed = recorded.complains(" 0 lost").stdout;
    (lab.events("trace"), printed)
}

/// A class's name, which the virtual machine writes in several ways.
fn plain(name: &str) -> String {
    name.replace(['/', '+'], ".")
}

/// Classes, garbage collections and threads, as the virtual machine itself logs them.
#[test]
fn classes_collections_threads() {
    let lab = Lab::privileged();
    let (events, _) = record(&lab, "sdt_hotspot:*", &["-Xint"]);
    let loaded = std::fs::read_to_string(lab.file("loaded")).expect("the log");
    // `[0.010s][info][class,load] java.lang.Object source: …`
    let mut names: Vec<String> = loaded
        .lines()
        .filter_map(|line| line.split("] ").last()?.split(' ').next())
        .map(plain)
        .collect();
    let classes = events_named(&events, "class__loaded").into_iter();
    let mut classes: Vec<String> = classes
        .inspect(|event| assert_eq!(event.integer(2), event.string(1).len() as i128))
        .map(|event| plain(event.string(1)))
        .collect();
    names.sort_unstable();
    classes.sort_unstable();
    assert!(names.iter().any(|name| name == "Churn"));
    assert_eq!(classes, names, "classes loaded");
    let (begin, end) = (
        events_named(&events, "gc__begin"),
        events_named(&events, "gc__end"),
    );
    assert_eq!((begin.len(), end.len()), (3, 3));
    assert!(
        begin.iter().all(|event| event.integer(1) == 1),
        "System.gc() collects everything"
    );
    let calls = events_named(&events, "method__entry")
        .iter()
        .filter(|event| (event.string(2), event.string(4)) == ("Churn", "work"))
        .count();
    assert_eq!(calls, 10, "Churn.work was called ten times");
    assert!(
        events_named(&events, "thread__start")
            .iter()
            .any(|event| event.string(1) == "churner"),
        "the thread `churner`"
    );
}

/// The methods that the virtual machine says it compiles are those of the probe, by name.
#[test]
fn compiled_methods() {
    let lab = Lab::privileged();
    // Work that waits: what is compiled when the program ends is in both.
    let options = [
        "-Xcomp",
        "-Xbatch",
        "-XX:TieredStopAtLevel=1",
        "-XX:+PrintCompilation",
    ];
    let (events, printed) = record(&lab, "sdt_hotspot:method__compile__begin", &options);
    let compiled: HashSet<String> = printed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.contains("::")))
        .map(plain)
        .collect();
    let names = events.iter().map(|event| {
        let text = |name: &str| event.named(name).as_str().expect("a text").to_owned();
        assert_eq!(text("compiler"), "C1");
        format!("{}::{}", plain(&text("class_name")), text("method_name"))
    });
    let names: HashSet<String> = names.collect();
    assert!(
        names.len() > 100 && names.contains("Churn::main"),
        "{}",
        names.len()
    );
    for name in &names {
        assert!(compiled.contains(name), "{name}");
    }
}
