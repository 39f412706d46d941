//! OpenJDK 17: `hotspot:*`.

use crate::common::{Event, Lab, need_tool, run};

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

/// Compiles the program and records the virtual machine while it runs it, interpreted.
#[track_caller]
fn record(lab: &Lab, event: &str) -> Option<Vec<Event>> {
    if !need_tool("javac") || !need_tool(LIBRARY) {
        return None;
    }
    std::fs::write(lab.file("Churn.java"), PROGRAM).expect("a file");
    run(lab.at_home("javac".as_ref(), ["Churn.java"])).success();
    lab.usdtrec(["buildid-cache", "--add", LIBRARY]).success();
    let mut record = lab.command(["record", "-m", "64M", "-o", "trace", "-e", event, "--"]);
    record.args([
        "java",
        "-XX:+ExtendedDTraceProbes",
        "-Xint",
        "-XX:+UseSerialGC",
    ]);
    record.args(["-Xlog:class+load:file=loaded", "Churn"]);
    let recorded = run(record).success();
    assert_eq!(recorded.stdout, "135\n");
    recorded.complains(" 0 lost");
    Some(lab.events("trace"))
}

/// Classes, garbage collections and threads, as the virtual machine itself logs them.
#[test]
fn classes_collections_threads() {
    let Some(lab) = Lab::privileged() else { return };
    let Some(events) = record(&lab, "sdt_hotspot:*") else {
        return;
    };
    let of = |name: &str| -> Vec<&Event> {
        events.iter().filter(|event| event.name() == name).collect()
    };
    let loaded = std::fs::read_to_string(lab.file("loaded")).expect("the log");
    // `[0.010s][info][class,load] java.lang.Object source: …`
    let names: Vec<usize> = loaded
        .lines()
        .map(|line| {
            line.split("] ")
                .last()
                .and_then(|rest| rest.split(' ').next())
                .map_or(0, str::len)
        })
        .collect();
    let classes = of("class__loaded");
    assert_eq!(classes.len(), names.len(), "classes loaded");
    let lengths: Vec<usize> = classes
        .iter()
        .map(|event| usize::try_from(event.integer(2)).expect("a length"))
        .collect();
    let total = |lengths: &[usize]| lengths.iter().sum::<usize>();
    assert_eq!(total(&lengths), total(&names), "bytes of names");
    let (begin, end) = (of("gc__begin"), of("gc__end"));
    assert_eq!((begin.len(), end.len()), (3, 3));
    assert!(
        begin.iter().all(|event| event.integer(1) == 1),
        "System.gc() collects everything"
    );
    let calls = of("method__entry")
        .iter()
        .filter(|event| event.integer(3) == 5 && event.integer(5) == 4)
        .count();
    assert!(
        calls >= 10,
        "Churn.work was called ten times: {calls} calls with names of that length"
    );
    assert!(
        of("thread__start")
            .iter()
            .any(|event| event.integer(2) == 7),
        "the thread `churner`"
    );
}
