//! Python 3.11: the probes of the interpreter, against what the program logged of itself with Python's own hooks. Python 3.13: its functions as
//! callers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::callers::folded_lines;
use crate::common::{DebianPackages, Event, Lab, debian_packages, need_tool, run, test};

/// Debian's; another one in PATH may have no probes.
const PYTHON: &str = "/usr/bin/python3.11";

/// Logs its calls, its audit events and its garbage collections, and prints them.
const SCRIPT: &str = r#"import gc, json, sys

calls, audits, collections = [], [], []

def on_call(frame, event, argument):
    if event in ("call", "return"):
        calls.append([event, frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno])

def on_audit(event, arguments):
    audits.append(event)

def on_collection(phase, told):
    collections.append([phase, told["generation"], told["collected"]])

def größe(text):
    return len(text)

class Knot:
    def __init__(self):
        self.me = self

def fail():
    raise ValueError("no")

def work():
    for i in range(5):
        größe("x" * i)
    for i in range(7):
        Knot()
    try:
        fail()
    except ValueError:
        pass

gc.collect()
gc.disable()
sys.addaudithook(on_audit)
gc.callbacks.append(on_collection)
sys.audit("test.begin", 1)
sys.setprofile(on_call)
work()
sys.setprofile(None)
gc.collect(0)
gc.collect(1)
gc.collect(2)
import colorsys
try:
    import no_such_module
except ImportError:
    pass
sys.audit("test.end", 2)
print(json.dumps({"calls": calls, "audits": audits, "collections": collections}))
"#;

#[test]
fn what_python_logs_of_itself_is_what_its_probes_say() {
    let lab = Lab::privileged();
    need_tool(PYTHON);
    std::fs::write(lab.file("script.py"), SCRIPT).expect("a file");
    let event = format!("python:*@{PYTHON}");
    let mut record = lab.command(["record", "-m", "256M", "-o", "trace", "-e", &event]);
    record.args(["--", PYTHON, "-I", "-S", "script.py"]);
    let recorded = run(record).success();
    assert!(recorded.stderr.contains(" 0 lost,"), "{}", recorded.stderr);
    let told: Value = serde_json::from_str(&recorded.stdout).expect("what the script prints");
    let events = lab.events("trace");
    let marker = |name: &str| {
        let mut places = events.iter();
        places
            .position(|event| event.name() == "audit" && event.named("event") == name)
            .unwrap_or_else(|| panic!("no audit event {name}, the last: {:?}", events.last()))
    };
    let events = &events[marker("test.begin")..=marker("test.end")];

    let audits: Vec<&Value> = events_of_names(events, &["audit"])
        .map(|event| event.named("event"))
        .collect();
    assert_eq!(audits, list(&told, "audits").iter().collect::<Vec<_>>());

    let calls: Vec<Value> = events_of_names(events, &["function__entry", "function__return"])
        .map(|event| {
            let [file, function, line] =
                ["filename", "funcname", "lineno"].map(|it| event.named(it));
            let kind = ["return", "call"][usize::from(event.name() == "function__entry")];
            serde_json::json!([kind, file, function, line])
        })
        .filter(|call| {
            ["work", "größe", "__init__", "fail"]
                .iter()
                .any(|name| call[2] == *name)
        })
        .filter(|call| {
            call[1]
                .as_str()
                .is_some_and(|file| file.ends_with("/script.py"))
        })
        .collect();
    assert_eq!(&calls, list(&told, "calls"));
    let called = 1 + 5 + 7 + 1;
    assert_eq!(calls.len(), 2 * called, "work, größe, Knot, fail");

    let collections: Vec<Value> = events_of_names(events, &["gc__start", "gc__done"])
        .map(|event| match event.name() {
            "gc__start" => serde_json::json!(["start", event.named("generation")]),
            _ => serde_json::json!(["stop", event.named("collected")]),
        })
        .collect();
    let logged: Vec<Value> = list(&told, "collections")
        .iter()
        .map(|it| {
            let value = &it[if it[0] == "start" { 1 } else { 2 }];
            serde_json::json!([it[0], value])
        })
        .collect();
    assert_eq!(collections, logged);
    assert_eq!(logged.len(), 6, "{logged:?}");

    let imports = events_of_names(events, &["import__find__load__done"]);
    let imports: Vec<_> = imports
        .map(|event| (event.named("module"), event.named("found")))
        .collect();
    assert_eq!(
        imports,
        [
            (&"colorsys".into(), &true.into()),
            (&"no_such_module".into(), &false.into())
        ]
    );
}

fn events_of_names<'e>(
    events: &'e [Event],
    names: &'static [&str],
) -> impl Iterator<Item = &'e Event> {
    events.iter().filter(|event| names.contains(&event.name()))
}

fn list<'t>(told: &'t Value, name: &str) -> &'t Vec<Value> {
    told[name].as_array().expect("a list")
}

/// Python 3.13 of Debian 13, with its own C library and loader, which are not installed.
struct NewPython(PathBuf);

impl NewPython {
    const PACKAGES: [&str; 6] = [
        "python3.13-minimal",
        "libpython3.13-minimal",
        "libpython3.13-stdlib",
        "libc6",
        "libexpat1",
        "zlib1g",
    ];

    #[track_caller]
    fn fetched() -> Self {
        Self(debian_packages(DebianPackages {
            name: "python-3.13",
            suite: "trixie",
            packages: &Self::PACKAGES,
            is_complete: false,
        }))
    }

    fn program(&self) -> PathBuf {
        self.0.join("usr/bin/python3.13")
    }

    /// Its command line, with arguments.
    fn command_line(&self, arguments: &[&str]) -> Vec<String> {
        let libraries = self.0.join("usr/lib/x86_64-linux-gnu");
        let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        let mut line = vec![
            text(&libraries.join("ld-linux-x86-64.so.2")),
            "--library-path".to_owned(),
            text(&libraries),
            text(&self.program()),
        ];
        line.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        line
    }
}

/// Orders that are audited, from two places.
const SHOP: &str = "import os, sys, time

def leaf(number):
    sys.audit('shop.order', number)

def checkout(number):
    leaf(number)

def browse(number):
    leaf(number)

def main():
    for number in range(300):
        checkout(number)
        if number % 3 == 0:
            browse(number)

main()
print(os.getpid(), flush=True)
time.sleep(float(sys.argv[1]))
";

/// With `-X perf` and `-X perf_jit` each function of Python has a trampoline, which has no entry in a table and keeps no frame pointer. It is known
/// by its bytes in the memory of the process, or, once that has ended, by those in its file.
#[test]
fn functions_of_python_are_callers() {
    let lab = Lab::privileged();
    let python = NewPython::fetched();
    fs::write(lab.file("shop.py"), SHOP).expect("a file");
    let event = format!("python:audit@{}", python.program().display());
    for [option, seconds] in [
        ["perf", "0"],
        ["perf", "1"],
        ["perf_jit", "0"],
        ["perf_jit", "1"],
    ] {
        let line = python.command_line(&["-X", option, "-I", "-S", "shop.py", seconds]);
        let mut record = lab.command(["record", "--call-graph", "dwarf,16384", "-o", "trace"]);
        record.args(["-e", &event, "--filter", "event == \"shop.order\""]);
        record.arg("--").args(line);
        let recorded = run(record).success();
        let pid = recorded.stdout.trim();
        let stacks = folded_lines(&lab, &[]);
        for file in [format!("perf-{pid}.map"), format!("jit-{pid}.dump")] {
            let _ = fs::remove_file(Path::new("/tmp").join(file));
        }
        let mut found = BTreeMap::new();
        for (stack, hits) in stacks {
            *found.entry(python_functions(&stack)).or_insert(0) += hits;
        }
        let expected = [
            ("<module>;main;checkout;leaf".to_owned(), 300),
            ("<module>;main;browse;leaf".to_owned(), 100),
        ];
        assert_eq!(found, BTreeMap::from(expected), "{option} {seconds}");
    }
}

/// The functions of Python in a folded stack.
fn python_functions(stack: &str) -> String {
    let frames = stack.split(';');
    let names = frames.filter_map(|frame| frame.strip_prefix("py::")?.split(':').next());
    names.collect::<Vec<_>>().join(";")
}
