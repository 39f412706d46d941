//! `--to otlp` and `otlp-proto`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value as Json, json};

use super::nasty::Nasty;
use super::perfetto::float;
use super::proto::{Field, Message};
use crate::common::test;

/// A span as both encodings have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OtlpSpan {
    trace: String,
    pub(super) id: String,
    parent: Option<String>,
    pub(super) name: String,
    pub(super) kind: u64,
    start: u64,
    end: Option<u64>,
    pub(super) attributes: Map<String, Json>,
    pub(super) resource: Map<String, Json>,
    /// The URL of the schema of the resource and of the scope.
    pub(super) schema: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn json_value(value: &Json) -> Json {
    let (kind, value) = value
        .as_object()
        .and_then(|one| one.iter().next())
        .expect("a value");
    match &**kind {
        "intValue" => json!(
            value
                .as_str()
                .expect("a string")
                .parse::<i64>()
                .expect("64 bits")
        ),
        "doubleValue" => match value.as_str() {
            Some("Infinity") => json!("inf"),
            Some("-Infinity") => json!("-inf"),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

fn json_attributes(all: &Json) -> Map<String, Json> {
    let all = all.as_array().expect("attributes").iter();
    let all = all.map(|one| {
        let key = one["key"].as_str().expect("a key");
        (key.to_owned(), json_value(&one["value"]))
    });
    all.collect()
}

pub(super) fn of_json(text: &str) -> Vec<OtlpSpan> {
    let mut spans = Vec::new();
    for line in text.lines() {
        let line: Json = serde_json::from_str(line).expect("JSON");
        for resource_spans in line["resourceSpans"].as_array().expect("resources") {
            let resource = json_attributes(&resource_spans["resource"]["attributes"]);
            let schema = resource_spans["schemaUrl"].as_str().expect("a URL");
            assert_eq!(resource_spans["scopeSpans"][0]["schemaUrl"], json!(schema));
            for span in resource_spans["scopeSpans"][0]["spans"]
                .as_array()
                .expect("spans")
            {
                let text = |name: &str| span[name].as_str().map(str::to_owned);
                let time = |name: &str| text(name).map(|time| time.parse().expect("ns"));
                spans.push(OtlpSpan {
                    trace: text("traceId").expect("an id"),
                    id: text("spanId").expect("an id"),
                    parent: text("parentSpanId"),
                    name: text("name").expect("a name"),
                    start: time("startTimeUnixNano").expect("a time"),
                    end: time("endTimeUnixNano"),
                    kind: span["kind"].as_u64().expect("a kind"),
                    attributes: json_attributes(&span["attributes"]),
                    resource: resource.clone(),
                    schema: schema.to_owned(),
                });
            }
        }
    }
    spans
}

fn attributes(message: &Message<'_>, field: u64) -> Map<String, Json> {
    let all = message.messages(field).into_iter().map(|one| {
        let any = one.message(2).expect("a value");
        let value = match any.fields() {
            [(1, Field::Bytes(text))] => json!(std::str::from_utf8(text).expect("UTF-8")),
            [(2, Field::Varint(is))] => json!(*is != 0),
            [(3, Field::Varint(number))] => json!(number.cast_signed()),
            [(4, Field::Fixed(bits))] => float(f64::from_bits(*bits)),
            other => panic!("{other:?}"),
        };
        (one.text(1).expect("a key"), value)
    });
    all.collect()
}

pub(super) fn of_proto(bytes: &[u8]) -> Vec<OtlpSpan> {
    let mut spans = Vec::new();
    for of in Message::parse(bytes).messages(1) {
        let resource = attributes(&of.message(1).expect("a resource"), 1);
        let scope = of.message(2).expect("a scope");
        let schema = of.text(3).expect("a URL");
        assert_eq!(scope.text(3).as_ref(), Some(&schema));
        for span in scope.messages(2) {
            let id = |field: u64| {
                span.all(field).next().map(|id| match id {
                    Field::Bytes(bytes) => hex(bytes),
                    other => panic!("{other:?}"),
                })
            };
            spans.push(OtlpSpan {
                trace: id(1).expect("an id"),
                id: id(2).expect("an id"),
                parent: id(4),
                name: span.text(5).expect("a name"),
                start: span.number(7).expect("a time"),
                end: span.number(8),
                kind: span.number(6).expect("a kind"),
                attributes: attributes(&span, 9),
                resource: resource.clone(),
                schema: schema.clone(),
            });
        }
    }
    spans
}

#[test]
fn every_span_with_its_values() {
    let nasty = Nasty::record(600, &["-g"]);
    let options = ["--trace-id", "text"];
    let text = fs::read_to_string(nasty.export("otlp", &options)).expect("a file");
    assert!(text.lines().count() > 1);
    let spans = of_json(&text);
    let bytes = fs::read(nasty.export("otlp-proto", &options)).expect("a file");
    assert_eq!(of_proto(&bytes), spans);

    let mut hits = BTreeMap::new();
    let mut first = None;
    for hit in nasty.hits() {
        let time = hit["time_ns"].as_u64().expect("a time");
        first.get_or_insert(time);
        hits.insert(time, hit);
    }
    for name in ["work", "job"] {
        let spans = spans
            .iter()
            .filter(|span| span.name == format!("nasty:{name}"));
        let spans: Vec<&OtlpSpan> = spans.collect();
        let ended: Vec<&&OtlpSpan> = spans.iter().filter(|span| span.end.is_some()).collect();
        let own = ended
            .iter()
            .map(|span| span.attributes["self_ns"].as_u64().expect("ns"));
        let [count, open, _, self_ns] = nasty.spans(name);
        assert_eq!(
            [
                ended.len() as u64,
                (spans.len() - ended.len()) as u64,
                own.sum()
            ],
            [count, open, self_ns],
            "{name}"
        );
    }
    // What the wall clock is ahead by, of a span that is known by its argument.
    let unique = |span: &&OtlpSpan| span.attributes.get("begin.key") == Some(&json!(12));
    let known = spans.iter().find(unique).expect("a span");
    let begin = hits.values().find(|hit| {
        hit["args"]["key"] == json!(12) && hit["event"] == json!("sdt_nasty:work__start")
    });
    let ahead = known.start - begin.expect("a hit")["time_ns"].as_u64().expect("a time");
    for span in &spans {
        for (side, time) in [("begin.", Some(span.start)), ("end.", span.end)] {
            let Some(time) = time else {
                assert!(span.attributes["span"].is_string(), "{span:?}");
                continue;
            };
            // The wall clock may be slewed while it is recorded.
            let near = hits.range(time - ahead - 1000..=time - ahead + 1000);
            let hit = near.min_by_key(|(at, _)| at.abs_diff(time - ahead));
            let (_, hit) = hit.unwrap_or_else(|| panic!("{side} at {}: {span:?}", time - ahead));
            for (name, value) in hit["args"].as_object().expect("args") {
                let expected = match value.as_u64() {
                    Some(number) if i64::try_from(number).is_err() => json!(number.to_string()),
                    _ => value.clone(),
                };
                assert_eq!(
                    span.attributes.get(&format!("{side}{name}")),
                    Some(&expected)
                );
            }
            assert_eq!(span.resource["process.pid"], hit["pid"]);
            assert_eq!(span.attributes[&format!("{side}cpu")], hit["cpu"]);
        }
        assert!(
            span.attributes["code.stacktrace"]
                .as_str()
                .is_some_and(|text| text.contains("start\n"))
        );
    }

    assert_eq!(known.trace, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(known.parent.as_deref(), Some("b7ad6b7169203331"));
    let ids: BTreeMap<&str, usize> = spans.iter().fold(BTreeMap::new(), |mut ids, span| {
        *ids.entry(&*span.id).or_default() += 1;
        ids
    });
    assert_eq!(ids.len(), spans.len(), "each span has its own id");
    let refused = [
        "export",
        "-i",
        "trace",
        "--to",
        "perfetto",
        "-o",
        "out",
        "--trace-id",
        "text",
    ];
    nasty
        .lab
        .usdtrec(refused)
        .exits(2)
        .complains("'--trace-id text' cannot be used with");
}
