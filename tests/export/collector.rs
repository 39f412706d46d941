//! `--to otlp` and `otlp-proto` as a collector of OpenTelemetry takes them: rotel, a package of PyPI, which prints each span that it was sent.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::Value as Json;

use super::nasty::Nasty;
use super::readers::Packages;
use crate::common::{Lab, Process, free_port, test, wait_until};

const COLLECTOR: Packages = Packages::new("otlp-collector", &["rotel==0.0.1a15"]);

/// The collector, while it runs.
struct Collector {
    process: Process,
    address: String,
}

fn program() -> PathBuf {
    let libraries = COLLECTOR.folder().join("../lib");
    let mut versions = fs::read_dir(libraries).expect("a folder");
    let version = versions.next().expect("a version").expect("an entry");
    version.path().join("site-packages/rotel/rotel-agent")
}

impl Collector {
    fn start(lab: &Lab) -> Self {
        let [address, other] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
        let words = [
            "start",
            "--exporter",
            "blackhole",
            "--debug-log",
            "traces",
            "--debug-log-verbosity",
            "detailed",
            "--pid-file",
            "collector.pid",
            "--log-file",
            "collector.log",
            "--otlp-http-endpoint",
            &address,
            "--otlp-grpc-endpoint",
            &other,
        ];
        let mut process = Process::spawn(lab.at_home(&program(), words));
        wait_until("the collector", || {
            assert!(process.is_running());
            TcpStream::connect(&address).is_ok()
        });
        Self { process, address }
    }

    /// Its answer to a request.
    fn post(&self, kind: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the collector");
        let length = body.len();
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).expect("a request");
        stream.write_all(body).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// What it has printed.
    fn end(self) -> String {
        self.process.signal("TERM");
        self.process.finish().stdout
    }
}

fn text<'j>(value: &'j Json, name: &str) -> &'j str {
    value[name].as_str().unwrap_or_default()
}

/// A value as the collector prints it.
#[track_caller]
fn printed(value: &Json) -> String {
    let value = value.as_object().expect("a value").iter().next();
    match value.map(|(kind, value)| (kind.as_str(), value)) {
        Some(("stringValue", Json::String(text))) => format!("Str({text})"),
        Some(("intValue", Json::String(digits))) => format!("Int({digits})"),
        Some(("boolValue", Json::Bool(is))) => format!("Bool({is})"),
        other => panic!("{other:?}"),
    }
}

/// The spans of an export, as the collector prints them.
fn expected(exported: &str) -> Vec<String> {
    let mut all = Vec::new();
    let lines = exported
        .lines()
        .map(|line| -> Json { serde_json::from_str(line).expect("JSON") });
    for line in lines {
        let resources = line["resourceSpans"].as_array().expect("resources").clone();
        let scopes = resources.into_iter().flat_map(|resource| {
            let scopes = resource["scopeSpans"].as_array().expect("scopes");
            scopes.clone()
        });
        for span in scopes.flat_map(|scope| scope["spans"].as_array().expect("spans").clone()) {
            let kind = match span["kind"].as_u64() {
                Some(1) => "INTERNAL",
                Some(2) => "SERVER",
                other => panic!("{other:?}"),
            };
            let end = match text(&span, "endTimeUnixNano") {
                "" => "0",
                end => end,
            };
            let mut one = format!(
                "    Trace ID       : {}\n    Parent ID      : {}\n    ID             : {}\n    Name           : {}\n    Kind           : SPAN_KIND_{kind}\nStart time: {}\nEnd time: {end}\nAttributes:\n",
                text(&span, "traceId"),
                text(&span, "parentSpanId"),
                text(&span, "spanId"),
                text(&span, "name"),
                text(&span, "startTimeUnixNano"),
            );
            for attribute in span["attributes"].as_array().expect("attributes") {
                let value = printed(&attribute["value"]);
                let _ = writeln!(one, "     -> {}: {value}", text(attribute, "key"));
            }
            all.push(one);
        }
    }
    all
}

/// It has each span with each value from both encodings.
#[test]
fn a_collector_takes_every_span() {
    let nasty = Nasty::record(50, &["-g"]);
    let lab = &nasty.lab;
    let json = fs::read_to_string(nasty.export("otlp", &[])).expect("a file");
    let proto = fs::read(nasty.export("otlp-proto", &[])).expect("a file");
    let expected = expected(&json);
    assert!(expected.len() > 50);
    for (kind, bodies) in [
        (
            "application/json",
            json.lines().map(str::as_bytes).collect(),
        ),
        ("application/x-protobuf", vec![proto.as_slice()]),
    ] {
        let collector = Collector::start(lab);
        for body in bodies {
            let answer = collector.post(kind, body);
            assert!(answer.starts_with("HTTP/1.1 200 "), "{kind}: {answer}");
        }
        let answer = collector.post(kind, b"[1]");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{kind}: {answer}");
        let printed = collector.end();
        let count = printed.matches("\nSpan #").count();
        assert_eq!(count, expected.len(), "{kind}");
        for span in &expected {
            assert!(
                printed.contains(span),
                "{kind}: no\n{span}in\n{printed:.20000}"
            );
        }
    }
}
