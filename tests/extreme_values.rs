//! Empty strings and extreme numbers, in each verb that reads a trace, beside what was recorded: the traces are imported.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use usdtrec_testing::SplitMix64;

use crate::common::{Lab, test};

/// The strings that are recorded, and how each is a field of CSV.
const STRINGS: [(&str, &str); 6] = [
    ("", "\"\""),
    ("-", "-"),
    ("NULL", "NULL"),
    ("a,b", "\"a,b\""),
    (" ", " "),
    ("\"\"", "\"\"\"\"\"\""),
];
/// Floats that are recorded.
const FLOATS: [f64; 8] = [
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MAX,
    -f64::MAX,
    -0.0,
    5e-324,
    1.5,
];

/// What an event has.
struct Values {
    text: usize,
    float: f64,
    unsigned: u64,
    signed: i64,
}

/// Events of one probe, a millisecond apart, in a trace.
fn recorded(lab: &Lab, name: &str, seed: u64) -> Vec<Values> {
    let mut random = SplitMix64(seed);
    let values = (0..400).map(|_| Values {
        text: random.below(STRINGS.len() as u64) as usize,
        float: FLOATS[random.below(FLOATS.len() as u64) as usize],
        unsigned: u64::MAX - random.below(2) * (u64::MAX - 3),
        signed: i64::MIN + random.below(3) as i64,
    });
    let values: Vec<Values> = values.collect();
    let lines = values.iter().enumerate().map(|(at, one)| {
        let data = format!(
            "{}\t0\tsdt_app:x\t7\t7\ta\ts:s={}\tf:f={}\tu={}\ti={}\n",
            (at + 1) * 1_000_000,
            STRINGS[one.text].0,
            one.float,
            one.unsigned,
            one.signed
        );
        serde_json::json!({"type": "printf", "data": data}).to_string() + "\n"
    });
    fs::write(lab.file("in.json"), lines.collect::<String>()).expect("a file");
    lab.usdtrec(["import", "in.json", "-o", name]).success();
    values
}

/// What a verb prints of a trace.
#[track_caller]
fn print(lab: &Lab, verb: &str, trace: &str, options: &[&str]) -> String {
    let args = [&[verb, "-i", trace][..], options].concat();
    lab.usdtrec(args).success().stdout
}

/// The lines of CSV by a column, as fields: quotes stay.
fn column(csv: &str, name: &str) -> Vec<String> {
    let split = |line: &str| {
        let mut fields = vec![String::new()];
        let mut is_quoted = false;
        for letter in line.chars() {
            is_quoted ^= letter == '"';
            match letter {
                ',' if !is_quoted => fields.push(String::new()),
                letter => fields.last_mut().expect("a field").push(letter),
            }
        }
        fields
    };
    let mut lines = csv.lines();
    let heading = split(lines.next().expect("a heading"));
    let place = heading.iter().position(|column| column == name);
    let place = place.unwrap_or_else(|| panic!("{heading:?}"));
    lines.map(|line| split(line)[place].clone()).collect()
}

fn shown(float: f64) -> Value {
    match float.is_finite() {
        true => float.into(),
        false => float.to_string().into(),
    }
}

#[test]
fn each_event_has_its_values() {
    let lab = Lab::new();
    let values = recorded(&lab, "a", 1);
    let json = print(&lab, "script", "a", &["--format", "json"]);
    let csv = print(&lab, "script", "a", &["--format", "csv-raw"]);
    let texts = column(&csv, "s");
    assert_eq!((json.lines().count(), texts.len()), (400, 400));
    for ((one, line), text) in values.iter().zip(json.lines()).zip(texts) {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let args = &event["args"];
        assert_eq!(args["s"], STRINGS[one.text].0, "{line}");
        assert_eq!(text, STRINGS[one.text].1);
        assert_eq!(args["f"], shown(one.float), "{line}");
        assert_eq!(args["u"], one.unsigned);
        assert_eq!(args["i"], one.signed);
    }
    // The empty string is one, for filters, too.
    let empty = print(&lab, "script", "a", &["--filter", "s == \"\""]);
    let expected = values.iter().filter(|one| one.text == 0).count();
    assert_eq!(empty.lines().count(), expected);
}

/// Groups, histograms and spans by strings that are empty.
#[test]
fn empty_strings_are_keys() {
    let lab = Lab::new();
    let values = recorded(&lab, "a", 2);
    let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
    for one in &values {
        *expected.entry(STRINGS[one.text].1).or_default() += 1;
    }
    let check = |csv: &str, key: &str, count: &str| {
        let counts = column(csv, count);
        let counts = counts.iter().map(|count| count.parse().expect("a count"));
        let keys = column(csv, key);
        let found: BTreeMap<&str, u64> = keys.iter().map(String::as_str).zip(counts).collect();
        assert_eq!(found, expected, "{csv}");
    };
    let groups = ["--sort", "s", "--format", "csv-raw"];
    check(&print(&lab, "report", "a", &groups), "s", "samples");
    let histogram = ["--hist", "s", "--format", "csv-raw"];
    check(&print(&lab, "report", "a", &histogram), "from", "count");
    let rates = ["--rate", "10s", "--sort", "s", "--format", "csv-raw"];
    check(&print(&lab, "report", "a", &rates), "s", "count");
    // In text, it is no blank.
    for options in [["--sort", "s"], ["--hist", "s"]] {
        let text = print(&lab, "report", "a", &options);
        let is_empty = |line: &&str| line.split_whitespace().any(|word| word == "\"\"");
        assert!(text.lines().any(|line| is_empty(&line)), "{text}");
    }
    let summary = print(&lab, "report", "a", &["--format", "json"]);
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let arguments = summary["probes"][0]["arguments"]
        .as_array()
        .expect("a list");
    let strings = arguments.iter().find(|argument| argument["name"] == "s");
    let first = strings.expect("strings")["texts"].to_string();
    assert!(first.contains("\"\""), "{first}");
}

/// What is as it was does not differ, and what is not does.
#[test]
fn extreme_values_are_compared() {
    let lab = Lab::new();
    recorded(&lab, "a", 3);
    recorded(&lab, "b", 4);
    for (a, b) in [("a", "a"), ("a", "b")] {
        let compared = lab.usdtrec(["diff", a, b, "--format", "json"]);
        let compared: Value = serde_json::from_str(&compared.success().stdout).expect("JSON");
        for figure in compared["figures"].as_array().expect("figures") {
            assert_ne!(figure["verdict"], "beyond", "{a} {b} {figure}");
        }
        let text = lab.usdtrec(["diff", "-a", a, b]).success().stdout;
        assert!(!text.contains("NaN"), "{text}");
        let csv = lab.usdtrec(["diff", a, b, "--format", "csv-raw"]).success();
        let values = column(&csv.stdout, "value");
        assert!(values.iter().any(|value| value == "\"\""), "{}", csv.stdout);
    }
}

/// Formats of other programs take them.
#[test]
fn exports_have_them() {
    let lab = Lab::new();
    recorded(&lab, "a", 5);
    for format in ["perfetto", "html"] {
        lab.usdtrec(["export", "-i", "a", "--to", format, "-o", format])
            .success();
    }
}
