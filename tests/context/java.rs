//! Contended monitors of OpenJDK 17: who held the monitor while others waited.

use serde_json::Value;

use crate::common::{Lab, need_tool, run, test};

/// The virtual machine's library, where Debian keeps it.
const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";

/// The class of the monitor: the virtual machine's own monitors fire the probes, too.
const CLASS: &str = "Turns$Turn";

/// A thread of its own has the monitor each time until another one has waited for it for 10 ms; that one says when it has it.
const PROGRAM: &str = r#"
import java.util.concurrent.CountDownLatch;

public class Turns {
    static final class Turn { }
    static final Turn monitor = new Turn();

    static void turn() {
        synchronized (monitor) {
            System.out.println("waiter");
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int round = 0; round < 20; round++) {
            CountDownLatch held = new CountDownLatch(1);
            CountDownLatch free = new CountDownLatch(1);
            Thread owner = new Thread(() -> {
                synchronized (monitor) {
                    held.countDown();
                    try { free.await(); } catch (InterruptedException e) { }
                }
            }, "owner");
            owner.start();
            held.await();
            Thread waiter = new Thread(Turns::turn, "waiter");
            waiter.start();
            while (waiter.getState() != Thread.State.BLOCKED) Thread.sleep(1);
            Thread.sleep(10);
            free.countDown();
            owner.join();
            waiter.join();
        }
    }
}
"#;

/// The holder of each wait is the owner, not the waiter of the round before, which left the monitor when nobody waited, so that no probe fired.
#[test]
fn who_held_the_monitor() {
    let lab = Lab::privileged();
    need_tool("javac");
    need_tool(LIBRARY);
    std::fs::write(lab.file("Turns.java"), PROGRAM).expect("a file");
    run(lab.at_home("javac".as_ref(), ["Turns.java"])).success();
    lab.usdtrec(["buildid-cache", "--add", LIBRARY]).success();
    let mut record = lab.command(["record", "-m", "64M", "-o", "trace"]);
    record.args(["-e", "hotspot:monitor__contended__*", "--"]);
    record.args(["java", "-XX:+DTraceMonitorProbes", "Turns"]);
    let recorded = run(record).success().complains(" 0 lost");
    let turns = recorded.stdout.lines().filter(|line| *line == "waiter");
    assert_eq!(turns.count(), 20);
    let script = ["script", "-i", "trace", "--holders", "--format", "json"];
    let printed = lab.usdtrec(script).success().stdout;
    let events = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let events: Vec<Value> = events.collect();
    let of_waiters = events.iter().filter(|event| {
        event["event"] == "sdt_hotspot:monitor__contended__entered"
            && event["args"]["class_name"] == CLASS
    });
    let mut known = 0;
    let mut unknown = 0;
    for event in of_waiters {
        let args = &event["args"];
        // The virtual machine wakes the waiter first, and says that the owner has left the monitor then.
        if event["missing"]["holder.comm"] == "holder not known" {
            assert!(args["holder.comm"].is_null(), "{event}");
            unknown += 1;
            continue;
        }
        known += 1;
        assert_eq!(args["holder.comm"], "owner", "{event}");
        assert_ne!(args["holder.tid"], event["tid"]);
        let blocked = args["holder.blocked"].as_u64().expect("a time");
        assert!(blocked > 5_000_000, "{event}");
        // It entered the monitor when that was free, which fires no probe.
        assert!(args["holder.held"].is_null(), "{event}");
        assert_eq!(event["missing"]["holder.held"], "begin not known");
    }
    assert_eq!(known + unknown, 20);
    assert!(known >= 10, "{known} holders are known");
    let report = [
        "report",
        "-i",
        "trace",
        "--span",
        "hotspot:monitor__contended",
        "--holders",
        "--by",
        "holder.comm",
        "--by",
        "class_name",
    ];
    let printed = lab.usdtrec(report).success().stdout;
    let words: Vec<&str> = printed.split_whitespace().collect();
    let mut rows = words.windows(3).filter(|row| row[..2] == ["owner", CLASS]);
    let count = rows.next().map(|row| row[2]);
    assert_eq!(count, Some(known.to_string().as_str()), "{printed}");
}
