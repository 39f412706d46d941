//! `stat --prometheus`: the metrics are those of the counts, and Prometheus's own checker accepts them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::common::{Build, Lab, Process, need_tool, run, test, wait_until};

/// A `stat` with metrics, and the program that it counts (testdata/targets/keys.c).
struct Counted {
    stat: Process,
    keys: Process,
}

impl Counted {
    fn start(lab: &Lab, probe: &str, options: &[&str]) -> Self {
        let program = Build::USUAL.make(lab, "keys.c", "keys");
        let keys = Process::spawn(Command::new(&program));
        let event = format!("sdt_keys:{probe}@{}", program.display());
        let pid = keys.pid().to_string();
        let words = [
            "stat", "-I", "30", "--format", "json", "-p", &pid, "-e", &event,
        ];
        let stat = Process::spawn(lab.command(words.iter().chain(options)));
        Self { stat, keys }
    }

    fn obey(&mut self, command: &str) {
        self.keys.say(command);
        while self.keys.line().expect("an answer") != "done" {}
    }

    /// Ends it; what it printed.
    fn end(self) -> Vec<Value> {
        self.stat.signal("INT");
        let ended = self.stat.finish().success();
        let lines = ended.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

/// Checks metrics with Prometheus's own checker, its advice included.
#[track_caller]
fn check(metrics: &str) {
    need_tool("promtool");
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]);
    let mut promtool = Process::spawn(promtool);
    promtool.say(metrics.strip_suffix('\n').expect("a last line"));
    let ended = promtool.finish().success();
    assert_eq!((&*ended.stdout, &*ended.stderr), ("", ""), "{metrics}");
}

/// The samples of a metric, by their labels.
fn samples<'m>(metrics: &'m str, name: &str) -> BTreeMap<&'m str, u64> {
    let begin = format!("{name}{{");
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(&begin));
    let samples = lines.map(|line| {
        let (labels, value) = line.rsplit_once("} ").expect("labels");
        (labels, value.parse().expect("a number"))
    });
    samples.collect()
}

/// The file is whole at each moment, its counters never decrease, and at the end they are what was counted: strings with all that could end a label
/// early, too.
#[test]
fn a_file_has_what_was_counted() {
    let lab = Lab::privileged();
    need_tool("promtool");
    fs::create_dir(lab.file("metrics")).expect("a folder");
    let options = ["--by", "t", "--prometheus", "metrics/m.prom"];
    let mut counted = Counted::start(&lab, "text(t=str(arg1))", &options);
    counted.stat.until_error_line("[ usdtrec stat:");
    let file = lab.file("metrics/m.prom");
    wait_until("the first metrics", || file.exists());
    let hits = [
        (3, "plain", "plain"),
        (2, "a\"} 9 \\", "a\\\"} 9 \\\\"),
        (1, "\x1b[2J", "\\\\x1b[2J"),
        (4, "漢字", "漢字"),
    ];
    let mut before = 0;
    for (count, text, _) in hits {
        counted.obey(&format!("hit {count} {text}"));
        for _ in 0..30 {
            let metrics = fs::read_to_string(&file).expect("metrics");
            assert!(metrics.starts_with("# HELP usdtrec_hits_total "));
            let last = metrics.lines().last().expect("lines");
            let lost = "usdtrec_lost_hits_total{provider=\"keys\",probe=\"text\"} 0";
            assert!(last == lost && metrics.ends_with('\n'), "{metrics}");
            let sum = samples(&metrics, "usdtrec_hits_total").values().sum();
            assert!(before <= sum, "{metrics}");
            before = sum;
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    let lines = counted.end();
    let metrics = fs::read_to_string(&file).expect("it stays");
    check(&metrics);
    let shown = samples(&metrics, "usdtrec_hits_total");
    for (count, text, label) in hits {
        let labels = format!("provider=\"keys\",probe=\"text\",t=\"{label}\"");
        assert_eq!(shown.get(&*labels), Some(&count), "{metrics}");
        let of_key = lines.iter().filter(|line| line["t"] == text);
        let counts = of_key.map(|line| line["count"].as_u64().expect("a count"));
        assert_eq!(counts.sum::<u64>(), count, "{text:?}");
    }
    let others = "provider=\"keys\",probe=\"text\",others=\"true\"";
    assert_eq!((shown.len(), shown.get(others)), (5, Some(&0)), "{metrics}");
    let status = fs::read_to_string("/proc/self/status").expect("our status");
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = u32::from_str_radix(umask.expect("a umask").trim(), 8).expect("a mode");
    let mode = file.metadata().expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o644 & !umask, "others may read it");
    let names = fs::read_dir(lab.file("metrics")).expect("the folder");
    assert_eq!(names.count(), 1, "nothing else is left");
}

/// More groups than have samples of their own, and probes without keys. Nothing is missing in the sum.
#[test]
fn groups_beyond_the_limit_are_others() {
    let lab = Lab::privileged();
    need_tool("promtool");
    let options = ["--by", "key,comm", "--prometheus", "m.prom"];
    let mut counted = Counted::start(&lab, "number(key=arg1)", &options);
    counted.stat.until_error_line("[ usdtrec stat:");
    counted.obey("spread 30000 1500");
    counted.end();
    let metrics = fs::read_to_string(lab.file("m.prom")).expect("metrics");
    check(&metrics);
    let shown = samples(&metrics, "usdtrec_hits_total");
    assert_eq!(shown.len(), 1001);
    assert_eq!(shown.values().sum::<u64>(), 30_000);
    let others = shown.get("provider=\"keys\",probe=\"number\",others=\"true\"");
    assert_eq!(others, Some(&10_000), "500 groups of 20");
    assert!(
        metrics.contains(",key=\"7\",comm=\"keys\"} 20\n"),
        "{metrics}"
    );
    let mut counted = Counted::start(&lab, "*", &["--prometheus", "all.prom"]);
    counted.stat.until_error_line("[ usdtrec stat:");
    counted.obey("hit 3 x");
    counted.end();
    let metrics = fs::read_to_string(lab.file("all.prom")).expect("metrics");
    check(&metrics);
    let right = [
        ("provider=\"keys\",probe=\"number\"", 0),
        ("provider=\"keys\",probe=\"text\"", 3),
    ];
    assert_eq!(samples(&metrics, "usdtrec_hits_total"), right.into());
}

/// Numbers are summaries, or histograms, of all groups with samples of their own.
#[test]
fn numbers_are_summaries_and_histograms() {
    let lab = Lab::privileged();
    need_tool("promtool");
    let options = [
        "--by",
        "key",
        "--value",
        "key",
        "--hist",
        "n",
        "--prometheus",
        "m.prom",
    ];
    let mut counted = Counted::start(&lab, "number(key=arg1,n=arg2)", &options);
    counted.stat.until_error_line("[ usdtrec stat:");
    counted.obey("spread 60 2");
    counted.obey("spread 100 2");
    let lines = counted.end();
    let metrics = fs::read_to_string(lab.file("m.prom")).expect("metrics");
    check(&metrics);
    let value = |name: &str, labels: &str| {
        let labels = format!("provider=\"keys\",probe=\"number\",{labels}");
        let shown = samples(&metrics, &format!("usdtrec_{name}"));
        *shown
            .get(&*labels)
            .unwrap_or_else(|| panic!("{name} {labels}: {metrics}"))
    };
    for (key, sum, least, most) in [(0, 3320, 0, 98), (1, 3400, 1, 99)] {
        let labels = format!("key=\"{key}\"");
        assert_eq!(value("hits_total", &labels), 80);
        assert_eq!(value("value_keys_number_n_sum", &labels), sum);
        assert_eq!(value("value_keys_number_n_count", &labels), 80);
        for (bound, count) in [("31", 32), ("63", 62), ("127", 80), ("+Inf", 80)] {
            let labels = format!("{labels},le=\"{bound}\"");
            assert_eq!(
                value("value_keys_number_n_bucket", &labels),
                count,
                "{bound}"
            );
        }
        assert_eq!(value("minimum_keys_number_n", &labels), least);
        assert_eq!(value("maximum_keys_number_n", &labels), most);
        assert_eq!(value("value_keys_number_key_sum", &labels), 80 * key);
        let printed = lines.iter().filter(|line| line["key"] == key);
        let printed = printed.filter_map(|line| line["n.sum"].as_u64());
        assert_eq!(printed.sum::<u64>(), sum, "that of all intervals");
    }
    assert!(!metrics.contains("value_keys_number_key_bucket"));
}

#[test]
fn files_that_cannot_be_replaced_are_refused() {
    let lab = Lab::privileged();
    let mut mkfifo = Command::new("mkfifo");
    mkfifo.arg(lab.file("fifo"));
    run(mkfifo).success();
    // Opened for both, it is nobody's turn to wait.
    let fifo = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(lab.file("fifo"));
    let _reader = fifo.expect("the FIFO");
    let stat = |options: &[&str]| {
        let words = ["stat", "-e", "x:y"].iter().chain(options);
        lab.usdtrec(words)
    };
    stat(&["--prometheus", "m.prom"])
        .exits(2)
        .complains("--interval");
    stat(&["-I", "1000", "--prometheus", "fifo"])
        .exits(2)
        .complains("expected a file, which is replaced at each interval");
    stat(&["-I", "1000", "--prometheus", "missing/m.prom"])
        .exits(1)
        .complains("missing/m.prom: ");
    stat(&["-I", "1000", "--prometheus", "."])
        .exits(1)
        .complains(".: is a directory");
}

/// A folder that is gone is said once, at once, and at the end; what is printed goes on.
#[test]
fn a_file_that_fails_later_is_said() {
    let lab = Lab::privileged();
    fs::create_dir(lab.file("gone")).expect("a folder");
    let mut counted = Counted::start(&lab, "text", &["--prometheus", "gone/m.prom"]);
    counted.stat.until_error_line("[ usdtrec stat:");
    wait_until("the first metrics", || lab.file("gone/m.prom").exists());
    fs::rename(lab.file("gone"), lab.file("else")).expect("another name");
    counted
        .stat
        .until_error_line("tried again at the next interval");
    counted.obey("hit 3 x");
    counted.stat.signal("INT");
    let ended = counted.stat.finish().exits(1).complains("gone/m.prom: ");
    assert_eq!(ended.stderr.matches("tried again").count(), 1);
    let printed = ended
        .stdout
        .lines()
        .filter(|line| line.contains("\"count\":3"));
    assert_eq!(printed.count(), 1, "{}", ended.stdout);
}
