//! `--to html`: a page whose numbers are those of `report`, which is small, well-formed, and safe whatever the traced program's names and strings are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::nasty::Nasty;
use crate::common::{Lab, need_tool, run, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
const PYTHON: &str = "/usr/bin/python3.11";
/// The greatest page, bytes.
const MAX_PAGE_BYTES: usize = 2_000_000;

/// What is in a page, by Python's parser of HTML.
struct Page(Json);

impl Page {
    /// Reads a page, and checks what holds of all pages.
    #[track_caller]
    fn read(path: &Path) -> Self {
        need_tool(PYTHON);
        let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export/page.py");
        let mut python = Command::new(PYTHON);
        python.arg(reader).arg(path);
        let found: Json = serde_json::from_str(&run(python).success().stdout).expect("JSON");
        assert_eq!(
            found["faults"].as_array().map(Vec::len),
            Some(0),
            "{}",
            found["faults"]
        );
        let length = fs::metadata(path).expect("the page").len() as usize;
        assert!(length < MAX_PAGE_BYTES, "{length} bytes");
        Self(found)
    }

    /// The rows of the tables of a class in a section.
    fn rows(&self, section: &str, class: &str) -> Vec<&Vec<Json>> {
        let tables = items(&self.0["tables"]);
        let tables = tables.filter(|table| table["section"] == section && table["class"] == class);
        let rows = tables.flat_map(|table| items(&table["rows"]));
        rows.map(|row| row.as_array().expect("cells")).collect()
    }

    fn map(&self, section: &str) -> &Json {
        let found = items(&self.0["maps"]).find(|map| map["section"] == section);
        found.unwrap_or_else(|| panic!("a heat map in {section}"))
    }
}

fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().expect("a list").iter()
}

/// The number of a cell as scripts sort it, and as people read it.
fn number(cell: &Json) -> u64 {
    let value = cell["v"].as_str().expect("a number");
    value.parse().expect("a number")
}

#[track_caller]
fn report(lab: &Lab, input: &str, options: &[&str]) -> Vec<Json> {
    let head = ["report", "-i", input, "--format", "json"];
    let report = lab.usdtrec([&head[..], options].concat()).success().stdout;
    let lines = report
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

/// The figures of a row of spans, which are after its name.
#[track_caller]
fn same_figures(row: &[Json], span: &Json) {
    let names = [
        "count", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns", "sum_ns", "self_ns", "total_ns",
    ];
    for (cell, name) in row.iter().skip(1).zip(names) {
        assert_eq!(
            number(cell),
            span[name].as_u64().expect("a number"),
            "{name} of {row:?}"
        );
    }
}

/// Counts by place, without those that are 0.
fn counts(list: &Json) -> BTreeMap<String, u64> {
    let counts = items(list).enumerate();
    let counts = counts.map(|(at, count)| (at.to_string(), count.as_u64().expect("a count")));
    counts.filter(|(_, count)| *count > 0).collect()
}

fn map_counts(row: &Json) -> BTreeMap<String, u64> {
    let counts = row["counts"].as_object().expect("counts").iter();
    counts
        .map(|(at, count)| (at.clone(), count.as_u64().expect("a count")))
        .collect()
}

/// Compares all numbers of a page with those of the report.
fn compare(lab: &Lab, input: &str, page: &Page) {
    let [summary] = &report(lab, input, &[])[..] else {
        panic!("one summary")
    };
    let probes = items(&summary["probes"]).filter(|probe| probe["count"] != 0);
    let rows = page.rows("events", "data probes");
    assert!(!rows.is_empty());
    for (row, probe) in rows.iter().zip(probes) {
        assert_eq!(number(&row[1]), probe["count"].as_u64().expect("a count"));
        let rate: f64 = row[2]["v"]
            .as_str()
            .expect("a rate")
            .parse()
            .expect("a number");
        assert_eq!(Some(rate), probe["per_second"].as_f64());
        let event = probe["event"].as_str().expect("a name");
        assert_eq!(row[0]["text"], event.trim_start_matches("sdt_"));
    }
    for (row, process) in page
        .rows("processes", "data processes")
        .iter()
        .zip(items(&summary["processes"]))
    {
        assert_eq!(number(&row[1]), process["pid"].as_u64().expect("a pid"));
        assert_eq!(number(&row[2]), process["count"].as_u64().expect("a count"));
    }
    compare_values(page, summary);
    compare_rates(lab, input, page);
    let mut spans: Vec<&Json> = items(&summary["spans"])
        .filter(|span| span["count"] != 0)
        .collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span["total_ns"].as_u64()));
    for (row, span) in page.rows("spans", "data spans").iter().zip(&spans) {
        same_figures(row, span);
        let counts = ["open", "unfinished"].map(|name| span[name].as_u64().expect("a number"));
        assert_eq!(number(&row[10]), counts[0] - counts[1]);
    }
    for (at, span) in spans.iter().enumerate().take(6) {
        let section = format!("span-{}", at + 1);
        compare_span(
            lab,
            input,
            page,
            &section,
            span["name"].as_str().expect("a name"),
        );
    }
}

/// The values of arguments.
fn compare_values(page: &Page, summary: &Json) {
    let mut listed = Vec::new();
    for probe in items(&summary["probes"]) {
        for argument in items(&probe["arguments"]) {
            let numbers = argument["values"].as_array();
            let texts = argument["texts"]["values"].as_array();
            for values in [numbers, texts].into_iter().flatten() {
                listed.extend(
                    values
                        .iter()
                        .take(40)
                        .map(|value| value["count"].as_u64().expect("a count")),
                );
            }
        }
    }
    let shown: Vec<u64> = page
        .rows("arguments", "data values")
        .iter()
        .map(|row| number(&row[1]))
        .collect();
    assert_eq!(shown, listed);
}

fn compare_rates(lab: &Lab, input: &str, page: &Page) {
    let map = page.map("events");
    let step = format!("{}ns", map["step"].as_str().expect("a length"));
    let rates = report(lab, input, &["--rate", &step]);
    let rates: Vec<&Json> = rates
        .iter()
        .filter(|series| !counts(&series["counts"]).is_empty())
        .collect();
    assert_eq!(items(&map["rows"]).count(), rates.len());
    for (row, series) in items(&map["rows"]).zip(rates) {
        assert_eq!(map_counts(row), counts(&series["counts"]));
        assert_eq!(map["from"], series["from_ns"].to_string());
    }
}

/// The section of a kind of spans.
fn compare_span(lab: &Lab, input: &str, page: &Page, section: &str, name: &str) {
    let subject = format!("span:{name}");
    let [heat] = &report(lab, input, &["--heatmap", &subject])[..] else {
        panic!("one map")
    };
    let map = page.map(section);
    let buckets: Vec<&Json> = items(&heat["buckets"]).collect();
    assert_eq!(items(&map["rows"]).count(), buckets.len());
    for (row, bucket) in items(&map["rows"]).zip(buckets.iter().rev()) {
        assert_eq!(map_counts(row), counts(&bucket["counts"]));
    }
    assert_eq!(map["step"], heat["interval_ns"].to_string());
    let [histogram] = &report(lab, input, &["--hist", &subject])[..] else {
        panic!("one histogram")
    };
    let bars = page.rows(section, "bars");
    assert_eq!(bars.len(), items(&histogram["buckets"]).count());
    for (row, bucket) in bars.iter().zip(items(&histogram["buckets"])) {
        assert_eq!(number(&row[0]), bucket["from"].as_u64().expect("a number"));
        assert_eq!(number(&row[1]), bucket["count"].as_u64().expect("a number"));
    }
    let tables = items(&page.0["tables"]);
    let mut groups =
        tables.filter(|table| table["section"] == section && table["class"] == "data groups");
    let by = groups
        .next()
        .map(|table| table["columns"][0].as_str().expect("a key"));
    let mut options = vec!["--span", name, "--top", "20"];
    options.extend(by.iter().flat_map(|by| ["--by", by]));
    let [spans] = &report(lab, input, &options)[..] else {
        panic!("one report")
    };
    let span = &spans["spans"][0];
    let rows = page.rows(section, "data groups");
    assert_eq!(rows.len(), items(&span["groups"]).count());
    for (row, group) in rows.iter().zip(items(&span["groups"])) {
        same_figures(row, group);
    }
    let slow = page.rows(section, "slow");
    assert_eq!(slow.len(), items(&span["slowest"]).count());
    for (row, slowest) in slow.iter().zip(items(&span["slowest"])) {
        assert_eq!(
            number(&row[0]),
            slowest["duration_ns"].as_u64().expect("a number")
        );
        assert_eq!(
            number(&row[1]),
            slowest["time_ns"].as_u64().expect("a number")
        );
        for name in slowest["args"].as_object().expect("arguments").keys() {
            let shown = row[3]["text"].as_str().expect("a text");
            assert!(shown.contains(&format!("{name}=")), "{shown}");
        }
    }
}

#[test]
fn numbers_are_those_of_the_report() {
    let lab = Lab::new();
    let export = ["export", "-i", DEMO, "--to", "html", "-o", "page.html"];
    lab.usdtrec(export).success().silent();
    let page = Page::read(&lab.file("page.html"));
    compare(&lab, DEMO, &page);
    assert!(!page.rows("span-1", "slow").is_empty());
    let written = |name: &str| fs::read(lab.file(name)).expect("a page");
    for threads in ["1", "5"] {
        let mut command = lab.command(export);
        command.env("RAYON_NUM_THREADS", threads);
        let before = written("page.html");
        run(command).success();
        assert!(
            before == written("page.html"),
            "the page of {threads} threads is another one"
        );
    }
}

/// What is unusual is after the tables, in the order of time, and in the clock of all other times of the page.
#[test]
fn unusual_times_are_in_order_and_of_one_clock() {
    let lab = Lab::new();
    let mut lines = String::new();
    for slot in 0..8000_u64 {
        // The second burst is the strongest.
        let hits = match slot {
            1500..1750 => 5,
            4000..4250 => 9,
            6500..6750 => 7,
            _ => 1,
        };
        for hit in 0..hits {
            let time = 7_000_000_000 + slot * 1_000_000 + hit;
            let event = format!("{time}\\t1\\tusdt:/usr/bin/app:app:hit\\t77\\t77\\tapp\\n");
            let _ = writeln!(lines, "{{\"type\": \"printf\", \"data\": \"{event}\"}}");
        }
    }
    fs::write(lab.file("hits.json"), lines).expect("a file");
    lab.usdtrec(["import", "hits.json", "-o", "hits.data"])
        .success();
    lab.usdtrec([
        "export",
        "-i",
        "hits.data",
        "--to",
        "html",
        "-o",
        "page.html",
    ])
    .success();
    let page = Page::read(&lab.file("page.html"));
    let text = page.0["text"].as_str().expect("a text");
    let (before, after) = text
        .split_once(" times its median rate at ")
        .expect("bursts");
    assert!(before.contains("hit at up to ") && before.contains("Events over time"));
    let [summary] = &report(&lab, "hits.data", &[])[..] else {
        panic!("one summary")
    };
    let bursts = items(&summary["unusual"]).find(|unusual| unusual["kind"] == "burst");
    let times = items(&bursts.expect("bursts")["times"]);
    let mut times: Vec<u64> = times
        .map(|time| time["from_ns"].as_u64().expect("a time"))
        .collect();
    assert_eq!(times.len(), 3);
    assert!(!times.is_sorted(), "the strongest is the first: {times:?}");
    times.sort_unstable();
    let seconds = |time: &u64| {
        format!(
            "{}.{:06} s",
            time / 1_000_000_000,
            time % 1_000_000_000 / 1000
        )
    };
    let expected: Vec<String> = times.iter().map(seconds).collect();
    assert!(after.starts_with(&expected.join(", ")), "{after}");
}

#[test]
fn names_and_strings_of_programs_are_text() {
    let nasty = Nasty::record(50, &["-g"]);
    let path = nasty.export("html", &[]);
    let page = Page::read(&path);
    compare(&nasty.lab, "trace", &page);
    let text = page.0["text"].as_str().expect("a text");
    for shown in [
        r#"a\"b\\c\n\t\r</script>\x1b[2J"#,
        r"not \xff\xfe UTF-8",
        r"\u{202e}",
        r#"deep \"er\"\n"#,
    ] {
        assert!(text.contains(shown), "{shown}");
    }
    let written = fs::read_to_string(&path).expect("the page");
    assert_eq!(written.matches("</script").count(), 1);
    compare_flames(&nasty, &page);
}

/// Frames have the weights of the folded stacks.
fn compare_flames(nasty: &Nasty, page: &Page) {
    let flames: Vec<&Json> = items(&page.0["flames"]).collect();
    assert_eq!(flames.len(), 2);
    let folded = ["export", "-i", "trace", "--to", "folded", "-o", "-"];
    let longest = items(&page.0["tables"]).find(|table| table["class"] == "data spans");
    let longest = longest
        .and_then(|table| table["rows"][0][0]["text"].as_str())
        .expect("a span");
    for (flame, options) in flames.into_iter().zip([&[][..], &["--span", longest]]) {
        let lines = nasty
            .lab
            .usdtrec([&folded[..], options].concat())
            .success()
            .stdout;
        let mut expected: BTreeMap<(usize, String), u64> = BTreeMap::new();
        for line in lines.lines() {
            let (stack, weight) = line.rsplit_once(' ').expect("a weight");
            let weight: u64 = weight.parse().expect("a number");
            for (depth, name) in stack.split(';').enumerate() {
                *expected.entry((depth, name.to_owned())).or_default() += weight;
            }
        }
        let mut found: BTreeMap<(usize, String), u64> = BTreeMap::new();
        for frame in items(&flame["frames"]) {
            let depth = (frame["y"].as_f64().expect("a place") / 18.0) as usize;
            let name = frame["name"].as_str().expect("a name").to_owned();
            *found.entry((depth, name)).or_default() += frame["weight"].as_u64().expect("a weight");
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn selections_and_spans_are_those_of_other_exports() {
    let lab = Lab::new();
    let export = |options: &[&str]| {
        let head = ["export", "-i", DEMO, "--to", "html", "-o", "page.html"];
        lab.usdtrec([&head[..], options].concat())
    };
    export(&["--time", "10%-20%"]).success();
    let part = Page::read(&lab.file("page.html"));
    let [summary] = &report(&lab, DEMO, &["--time", "10%-20%"])[..] else {
        panic!("one summary")
    };
    let counts = part.rows("events", "data probes");
    let counts: u64 = counts.iter().map(|row| number(&row[1])).sum();
    assert_eq!(summary["events"].as_u64(), Some(counts));
    export(&["--time", "0,0.000001"]).success();
    let empty = Page::read(&lab.file("page.html"));
    assert!(
        empty.0["text"]
            .as_str()
            .expect("a text")
            .contains("No events.")
    );
    // The end's argument, which events do not have.
    let of_end = ["--span", "request", "--filter", "request__done.arg2 == 500"];
    export(&of_end).success();
    let page = Page::read(&lab.file("page.html"));
    let [spans] = &report(&lab, DEMO, &of_end)[..] else {
        panic!("one report")
    };
    let [row] = page.rows("spans", "data spans")[..] else {
        panic!("one kind of span")
    };
    same_figures(row, &spans["spans"][0]);
    assert!(number(&row[1]) > 0);
    export(&["--span", "nowhere"]).exits(1).complains("nowhere");
    let refused = lab.usdtrec(["report", "-i", DEMO, "--html", "page.html"]);
    refused.exits(2).complains("use export --to html -o FILE");
    export(&["--key", "tid"]).exits(2).complains("--key");
    // Only slow spans.
    export(&["--min", "1ms"]).success();
    let page = Page::read(&lab.file("page.html"));
    let expected = &report(&lab, DEMO, &["--min", "1ms"])[0]["spans"];
    let rows = page.rows("spans", "data spans");
    let slow = items(expected).filter(|span| span["count"].as_u64() > Some(0));
    for span in slow {
        let name = span["name"].as_str().expect("a name");
        // Without the provider where that is clear.
        let is_named = |row: &&&Vec<Json>| {
            let shown = row[0]["text"].as_str().expect("a text");
            name.ends_with(shown)
        };
        let row = rows.iter().find(is_named);
        same_figures(row.expect("a row"), span);
    }
}
