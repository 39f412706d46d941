//! Python 3.11: the probes of the interpreter, against what the program logged of itself with Python's own hooks.

use serde_json::Value;

use crate::common::{Event, Lab, need_tool, run, test};

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
    let mut record = lab.command(["record", "--lossless", "-o", "trace", "-e", &event]);
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

    let audits: Vec<&Value> = of(events, &["audit"])
        .map(|event| event.named("event"))
        .collect();
    assert_eq!(audits, list(&told, "audits").iter().collect::<Vec<_>>());

    let calls: Vec<Value> = of(events, &["function__entry", "function__return"])
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

    let collections: Vec<Value> = of(events, &["gc__start", "gc__done"])
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

    let imports = of(events, &["import__find__load__done"]);
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

fn of<'e>(events: &'e [Event], names: &'static [&str]) -> impl Iterator<Item = &'e Event> {
    events.iter().filter(|event| names.contains(&event.name()))
}

fn list<'t>(told: &'t Value, name: &str) -> &'t Vec<Value> {
    told[name].as_array().expect("a list")
}
