//! `--drop` and `--hash`: no format has the values, and all other arguments are what they are without the options.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::nasty::{HitFields, Nasty};
use super::{otlp, perfetto};
use crate::common::{Lab, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
const KEY: &str = "a key of 16 byte";
const DROPPED: [&str; 2] = ["high", "status"];
const HASHED: [&str; 2] = ["text", "low"];
const OPTIONS: [&str; 10] = [
    "--drop",
    "high",
    "--drop",
    "status",
    "--hash",
    "text",
    "--hash",
    "low",
    "--hash-key",
    "key",
];
/// Parts of values that are dropped or hashed, as formats have them.
const VALUES: [&str; 7] = [
    "ordinary",
    "on another thread",
    "stays open",
    "deep ",
    "6e6f7420fffe",
    "9223372036854775808",
    "9007199254740993",
];

/// The hash of a value, by the definition of HMAC (RFC 2104).
fn hash(value: &[u8]) -> String {
    let mut key = [0; 64];
    key[..KEY.len()].copy_from_slice(KEY.as_bytes());
    let digest = |pad: u8, message: &[u8]| {
        let mut hash = Sha256::new();
        hash.update(key.map(|byte| byte ^ pad));
        hash.update(message);
        hash.finalize()
    };
    let hash = digest(0x5c, &digest(0x36, value));
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The arguments of a hit: `NAME`, and `NAME_missing`, `NAME_cut` and so on.
type Arguments = Map<String, Json>;

/// The arguments of hits as other readers have them.
fn of_hits(hits: Vec<HitFields>) -> Vec<Arguments> {
    let hits = hits.into_iter().map(|hit| {
        let mut all = Arguments::new();
        for (member, suffix) in [
            ("args", ""),
            ("missing", "_missing"),
            ("cut", "_cut"),
            ("bytes", "_bytes"),
        ] {
            let values = hit.get(member).and_then(Json::as_object);
            for (name, value) in values.into_iter().flatten() {
                if !value.is_null() {
                    all.insert(format!("{name}{suffix}"), value.clone());
                }
            }
        }
        all
    });
    hits.collect()
}

/// The same of spans.
fn of_spans(spans: Vec<otlp::OtlpSpan>) -> Vec<Arguments> {
    let sides = spans.into_iter().flat_map(|span| {
        ["begin.", "end."].map(|side| {
            let attributes = span.attributes.iter();
            let of_side = attributes.filter_map(|(name, value)| {
                let name = name.strip_prefix(side)?;
                let name = match name.split_once('.') {
                    Some((member, name)) => format!("{name}_{member}"),
                    None => name.to_owned(),
                };
                Some((name, value.clone()))
            });
            of_side.collect::<Arguments>()
        })
    });
    sides.collect()
}

/// Exports the recording twice, to `NAME-plain` and `NAME-redacted`.
#[track_caller]
fn export(lab: &Lab, format: &str, options: &[&str]) -> [String; 2] {
    ["plain", "redacted"].map(|kind| {
        let output = format!("{format}-{kind}");
        let head = ["export", "-i", "trace", "--to", format, "-o", &output];
        let redacted = if kind == "plain" { &[][..] } else { &OPTIONS };
        lab.usdtrec([&head, options, redacted].concat()).success();
        output
    })
}

/// All bytes of a file, or of the files of a folder.
fn bytes(path: &Path) -> Vec<u8> {
    if !path.is_dir() {
        return fs::read(path).expect("a file");
    }
    let entries = fs::read_dir(path).expect("a folder");
    let files = entries.map(|entry| fs::read(entry.expect("an entry").path()).expect("a file"));
    files.collect::<Vec<_>>().concat()
}

/// Checks that one output has the values, and the other none of them.
#[track_caller]
fn only_the_first_has_values(lab: &Lab, [plain, redacted]: &[String; 2]) {
    let has = |output: &str, value: &str| {
        let bytes = bytes(&lab.file(output));
        bytes
            .windows(value.len())
            .any(|part| part == value.as_bytes())
    };
    assert!(has(plain, VALUES[0]), "{plain}");
    for value in VALUES {
        assert!(!has(redacted, value), "{redacted} has {value}");
    }
    assert!(has(redacted, &hash(b"ordinary")), "{redacted}");
}

/// Checks the arguments of all hits.
#[track_caller]
fn compare(plain: Vec<Arguments>, redacted: Vec<Arguments>) {
    assert_eq!(plain.len(), redacted.len());
    let mut hashes = 0;
    for (mut plain, mut redacted) in plain.into_iter().zip(redacted) {
        for name in HASHED {
            let value = plain.remove(name);
            let found = redacted.remove(name);
            match value {
                Some(Json::String(text)) if text.contains('\u{fffd}') => {
                    assert_eq!(found, Some(json!(hash(b"not \xff\xfe UTF-8"))));
                }
                Some(Json::String(text)) => {
                    assert_eq!(found, Some(json!(hash(text.as_bytes()))), "{text}");
                    hashes += 1;
                }
                Some(Json::Number(number)) => {
                    assert_eq!(found, Some(json!(hash(number.to_string().as_bytes()))));
                    hashes += 1;
                }
                Some(other) => panic!("{name} is {other}"),
                None => assert_eq!(found, None),
            }
            let reason = redacted.remove(&format!("{name}_missing"));
            let is_missing = plain.remove(&format!("{name}_missing")).is_some();
            assert_eq!(reason, is_missing.then(|| json!("missing")));
        }
        plain.retain(|name, _| {
            let of = name.split('_').next().expect("a name");
            !DROPPED.contains(&of) && !HASHED.contains(&of)
        });
        assert_eq!(plain, redacted);
    }
    assert!(hashes > 50, "{hashes}");
}

#[test]
fn no_format_has_values_that_are_dropped_or_hashed() {
    let nasty = Nasty::record(50, &["-g"]);
    let lab = &nasty.lab;
    fs::write(lab.file("key"), KEY).expect("a file");
    let file = |output: &String| lab.file(output);

    let outputs = export(lab, "perfetto", &[]);
    only_the_first_has_values(lab, &outputs);
    let [plain, redacted] = outputs
        .each_ref()
        .map(|output| of_hits(perfetto::read(&fs::read(file(output)).expect("a file")).hits));
    compare(plain, redacted);

    let outputs = export(lab, "otlp", &[]);
    only_the_first_has_values(lab, &outputs);
    let [plain, redacted] = outputs.each_ref().map(|output| {
        of_spans(otlp::of_json(
            &fs::read_to_string(file(output)).expect("a file"),
        ))
    });
    compare(plain, redacted);

    let outputs = export(lab, "otlp-proto", &[]);
    only_the_first_has_values(lab, &outputs);
    let [plain, redacted] = outputs
        .each_ref()
        .map(|output| of_spans(otlp::of_proto(&fs::read(file(output)).expect("a file"))));
    compare(plain, redacted);

    let outputs = export(lab, "html", &[]);
    only_the_first_has_values(lab, &outputs);
    let [plain, redacted] = outputs
        .each_ref()
        .map(|output| fs::read_to_string(file(output)).expect("a page"));
    for (name, is_in) in [
        ("value.high", false),
        ("value.low", true),
        ("value.real", true),
    ] {
        assert!(plain.contains(name));
        assert_eq!(redacted.contains(name), is_in, "{name}");
    }
}

/// Copies of arguments in other events are redacted, too, and ids of traces are hashes of ids.
#[test]
fn arguments_of_other_events_are_redacted() {
    let nasty = Nasty::record(50, &[]);
    let lab = &nasty.lab;
    fs::write(lab.file("key"), KEY).expect("a file");
    let outputs = export(lab, "perfetto", &["--with", "work"]);
    only_the_first_has_values(lab, &outputs);
    let redacted = fs::read(lab.file(&outputs[1])).expect("a file");
    let name = b"work.text";
    assert!(redacted.windows(name.len()).any(|part| part == name));
    let outputs = export(lab, "otlp", &["--trace-id", "text"]);
    let spans = fs::read_to_string(lab.file(&outputs[1])).expect("a file");
    let trace = format!("\"traceId\":\"{}\"", hash(b"ordinary"));
    assert!(spans.contains(&trace), "{spans}");
}

/// Groups of spans are by hashes, and numbers that were not counted one by one have no list.
#[test]
fn a_page_has_hashes_in_place_of_numbers() {
    let lab = Lab::new();
    let export = ["export", "-i", DEMO, "--to", "html", "-o", "page.html"];
    let page = |options: &[&str]| {
        lab.usdtrec([&export[..], options].concat()).success();
        fs::read_to_string(lab.file("page.html")).expect("the page")
    };
    let groups = "<h3>By <code>arg2</code></h3>";
    let plain = page(&[]);
    assert!(plain.contains(groups) && plain.contains("94908731122899"));
    let hashed = page(&["--hash", "arg1", "--hash", "arg2"]);
    assert!(hashed.contains(groups) && !hashed.contains("94908731122899"));
    assert!(hashed.contains(">more than 256 values<"));
    let dropped = page(&["--drop", "arg2"]);
    assert!(!dropped.contains("arg2") && dropped.contains("request__start.arg3"));
}

#[test]
fn what_cannot_be_redacted_is_refused() {
    let lab = Lab::new();
    let export = |options: &[&str]| {
        let head = ["export", "-i", DEMO, "-o", "out", "--to"];
        lab.usdtrec([&head, options].concat())
    };
    for format in ["folded", "pprof"] {
        let refused = export(&[format, "--drop", "arg1"]).exits(2);
        refused.complains("cannot be used with");
    }
    let refused = export(&["perf", "--hash", "arg1"]).exits(2);
    refused.complains("'--hash arg1' cannot be used with '--to perf'");
    let refused = export(&["otlp", "--trace-id", "arg1", "--drop", "arg1"]).exits(2);
    refused.complains("--trace-id arg1 needs the values of arg1, which --drop leaves out");
    for format in ["perfetto", "otlp", "otlp-proto", "html"] {
        let refused = export(&[format, "--drop", "nothing"]).exits(1);
        refused.complains("\"nothing\"");
    }
}
