//! Functions that call themselves, in Ruby, PHP and Python, and what a Java virtual machine does beside the program.

use std::collections::BTreeMap;
use std::path::Path;

use super::walk::{Asked, ask, list, number};
use crate::common::{Event, Lab, need_tool, run, test};

/// Each prints how often the function was called, how deep it went, and how long the outermost call took, ns.
const RUBY: &str = r#"
$calls = $depth = $deepest = 0
def fib(n)
  $calls += 1
  $depth += 1
  $deepest = $depth if $depth > $deepest
  sum = n < 2 ? n : fib(n - 1) + fib(n - 2)
  $depth -= 1
  sum
end
# Ruby passes its methods to the probes only while something else traces them, too.
TracePoint.new(:call, :return) {}.enable
from = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
fib(12)
took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - from
puts [$calls, $deepest, took].join(" ")
"#;
const PHP: &str = r#"<?php
$calls = $depth = $deepest = 0;
function fib($n) {
    global $calls, $depth, $deepest;
    $calls++;
    $depth++;
    if ($depth > $deepest) $deepest = $depth;
    $sum = $n < 2 ? $n : fib($n - 1) + fib($n - 2);
    $depth--;
    return $sum;
}
$from = hrtime(true);
fib(12);
$took = hrtime(true) - $from;
echo "$calls $deepest $took\n";
"#;
const PYTHON: &str = r#"
import sys, time
calls = depth = deepest = 0
def fib(n):
    global calls, depth, deepest
    calls += 1
    depth += 1
    deepest = max(depth, deepest)
    total = n if n < 2 else fib(n - 1) + fib(n - 2)
    depth -= 1
    return total
# Python 3.11 tells of beginnings only while something else does, too; this one is no function of Python.
sys.setprofile(slice)
begin = time.monotonic_ns()
fib(12)
took = time.monotonic_ns() - begin
sys.setprofile(None)
print(calls, deepest, took)
"#;

/// A language whose functions have probes.
struct Language {
    tool: &'static str,
    /// The file with the probes.
    binary: &'static str,
    arguments: &'static [&'static str],
    script: &'static str,
    events: &'static str,
    span: &'static str,
    /// What begin and end have in common beside the thread.
    agreed: &'static [&'static str],
    asked: Asked<'static>,
}

impl Language {
    /// Records the program, and holds the spans of its function against what it says of them itself.
    #[track_caller]
    fn judge(&self) {
        let lab = Lab::privileged();
        need_tool(self.tool);
        need_tool(self.binary);
        std::fs::write(lab.file("fib"), self.script).expect("a file");
        lab.usdtrec(["buildid-cache", "--add", self.binary])
            .success();
        let event = format!("{}@{}", self.events, self.binary);
        let mut record = lab.command(["record", "-m", "32M", "-o", "trace", "-e", &event, "--"]);
        record.arg(self.tool).args(self.arguments).arg("fib");
        let recorded = run(record_with_php(record)).success().complains(" 0 lost");
        let said: Vec<u64> = recorded
            .stdout
            .split_whitespace()
            .map(|number| number.parse().expect("a number"))
            .collect();
        let &[calls, deepest, took] = &*said else {
            panic!("{said:?}")
        };
        let walk = self.asked.compare(&lab, self.span, &[]);
        let agreed = ask(&lab, &["--span", self.span])["spans"][0]["agreed"].clone();
        assert_eq!(agreed, serde_json::json!(self.agreed));
        let spans = &walk.groups["[\"fib\"]"];
        assert_eq!(spans.len() as u64, calls);
        // The outermost call is the last to return, and the longest.
        assert_eq!(spans.iter().max(), spans.last());
        assert!(spans.iter().max() <= Some(&took), "{took} ns: {spans:?}");
        let fib = |event: &Event| event.named(self.asked.by[0]) == "fib";
        let events = lab.events("trace").into_iter().filter(fib);
        let alone = self.asked.walk(&events.collect::<Vec<_>>());
        assert_eq!(
            (alone.depth as u64, alone.open, alone.unmatched),
            (deepest, 0, 0)
        );
        // Each level lasts at most as long as the one around it.
        let total: u64 = spans.iter().sum();
        assert!(
            total <= took * deepest,
            "{total} ns in {took} ns, {deepest} deep"
        );
        let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
        // It is folded.
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = format!("{} {} deep", self.span, walk.depth);
        assert!(report.contains(&told), "{report}");
    }
}

/// PHP looks whether it is to have probes.
fn record_with_php(mut record: std::process::Command) -> std::process::Command {
    record.env("USE_ZEND_DTRACE", "1");
    record
}

#[test]
fn ruby_functions() {
    Language {
        tool: "ruby3.1",
        binary: "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1",
        arguments: &["--disable-gems"],
        script: RUBY,
        events: "ruby:method__*",
        span: "method",
        agreed: &["classname", "methodname", "filename"],
        asked: Asked {
            starts: &["method__entry"],
            dones: &["method__return"],
            key: None,
            by: &["methodname"],
        },
    }
    .judge();
}

#[test]
fn php_functions() {
    Language {
        tool: "/usr/bin/php8.2",
        binary: "/usr/bin/php8.2",
        arguments: &[],
        script: PHP,
        events: "php:function__*",
        span: "function",
        agreed: &["funcname", "filename", "classname", "scope"],
        asked: Asked {
            starts: &["function__entry"],
            dones: &["function__return"],
            key: None,
            by: &["funcname"],
        },
    }
    .judge();
}

#[test]
fn python_functions() {
    Language {
        tool: "/usr/bin/python3.11",
        binary: "/usr/bin/python3.11",
        arguments: &["-I", "-S"],
        script: PYTHON,
        events: "python:function__*",
        span: "function",
        agreed: &["filename", "funcname"],
        asked: Asked {
            starts: &["function__entry"],
            dones: &["function__return"],
            key: None,
            by: &["funcname"],
        },
    }
    .judge();
}

const JAVA: &str = r#"
public class Churn {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] arguments) throws Exception {
        int sum = 0;
        for (int i = 0; i < 100; i++) sum += fib(12);
        for (int i = 0; i < 3; i++) System.gc();
        System.out.println(sum);
    }
}
"#;
const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";

/// Collections last as long as the virtual machine's own log says; compilations and pools are matched one by one.
#[test]
fn collections_and_compilations_of_java() {
    let lab = Lab::privileged();
    need_tool("javac");
    need_tool(LIBRARY);
    std::fs::write(lab.file("Churn.java"), JAVA).expect("a file");
    run(lab.at_home(Path::new("javac"), ["Churn.java"])).success();
    lab.usdtrec(["buildid-cache", "--add", LIBRARY]).success();
    let events = [
        "gc__*",
        "mem__pool__gc__*",
        "method__compile__*",
        "class__initialization__*",
    ];
    let mut record = lab.command(["record", "-m", "64M", "-o", "trace"]);
    for event in events {
        record.args(["-e", &format!("hotspot:{event}")]);
    }
    record.args([
        "--",
        "java",
        "-XX:+ExtendedDTraceProbes",
        "-XX:+UseSerialGC",
    ]);
    record.args(["-Xlog:gc:file=log", "Churn"]);
    let recorded = run(record).success().complains(" 0 lost");
    assert_eq!(recorded.stdout, "14400\n");

    let asked = |starts, dones, key, by| Asked {
        starts,
        dones,
        key,
        by,
    };
    let gc = asked(&["gc__begin"], &["gc__end"], None, &[]);
    let walk = gc.compare(&lab, "gc", &[]);
    let pauses = pauses(&std::fs::read_to_string(lab.file("log")).expect("the log"));
    let collections = &walk.groups["[]"];
    assert_eq!((collections.len(), pauses.len()), (3, 3));
    for (span, pause) in collections.iter().zip(pauses) {
        // The log has three digits of a millisecond, and its pause is within the probes.
        assert!(span + 1000 >= pause, "{span} ns, not {pause}");
    }
    // What begins first does not end last: spans are matched by their names by default.
    let pools = asked(
        &["mem__pool__gc__begin"],
        &["mem__pool__gc__end"],
        Some("pool"),
        &["pool"],
    );
    let walk = pools.compare(&lab, "mem__pool__gc", &[]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 1));
    assert!(walk.groups.len() > 4, "{:?}", walk.groups.keys());
    assert!(walk.groups.values().all(|pool| pool.len() == 3));

    let compile = asked(
        &["method__compile__begin"],
        &["method__compile__end"],
        None,
        &["compiler", "method_name"],
    );
    let walk = compile.compare(&lab, "method__compile", &[]);
    assert_eq!(walk.unmatched, 0);
    let compilers = ask(&lab, &["--span", "method__compile", "--by", "compiler"]);
    let compilers: BTreeMap<String, u64> = list(&compilers["spans"][0], "groups")
        .iter()
        .map(|group| (group["compiler"].to_string(), number(group, "count")))
        .collect();
    let all: usize = walk.groups.values().map(Vec::len).sum();
    assert_eq!(compilers.values().sum::<u64>(), all as u64);
    assert!(compilers["\"C1\""] > 0);

    let classes = asked(
        &["class__initialization__required"],
        &[
            "class__initialization__end",
            "class__initialization__recursive",
            "class__initialization__concurrent",
            "class__initialization__erroneous",
            "class__initialization__super__failed",
            "class__initialization__error",
        ],
        None,
        &["class_name"],
    );
    let walk = classes.compare(&lab, "class__initialization", &[]);
    assert_eq!((walk.open, walk.unmatched), (0, 0));
    assert!(walk.groups.contains_key("[\"Churn\"]"));
}

/// `[0.474s][info][gc] GC(0) Pause Full (System.gc()) 6M->0M(365M) 1.448ms`, in ns.
fn pauses(log: &str) -> Vec<u64> {
    let pauses = log.lines().filter(|line| line.contains(" Pause "));
    pauses
        .map(|line| {
            let last = line.rsplit(' ').next().expect("a word");
            let number = last.strip_suffix("ms").expect("milliseconds");
            let number: f64 = number.parse().expect("a number");
            (number * 1e6).round() as u64
        })
        .collect()
}
