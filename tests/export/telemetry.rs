//! What exports say in the names of OpenTelemetry: attributes of schemas, kinds of spans, control groups.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::json;

use super::nasty::Nasty;
use super::otlp::{OtlpSpan, of_json, of_proto};
use crate::common::{Build, Event, Lab, Postgres, Process, Recorder, test};
use crate::node::tell;

/// The spans of a trace, which are the same in both encodings.
#[track_caller]
fn exported(lab: &Lab, options: &[&str]) -> Vec<OtlpSpan> {
    for (format, file) in [("otlp", "spans.json"), ("otlp-proto", "spans.proto")] {
        let head = ["export", "-i", "trace", "--to", format, "-o", file];
        lab.usdtrec([&head, options].concat()).success();
    }
    let text = fs::read_to_string(lab.file("spans.json")).expect("a file");
    let spans = of_json(&text);
    let bytes = fs::read(lab.file("spans.proto")).expect("a file");
    assert_eq!(of_proto(&bytes), spans);
    spans
}

/// Queries of a real server.
#[test]
fn queries_of_postgresql() {
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    let program = Postgres::program();
    let program = program.to_str().expect("a path");
    let events = ["query__*", "transaction__*"];
    let events = events.map(|event| format!("postgresql:{event}@{program}"));
    let options = ["-a", "-o", "trace", "-e", &events[0], "-e", &events[1]];
    let recorder = Recorder::start(&lab, options);
    let asked = ["SELECT 'größer \"1\"'", "SELECT 41 + 1"];
    for query in asked {
        postgres.ask(query);
    }
    recorder.stop();
    let spans = exported(&lab, &[]);
    let named = |name: &str| {
        let named = spans.iter().filter(|span| span.name == name);
        named.collect::<Vec<_>>()
    };
    let queries = named("postgresql:query");
    let texts: BTreeSet<&str> = queries
        .iter()
        .filter_map(|span| span.attributes["db.query.text"].as_str())
        .collect();
    assert_eq!(texts, asked.into(), "{queries:?}");
    for span in &queries {
        assert_eq!(span.kind, 2, "a server's");
        let attributes = &span.attributes;
        assert_eq!(attributes["db.system.name"], json!("postgresql"));
        // One value has one name; the end has its own.
        assert_eq!(attributes.get("begin.query"), None);
        assert_eq!(attributes["end.query"], attributes["db.query.text"]);
        assert_eq!(span.schema, "https://opentelemetry.io/schemas/1.44.0");
    }
    let transactions = named("postgresql:transaction");
    assert!(!transactions.is_empty());
    for span in transactions {
        assert_eq!(span.kind, 1, "no request of its own");
        assert_eq!(span.attributes["db.system.name"], json!("postgresql"));
        assert!(span.attributes["begin.local_xid"].is_u64());
    }
    let stored = ["schema", "export", "-i", "trace", "query__start"];
    let stored = lab.usdtrec(stored).success().stdout;
    let attributes =
        r#"attributes = { "db.query.text" = "{query}", "db.system.name" = "postgresql" }"#;
    assert!(stored.contains(attributes), "{stored}");
    assert!(stored.contains("span_kind = \"server\""), "{stored}");
}

/// Requests of the stand-in for Node.js: its server's and its client's.
#[test]
fn requests_of_node() {
    let lab = Lab::privileged();
    let program = crate::node::NODE.make(&lab, "node.c", "node");
    let mut node = Process::spawn(Command::new(&program));
    let event = format!("node:http__*@{}", program.display());
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    tell(&mut node, "request 3");
    recorder.stop();
    let hits: Vec<Event> = lab.events("trace");
    let spans = exported(&lab, &[]);
    for (name, kind) in [("http__server__request", 2), ("http__client__request", 3)] {
        let hits = hits.iter().filter(|event| event.name() == name);
        let of_hits: BTreeSet<(String, String, i128)> = hits
            .map(|hit| {
                let text = |number| hit.string(number).to_owned();
                (text(5), text(6), hit.integer(4))
            })
            .collect();
        let of_spans: BTreeSet<(String, String, i128)> = spans
            .iter()
            .filter(|span| span.name.ends_with(name))
            .map(|span| {
                assert_eq!(span.kind, kind, "{name}");
                let text = |name: &str| span.attributes[name].as_str().expect("a text").to_owned();
                let port = span.attributes["network.peer.port"].as_i64();
                let pair = (text("http.request.method"), text("url.original"));
                (pair.0, pair.1, port.expect("a port").into())
            })
            .collect();
        assert!(!of_hits.is_empty());
        assert_eq!(of_spans, of_hits, "{name}");
    }
}

const ATTRIBUTES: &str = r#"
provider = "nasty"
[attributes]
server.port = "5432"
com.example.key = "{key}"
[[probe]]
name = "work__start"
span_kind = "consumer"
attributes = { com.example.work = "{key}: {text}", db.response.status_code = "{key}", db.query.text = "{text}" }
arguments = ["key: u64", "text: str"]
[[probe]]
name = "work__done"
attributes = { com.example.status = "{status}" }
arguments = ["key: u64", "status: s32"]
[[probe]]
name = "job__start"
arguments = ["job: u64"]
[[probe]]
name = "job__done"
arguments = ["job: u64"]
"#;

/// A schema that is given for a recorded trace; each value is what the arguments of the same span have without it.
#[test]
fn a_schema_of_ones_own() {
    let nasty = Nasty::record(100, &[]);
    let lab = &nasty.lab;
    let plain = exported(lab, &[]);
    assert!(plain.iter().all(|span| span.kind == 1));
    fs::write(lab.file("own.toml"), ATTRIBUTES).expect("a file");
    let checked = ["schema", "check", "own.toml"];
    let checked = lab.usdtrec(checked).success().stdout;
    assert_eq!(checked, "own.toml: 4 probes\n");
    let spans = exported(lab, &["--schema", "own.toml"]);
    let plain: BTreeMap<&str, &OtlpSpan> = plain.iter().map(|span| (&*span.id, span)).collect();
    assert_eq!(plain.len(), spans.len());
    let mut cut = 0;
    for span in &spans {
        let (attributes, before) = (&span.attributes, &plain[&*span.id].attributes);
        if span.name != "nasty:work" {
            let mut more = attributes.clone();
            assert_eq!(more.remove("server.port"), Some(json!(5432)));
            assert_eq!((&more, span.kind), (before, 1));
            continue;
        }
        assert_eq!(span.kind, 5);
        let (key, text) = (&before["begin.key"], &before["begin.text"]);
        assert_eq!(attributes["com.example.key"], *key);
        assert_eq!(
            attributes["db.response.status_code"],
            json!(key.to_string())
        );
        assert_eq!(attributes["db.query.text"], *text);
        let both = format!("{key}: {}", text.as_str().expect("a text"));
        assert_eq!(attributes["com.example.work"], json!(both));
        let status = before.get("end.status");
        assert_eq!(attributes.get("com.example.status"), status);
        // What is not a value of an argument by itself stays as it was; the end has no attribute that the begin has.
        let moved = ["begin.key", "begin.text", "end.status"];
        let own = |name: &str| {
            name.starts_with("com.") || name.starts_with("db.") || name == "server.port"
        };
        let left = attributes.iter().filter(|(name, _)| !own(name));
        let expected = before.iter().filter(|(name, _)| !moved.contains(&&***name));
        assert!(left.eq(expected), "{attributes:?} {before:?}");
        cut += usize::from(attributes.contains_key("begin.cut.text"));
    }
    assert_eq!(cut, 0);
    let wrong = ATTRIBUTES.replace("db.query.text", "db.query.txt");
    fs::write(lab.file("wrong.toml"), wrong).expect("a file");
    let checked = lab.usdtrec(["schema", "check", "wrong.toml"]).success();
    let note =
        "wrong.toml: note: attribute db.query.txt: not in the OpenTelemetry semantic conventions";
    assert!(checked.stdout.starts_with(note), "{}", checked.stdout);
}

/// Strings that are cut or not there: the attribute has what was captured, or is not there, and the argument says why.
#[test]
fn values_that_are_cut_or_missing() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "nasty.c", "nasty");
    let program = program.to_str().expect("a path");
    fs::write(lab.file("own.toml"), ATTRIBUTES).expect("a file");
    let event = format!("nasty:work__*@{program}");
    for (options, cut) in [
        (&["--strlen", "16"][..], true),
        (&["--strings", "off"], false),
    ] {
        let head = ["record", "--schema", "own.toml", "-o", "trace"];
        let tail = ["-e", &event, "--", program, "3"];
        lab.usdtrec([&head, options, &tail].concat()).success();
        let spans = exported(&lab, &[]);
        assert!(spans.len() > 3);
        let known = spans
            .iter()
            .find(|span| span.attributes["com.example.key"] == json!(12));
        let attributes = &known.expect("a span").attributes;
        if cut {
            assert_eq!(attributes["db.query.text"], json!("00-0af7651916cd4"));
            assert_eq!(attributes["begin.cut.text"], json!(true));
            assert_eq!(attributes.get("begin.text"), None);
        } else {
            for absent in ["db.query.text", "com.example.work", "begin.text"] {
                assert_eq!(attributes.get(absent), None, "{absent}");
            }
            assert!(attributes["begin.missing.text"].is_string());
        }
    }
}
