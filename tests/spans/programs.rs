//! Spans and groups of other runtimes: Rust, 32-bit C, node's provider, libstdc++, the Java Native Interface, libvirt.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::walk::{Asked, Walk};
use crate::common::{Build, Lab, Process, Recorder, need_tool, run, test};
use crate::node::{NODE, tell};

/// How many spans each group has.
fn counts(walk: &Walk) -> BTreeMap<String, usize> {
    let groups = walk.groups.iter();
    groups
        .map(|(name, spans)| (name.clone(), spans.len()))
        .collect()
}

/// A Rust program.
fn rust(lab: &Lab, source: &str) -> String {
    need_tool("rustc");
    let program = lab.file(source.trim_end_matches(".rs"));
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2021", "-O", "-o"]).arg(&program);
    rustc.arg(format!(
        "{}/testdata/targets/{source}",
        env!("CARGO_MANIFEST_DIR")
    ));
    run(rustc).success();
    program.to_str().expect("a path").to_owned()
}

/// Calls that return or are left by panics: what began is what the program says, with the calls' ids and without.
#[test]
fn rust_with_panics() {
    let lab = Lab::privileged();
    let program = rust(&lab, "panics.rs");
    let record = |lists: [&str; 2]| {
        let mut record = lab.command(["record", "-m", "64M", "-o", "trace"]);
        for list in lists {
            record.args(["-e", &format!("panics:{list}@{program}")]);
        }
        record.args(["--", &program, "7", "150", "3"]);
        run(record).success().complains(" 0 lost").stdout
    };
    let call = Asked {
        starts: &["call__start"],
        dones: &["call__done"],
        key: None,
        by: &["kind"],
    };
    let said = record([
        "call__start(kind=arg1,id=arg2,depth=arg3)",
        "call__done(kind=arg1,id=arg2,status=arg3)",
    ]);
    let numbers = said.lines().map(|line| {
        let numbers = line.split(' ').map(|word| word.parse().expect("a number"));
        numbers.collect::<Vec<usize>>()
    });
    let said: Vec<Vec<usize>> = numbers.collect();
    let walk = call.compare(&lab, "call", &[]);
    let returned: BTreeMap<String, usize> = said
        .iter()
        .map(|kind| (format!("[{}]", kind[0]), kind[1]))
        .collect();
    let left: usize = said.iter().map(|kind| kind[2]).sum();
    assert!(left > 100, "{said:?}");
    assert_eq!(counts(&walk), returned);
    assert_eq!((walk.open, walk.unmatched), (left, 0));

    record([
        "call__start(kind=arg1,depth=arg3)",
        "call__done(kind=arg1,status=arg3)",
    ]);
    let walk = call.compare(&lab, "call", &["--order", "self"]);
    let all: usize = counts(&walk).values().sum();
    assert_eq!(all + walk.open, returned.values().sum::<usize>() + left);
}

/// The probes of this very program (src/sdt.rs).
#[test]
fn rust_with_our_own_probes() {
    let lab = Lab::privileged();
    let program = env!("CARGO_BIN_EXE_usdtrec");
    let event = format!("sdt_usdtrec:*@{program}");
    let recorded = lab.usdtrec([
        "record",
        "-o",
        "trace",
        "-e",
        &event,
        "--",
        program,
        "demo",
        "--workload",
    ]);
    let recorded = recorded.success().complains(" 0 lost");
    let requests = recorded.stdout.split(' ').next();
    let requests: usize = requests
        .and_then(|word| word.parse().ok())
        .expect("a number");
    let request = Asked {
        starts: &["request__start"],
        dones: &["request__done"],
        key: None,
        by: &["method", "url"],
    };
    let walk = request.compare(&lab, "request", &["--order", "p99"]);
    assert_eq!(counts(&walk).values().sum::<usize>(), requests);
    let gc = Asked {
        starts: &["gc__start"],
        dones: &["gc__done"],
        by: &["generation"],
        ..request
    };
    let walk = gc.compare(&lab, "gc", &[]);
    assert_eq!(counts(&walk).values().sum::<usize>(), requests / 50);
}

/// A 32-bit program: threads, recursion, and jobs that one thread begins and another ends.
#[test]
fn programs_of_32_bits() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options: &["-O2", "-m32"],
    };
    let program = build.make(&lab, "requests.c", "requests");
    let event = format!("sdt_requests:*@{}", program.display());
    let mut record = lab.command(["record", "-m", "64M", "-o", "trace", "-e", &event, "--"]);
    record.arg(&program).args(["1000", "4", "log"]);
    run(record).success().complains(" 0 lost");
    let request = Asked {
        starts: &["request__start"],
        dones: &["request__done"],
        key: None,
        by: &["arg2"],
    };
    let walk = request.compare(&lab, "request", &["--order", "max"]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 1));
    let kinds: BTreeMap<String, usize> = (0..7)
        .map(|kind| {
            (
                format!("[{kind}]"),
                4 * (0..1000).filter(|id| id % 7 == kind).count(),
            )
        })
        .collect();
    assert_eq!(counts(&walk), kinds);
    let function = Asked {
        starts: &["function__entry"],
        dones: &["function__return"],
        by: &["arg1"],
        ..request
    };
    let walk = function.compare(&lab, "function", &[]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 3));
    let job = Asked {
        starts: &["job__begin"],
        dones: &["job__end"],
        key: Some("arg1"),
        by: &[],
    };
    let walk = job.compare(&lab, "job", &["--key", "arg1"]);
    assert_eq!(walk.groups["[]"].len(), 200);
}

/// Node's old provider, in its stand-in.
#[test]
fn node_requests_and_collections() {
    let lab = Lab::privileged();
    let program = NODE.make(&lab, "node.c", "node");
    let mut node = Process::spawn(Command::new(&program));
    let (event, pid) = (
        format!("node:*@{}", program.display()),
        node.pid().to_string(),
    );
    let recorder = Recorder::start(&lab, ["-o", "trace", "-e", &event, "-p", &pid]);
    tell(&mut node, "gc 40");
    tell(&mut node, "request 300");
    recorder.stop().complains(" 0 lost");
    let server = Asked {
        starts: &["http__server__request"],
        dones: &["http__server__response"],
        key: Some("connection"),
        by: &["method"],
    };
    let walk = server.compare(&lab, "http__server*", &[]);
    let methods = [("[\"GET\"]", 200), ("[\"PUT\"]", 100)];
    assert_eq!(
        counts(&walk),
        methods.map(|(name, count)| (name.to_owned(), count)).into()
    );
    let client = Asked {
        starts: &["http__client__request"],
        dones: &["http__client__response"],
        ..server
    };
    let walk = client.compare(&lab, "http__client*", &["--order", "max"]);
    let methods = [("[\"GET\"]", 150), ("[\"POST\"]", 150)];
    assert_eq!(
        counts(&walk),
        methods.map(|(name, count)| (name.to_owned(), count)).into()
    );
    let gc = Asked {
        starts: &["gc__start"],
        dones: &["gc__done"],
        key: None,
        by: &["type", "flags"],
    };
    let walk = gc.compare(&lab, "gc", &[]);
    assert_eq!(counts(&walk).values().sum::<usize>(), 40);
}

/// From the throw of an exception to its handler, also where it is thrown on.
#[test]
fn exceptions_of_libstdcxx() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "g++",
        options: &["-O2"],
    };
    let program = build.make(&lab, "rethrown.cc", "rethrown");
    let library = crate::cxx::library_of(&program);
    let mut record = lab.command(["record", "-m", "32M", "-o", "trace"]);
    record.args(["-e", &format!("libstdcxx:*@{library}"), "--"]);
    record.arg(&program).args(["300", "3"]);
    let said = run(record).success().complains(" 0 lost").stdout;
    let handled = Asked {
        starts: &["throw", "rethrow"],
        dones: &["catch"],
        key: None,
        by: &["type"],
    };
    let walk = handled.compare(&lab, "libstdcxx:*throw..libstdcxx:catch", &[]);
    assert_eq!((walk.open, walk.unmatched), (0, 0));
    let of_type = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().expect("a name");
        let caught = words.nth(1)?.parse().ok()?;
        Some((format!("[\"{name}\"]"), caught))
    };
    let caught: Option<BTreeMap<String, usize>> = said.lines().map(of_type).collect();
    assert_eq!(Some(counts(&walk)), caught, "{said}");
}

const NATIVE: &str = r#"
public class Native {
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 50; i++) new java.io.File("/tmp/" + i).exists();
        System.out.println("done");
    }
}
"#;
const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";

/// Functions of the Java Native Interface, which its own library calls.
#[test]
fn native_interface_of_java() {
    let lab = Lab::privileged();
    need_tool("javac");
    need_tool(LIBRARY);
    std::fs::write(lab.file("Native.java"), NATIVE).expect("a file");
    run(lab.at_home(Path::new("javac"), ["Native.java"])).success();
    let functions = ["FindClass", "NewStringUTF", "GetMethodID", "GetFieldID"];
    let mut record = lab.command(["record", "-m", "64M", "-o", "trace"]);
    for function in functions {
        record.args(["-e", &format!("hotspot_jni:{function}__*@{LIBRARY}")]);
    }
    record.args(["--", "java", "-Xshare:auto", "Native"]);
    run(record).success().complains(" 0 lost");
    let found = |start: &str, done: &str, by: &[&str], span: &str| {
        let asked = Asked {
            starts: &[start],
            dones: &[done],
            key: None,
            by,
        };
        let walk = asked.compare(&lab, span, &[]);
        assert_eq!((walk.open, walk.unmatched), (0, 0), "{span}");
        counts(&walk)
    };
    let found_classes = found(
        "FindClass__entry",
        "FindClass__return",
        &["name"],
        "FindClass",
    );
    assert!(
        found_classes.contains_key("[\"java/io/File\"]"),
        "{found_classes:?}"
    );
    let methods = found(
        "GetMethodID__entry",
        "GetMethodID__return",
        &["name", "signature"],
        "GetMethodID",
    );
    assert!(!methods.is_empty());
    let fields = found(
        "GetFieldID__entry",
        "GetFieldID__return",
        &["name"],
        "GetFieldID",
    );
    assert!(!fields.is_empty());
    found(
        "NewStringUTF__entry",
        "NewStringUTF__return",
        &[],
        "NewStringUTF",
    );
}

/// Objects of libvirt, from their making to their end, which other threads may bring about.
#[test]
fn objects_of_libvirt() {
    const LIBVIRT: &str = "/usr/lib/x86_64-linux-gnu/libvirt.so.0";
    let lab = Lab::privileged();
    need_tool("virsh");
    need_tool(LIBVIRT);
    let event = format!("libvirt:object_*@{LIBVIRT}");
    let mut record = lab.command(["record", "-m", "16M", "-o", "trace", "-e", &event, "--"]);
    record.args(["virsh", "-c", "test:///default"]);
    record.arg("list --all; pool-list; net-list; destroy test; start test; nodeinfo");
    run(record).success().complains(" 0 lost");
    let objects = Asked {
        starts: &["object_new"],
        dones: &["object_dispose"],
        key: Some("obj"),
        by: &["classname"],
    };
    let span = "libvirt:object_new..libvirt:object_dispose";
    let walk = objects.compare(&lab, span, &["--key", "obj"]);
    assert!(walk.groups.len() > 5, "{:?}", walk.groups.keys());
    assert_eq!(walk.unmatched, 0);
}
