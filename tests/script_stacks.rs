//! Stacks of the functions of scripts, by their calls and returns: PHP, Ruby and Python say themselves which functions each call was in.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::callers::folded_lines;
use crate::common::{Lab, Process, need_tool, run, test};

/// Each prints the functions that it is in, from the outermost one on, with `;` between, whenever `leaf` is called.
const PHP: &str = r#"<?php
class Greeter {
    static function make() { leaf(); return new Greeter; }
    function greet($n) { leaf(); return $n == 0 ? 0 : $this->greet($n - 1); }
}
function leaf() {
    $frames = array_reverse(debug_backtrace());
    $name = fn($frame) => isset($frame["class"]) ? $frame["class"] . "::" . $frame["function"] : $frame["function"];
    echo "main;" . implode(";", array_map($name, $frames)) . "\n";
}
function thrower($n) { if ($n == 0) throw new Exception("left"); thrower($n - 1); }
function catcher() {
    try { thrower(3); } catch (Exception $e) { leaf(); }
    leaf();
}
for ($i = 0; $i < 4; $i++) { Greeter::make()->greet(3); catcher(); }
leaf();
"#;
const RUBY: &str = r#"
def leaf
  names = caller_locations(0).map { |at| at.label.delete_prefix("rescue in ").delete_prefix("block in ") }
  puts names.reverse.chunk_while { |a, b| a == b && a != "down" }.map(&:first).join(";")
end
def down(n) = n == 0 ? leaf : down(n - 1)
def thrower(n) = n == 0 ? raise("left") : thrower(n - 1)
def catcher
  begin
    thrower(3)
  rescue RuntimeError
    leaf
  end
  leaf
end
TracePoint.new(:call, :return) {}.enable
4.times { down(3); catcher }
leaf
"#;
const PYTHON: &str = r#"
import sys, threading
lock = threading.Lock()
def leaf():
    frame, names = sys._getframe(), []
    while frame:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    names = names[::-1]
    # What is below the first function was called before anything told of calls.
    names = names[names.index("begin"):]
    with lock:
        print(";".join(names))
def down(n):
    leaf() if n == 0 else down(n - 1)
def thrower(n):
    if n == 0:
        raise ValueError
    thrower(n - 1)
def catcher():
    try:
        thrower(3)
    except ValueError:
        leaf()
    leaf()
def numbers():
    leaf()
    yield 1
    leaf()
def begin():
    for i in range(4):
        down(3)
        catcher()
        list(numbers())
# Python 3.11 tells of calls only while something else does, too; this one is no function of Python.
threading.setprofile(slice)
threads = [threading.Thread(target=begin) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"#;

/// A language whose functions have probes.
struct Language {
    tool: &'static str,
    /// The file with the probes.
    binary: &'static str,
    arguments: &'static [&'static str],
    script: &'static str,
    events: &'static str,
    /// The event at which functions are called, and the span.
    entry: &'static str,
    span: &'static str,
    /// What stands before a function of no class.
    prefix: &'static str,
}

impl Language {
    /// Records the program, and gives how often `leaf` was called on each path, as the program says.
    #[track_caller]
    fn record(&self, lab: &Lab) -> BTreeMap<String, u64> {
        need_tool(self.tool);
        need_tool(self.binary);
        std::fs::write(lab.file("script"), self.script).expect("a file");
        lab.usdtrec(["buildid-cache", "--add", self.binary])
            .success();
        let event = format!("{}@{}", self.events, self.binary);
        let mut record = lab.command(["record", "-m", "32M", "-o", "trace", "-e", &event, "--"]);
        record.arg(self.tool).args(self.arguments).arg("script");
        record.env("USE_ZEND_DTRACE", "1");
        let said = run(record).success().complains(" 0 lost").stdout;
        let mut paths = BTreeMap::new();
        for path in said.lines() {
            *paths.entry(path.to_owned()).or_insert(0) += 1;
        }
        assert!(paths.len() > 2, "{said}");
        paths
    }

    /// The stacks of the calls of `leaf`, in the program's words.
    #[track_caller]
    fn leaves(&self, lab: &Lab) -> BTreeMap<String, u64> {
        let folded = folded_lines(lab, &["-e", self.entry]);
        let mut leaves = BTreeMap::new();
        for (stack, hits) in folded {
            let names = stack.split(';').map(|name| {
                let name = name.strip_suffix(" (script)").expect("the file");
                name.strip_prefix(self.prefix).unwrap_or(name)
            });
            let names: Vec<&str> = names.collect();
            if names.last() == Some(&"leaf") {
                leaves.insert(names.join(";"), hits);
            }
        }
        leaves
    }

    /// The time in all functions and in no function within them is the time in the outermost ones.
    #[track_caller]
    fn times(&self, lab: &Lab) {
        let folded = folded_lines(lab, &["--span", self.span]);
        let sum: u64 = folded.values().sum();
        assert_eq!(sum, outermost(lab, self.entry));
        // Each function that waits for the one that it calls has more time in its stack than in itself.
        assert!(folded.keys().any(|stack| stack.contains(';')));
    }
}

/// The time in which each thread was in a function, ns: from its first call to the return that leaves no function.
fn outermost(lab: &Lab, entry: &str) -> u64 {
    let json = lab.usdtrec(["script", "-i", "trace", "--format", "json"]);
    let mut open: BTreeMap<i64, Vec<(String, u64)>> = BTreeMap::new();
    let mut sum = 0;
    for line in json.success().stdout.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let time = event["time_ns"].as_u64().expect("a time");
        let args = &event["args"];
        let name = [&args["classname"], &args["funcname"], &args["methodname"]];
        let name = format!("{name:?}");
        let stack = open.entry(event["tid"].as_i64().expect("a thread"));
        let stack = stack.or_default();
        if event["event"] == format!("sdt_{entry}") {
            stack.push((name, time));
        } else if let Some(at) = stack.iter().rposition(|(known, _)| *known == name) {
            if at == 0 {
                sum += time - stack[0].1;
            }
            stack.truncate(at);
        }
    }
    sum
}

const PHP_LANGUAGE: Language = Language {
    tool: "/usr/bin/php8.2",
    binary: "/usr/bin/php8.2",
    arguments: &[],
    script: PHP,
    events: "php:function__*",
    entry: "php:function__entry",
    span: "function",
    prefix: "",
};

#[test]
fn php_functions_are_where_the_program_says() {
    let lab = Lab::privileged();
    let said = PHP_LANGUAGE.record(&lab);
    assert_eq!(PHP_LANGUAGE.leaves(&lab), said);
    PHP_LANGUAGE.times(&lab);
}

#[test]
fn ruby_methods_are_where_the_program_says() {
    let lab = Lab::privileged();
    let ruby = Language {
        tool: "ruby3.1",
        binary: "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1",
        arguments: &["--disable-gems"],
        script: RUBY,
        events: "ruby:method__*",
        entry: "ruby:method__entry",
        span: "method",
        prefix: "Object#",
    };
    let said = ruby.record(&lab);
    // Without methods written in C, which have probes of their own.
    let mut expected = BTreeMap::new();
    for (path, hits) in said {
        let names = path.split(';');
        let names = names.filter(|name| !["<main>", "times"].contains(name));
        *expected
            .entry(names.collect::<Vec<_>>().join(";"))
            .or_insert(0) += hits;
    }
    assert_eq!(ruby.leaves(&lab), expected);
    ruby.times(&lab);
}

#[test]
fn python_functions_are_where_the_program_says_in_each_thread() {
    let lab = Lab::privileged();
    let python = Language {
        tool: "/usr/bin/python3.11",
        binary: "/usr/bin/python3.11",
        arguments: &["-I", "-S"],
        script: PYTHON,
        events: "python:function__*",
        entry: "python:function__entry",
        span: "function",
        prefix: "",
    };
    let said = python.record(&lab);
    // Threads call `begin` by functions of the library, which are in other files.
    let folded = folded_lines(&lab, &["-e", "python:function__entry"]);
    let mut leaves = BTreeMap::new();
    for (stack, hits) in folded {
        let names: Vec<&str> = stack
            .split(';')
            .skip_while(|name| *name != "begin (script)")
            .map(|name| name.strip_suffix(" (script)").expect("the file"))
            .collect();
        if names.last() == Some(&"leaf") {
            *leaves.entry(names.join(";")).or_insert(0) += hits;
        }
    }
    assert_eq!(leaves, said);
    python.times(&lab);
}

/// `script` prints the functions at each event, in text and in JSON, as many as are asked for.
#[test]
fn script_prints_the_functions_at_each_event() {
    let lab = Lab::privileged();
    let said = PHP_LANGUAGE.record(&lab);
    let script = |options: &[&str]| {
        let mut command = lab.command(["script", "-i", "trace", "--stacks", "script"]);
        command.args(options);
        run(command).success().stdout
    };
    let names = |frame: &Value| frame["sym"].as_str().expect("a name").to_owned();
    let mut leaves = BTreeMap::new();
    for line in script(&["-e", "php:function__entry", "--format", "json"]).lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let frames = event["stack"].as_array().expect("a stack");
        let mut path: Vec<String> = frames.iter().map(names).collect();
        assert_eq!(
            path[0].rsplit("::").next(),
            event["args"]["funcname"].as_str()
        );
        path.reverse();
        if path.last().is_some_and(|name| name == "leaf") {
            *leaves.entry(path.join(";")).or_insert(0) += 1;
        }
    }
    assert_eq!(leaves, said);
    let text = script(&[]);
    let file = lab.file("script");
    let frame = format!("\t                 Greeter::greet ({})\n", file.display());
    assert!(text.contains(&frame), "{text}");
    let with = script(&["-F", "+span"]);
    assert_eq!(with.matches(&frame).count(), text.matches(&frame).count());
    let one = script(&["-e", "php:function__entry", "--max-stack", "1"]);
    let entries: u64 = folded_lines(&lab, &["-e", "php:function__entry"])
        .values()
        .sum();
    assert_eq!(one.matches("\n\t").count() as u64, entries);
}

/// The caller of a function, and the stacks of events that are no calls; all the same with any number of threads.
#[test]
fn answers_are_the_same_with_any_number_of_threads() {
    let lab = Lab::privileged();
    let said = PHP_LANGUAGE.record(&lab);
    let report = |options: &[&str], threads: &str| {
        let mut command = lab.command(["report", "-i", "trace"]);
        command.args(options).env("RAYON_NUM_THREADS", threads);
        run(command).success().stdout
    };
    for options in [
        &["-g", "caller,0"][..],
        &["-g", "callee,0", "--stacks", "script"],
        &["-g", "callee,0", "--span", "function"],
        &["--sort", "stack:script", "--format", "json"],
        &["--sort", "funcname,caller", "--format", "csv"],
        &["--span", "function", "--by", "caller:script"],
        &["--rate", "1ms", "--by", "caller", "--format", "json"],
    ] {
        let one = report(options, "1");
        assert!(!one.is_empty());
        assert!(
            report(options, "2") == one && report(options, "7") == one,
            "{options:?}"
        );
    }
    let callers = report(
        &[
            "--sort",
            "caller",
            "--format",
            "json",
            "-e",
            "php:function__entry",
            "--filter",
            "funcname == \"leaf\"",
        ],
        "2",
    );
    let mut of_leaf = BTreeMap::new();
    for line in callers.lines() {
        let group: Value = serde_json::from_str(line).expect("JSON");
        let caller = &group["caller"];
        let name = caller.as_str().expect("a name").to_owned();
        let samples = group["samples"].as_u64().expect("a number");
        *of_leaf.entry(name).or_insert(0) += samples;
    }
    let mut expected = BTreeMap::new();
    for (path, hits) in said {
        let caller = path.rsplit(';').nth(1).expect("a caller");
        *expected.entry(format!("{caller} (script)")).or_insert(0) += hits;
    }
    assert_eq!(of_leaf, expected);
}

/// Returns of functions that were called before the recording are said, and lack their functions only.
#[test]
fn calls_before_the_recording_are_not_known() {
    let lab = Lab::privileged();
    need_tool("ruby3.1");
    let script = "def waits\n puts :in\n $stdout.flush\n gets\n inner\nend\n\
        def inner = 1\n\
        def after = inner\n\
        def all\n waits\n after\nend\n\
        TracePoint.new(:call, :return) {}.enable\n\
        all\n";
    std::fs::write(lab.file("script"), script).expect("a file");
    let library = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1";
    lab.usdtrec(["buildid-cache", "--add", library]).success();
    let mut ruby = Command::new("ruby3.1");
    ruby.arg("--disable-gems").arg(lab.file("script"));
    let mut ruby = Process::spawn(ruby);
    assert_eq!(ruby.line().as_deref(), Some("in"));
    let mut record = lab.command(["record", "-o", "trace", "-e", "ruby:method__*"]);
    record.args(["-p", &ruby.pid().to_string()]);
    let mut record = Process::spawn(record);
    record.until_error_line("probes at");
    ruby.say("go");
    ruby.finish().success();
    record.finish().success();
    let tree = lab.usdtrec(["report", "-i", "trace", "-g", "-e", "ruby:method__entry"]);
    let tree = tree.success().stdout;
    assert!(
        tree.contains("# 2 returns of functions that were called before the beginning"),
        "{tree}"
    );
    let folded = folded_lines(&lab, &["-e", "ruby:method__entry"]);
    let expected = [
        ("Object#after (script)", 1),
        ("Object#after (script);Object#inner (script)", 1),
        ("Object#inner (script)", 1),
    ];
    assert_eq!(
        folded,
        expected
            .map(|(stack, hits)| (stack.to_owned(), hits))
            .into()
    );
}

/// Where no functions are called, the answer says what to record; where an option has no effect, too.
#[test]
fn refusals() {
    let lab = Lab::new();
    let demo = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    for (options, expected) in [
        (
            &["-g", "--stacks", "script"][..],
            "stack:script needs the calls and returns of the script's functions",
        ),
        (&["--sort", "caller:script"], "php:function__*"),
    ] {
        let mut report = lab.command(["report", "-i"]);
        report.arg(&demo).args(options);
        let said = run(report).exits(1).stderr;
        assert!(said.contains(expected), "{said}");
    }
    for more in [&[][..], &["--sort", "comm"]] {
        lab.usdtrec([&["report", "--stacks", "script"], more].concat())
            .exits(2)
            .complains("--stacks <KIND>");
    }
}
