//! Options with values, and how it is seen that each is obeyed.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use usdtrec_format::trace::Trace;

use super::hits::Kind;
use super::seen::Seen;

/// An option with a value.
pub(super) struct Choice {
    /// As docs/options.md has it.
    pub(super) option: &'static str,
    /// Its words. [`Run::command`] knows more of `-e`, `--filter` and `CMD`, and puts in what is in braces.
    pub(super) words: &'static str,
    /// Whether its effect is seen.
    pub(super) shows: fn(&Seen<'_>) -> bool,
}

pub(super) const fn choice(
    option: &'static str,
    words: &'static str,
    shows: fn(&Seen<'_>) -> bool,
) -> Choice {
    Choice {
        option,
        words,
        shows,
    }
}

pub(super) const CAPTURE: [Choice; 21] = [
    choice("-e, --event", "-e", |seen| seen.hits(Kind::First)),
    choice("--filter", "--filter", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Small)
    }),
    choice("-a, --all-cpus", "-a", |seen| seen.hits(Kind::Strange)),
    choice("-p, --pid", "-p {pid}", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Strange)
    }),
    choice("-t, --tid", "-t {pid}", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Thread)
    }),
    choice("<CMD>", "CMD", |seen| seen.exists("command.log")),
    choice("-i, --no-inherit", "-i", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::Child)
    }),
    choice("-C, --cpu", "-C 0", |seen| {
        seen.hits(Kind::First) && !seen.hits(Kind::LastCpu)
    }),
    // It is rounded up to a power of two pages, and mapped with a page or two of the kernel's.
    choice("-m, --mmap-pages", "-m 5M", |seen| {
        let mut rings = seen.looked.rings.iter();
        rings.any(|ring| (8 << 20..=(16 << 20) + (8 << 10)).contains(ring))
    }),
    choice("--duration", "--duration {duration}", |seen| seen.by_itself),
    choice("--engine", "--engine bpf-perf", |seen| {
        seen.looked.descriptors.contains("bpf-prog")
            && seen.looked.descriptors.contains("[perf_event]")
    }),
    choice("--engine", "--engine perf-tracefs", |seen| {
        seen.looked.children.contains("guard-tracefs")
    }),
    choice("--strings", "--strings off", |seen| {
        // An address may have these digits.
        let texts = ["\"abc", "=abc", ":abc", ",abc"];
        !texts.iter().any(|text| seen.text.contains(text))
    }),
    choice("--strings", "--strings all", |seen| {
        let empty = ["arg3=\"\"", "empty=\"\"", ":\"\"", ",,"];
        empty.iter().any(|text| seen.text.contains(text))
    }),
    choice("--nonresident", "--nonresident never", |seen| {
        seen.hits(Kind::Far) && !seen.text.contains("far away")
    }),
    choice("--strlen", "--strlen 5", |seen| {
        seen.text.contains("abcde") && !seen.text.contains("abcdef")
    }),
    choice("--schema", "--schema named.toml", |seen| {
        seen.text.contains("numbered")
    }),
    choice("-f, --force", "-f", |seen| {
        match seen.run.verb {
            "top" => return seen.text.contains("pairs:forced "),
            "stat" => return seen.counted("pairs:forced") > 0,
            _ => {}
        }
        seen.hits(Kind::Forced)
    }),
    choice("-q, --quiet", "-q", |seen| !seen.says("[ usdtrec")),
    choice("-v, --verbose", "-v", |seen| seen.says(" at offset 0x")),
    choice("--buildid-dir", "--buildid-dir other", |seen| {
        seen.exists("other/.build-id")
    }),
];

pub(super) const RECORD: [Choice; 10] = [
    choice("-o, --output", "-o out", |seen| {
        seen.exists("out") || seen.exists("out.1") || seen.exists("out.3")
    }),
    choice("-z, --compression-level", "-z0", |seen| {
        let files = seen.traces();
        let files: Vec<Vec<u8>> = files.iter().flat_map(fs::read).collect();
        let stands = |number: u32| {
            let mut words = files.iter().flat_map(|file| file.windows(4));
            words.any(|word| word == number.to_le_bytes())
        };
        let first = Kind::First.first();
        (first..first + 8).all(stands)
    }),
    choice("--max-size", "--max-size 300K", |seen| seen.by_itself),
    choice("--switch-output", "--switch-output", |seen| {
        seen.exists("out.3") || seen.exists("usdtrec.data.3")
    }),
    choice("--switch-max-files", "--switch-max-files 1", |seen| {
        !seen.exists("out.1") && !seen.exists("usdtrec.data.1")
    }),
    choice("-g", "-g", |seen| seen.text.contains("\n\t")),
    choice("--call-graph", "--call-graph fp", |seen| {
        seen.text.contains("\n\t")
    }),
    choice("--max-stack", "--max-stack 1", |seen| {
        seen.text.contains("[cut: the limit of frames is 1]")
    }),
    choice("--stack-rate", "--stack-rate 1", |seen| {
        seen.text.contains("[cut: no stack was taken")
    }),
    choice("--no-symbols", "--no-symbols", |seen| {
        let files = seen.traces();
        let has_none = |file: &PathBuf| Trace::open(file).expect("a trace").code_names().is_none();
        files.iter().all(has_none)
    }),
];

pub(super) const TRACE: [Choice; 9] = [
    // What comes after the hits of pairs:go on a thread has their arguments.
    choice("--with", "--with go..deep", |seen| {
        ["go.arg", "go.numbered"]
            .iter()
            .any(|name| seen.text.contains(name))
    }),
    choice("-o, --output", "-o out", |seen| seen.exists("out")),
    choice("-F, --fields", "-F -comm", |seen| {
        seen.hits(Kind::First) && !seen.text.contains("pairs  ") && !seen.text.contains("comm")
    }),
    choice("--times", "--times reltime", |seen| {
        seen.text.contains("0.000000") || seen.text.contains("reltime_ns")
    }),
    choice("--times", "--times deltatime", |seen| {
        seen.text.contains("0.0000") || seen.text.contains("deltatime_ns")
    }),
    choice("--times", "--times ns", |seen| {
        let mut fractions = seen.text.split('.').skip(1);
        fractions.any(|rest| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit);
            digits.count() == 9
        })
    }),
    choice("--format", "--format json", |seen| {
        seen.text.starts_with('{')
    }),
    choice("--format", "--format csv", |seen| {
        let head = seen.text.lines().next().unwrap_or_default();
        head.contains("time_ns,") && head.contains(",missing")
    }),
    choice("--format", "--format T:{time}\\t{args}", |seen| {
        seen.text.starts_with("T:")
    }),
];

pub(super) const TOP: [Choice; 4] = [
    choice("--by", "--by comm", |seen| {
        let words = |line: &str| {
            let words = line.split_whitespace().take(2);
            words.collect::<Vec<_>>().join(" ")
        };
        seen.text
            .lines()
            .any(|line| words(line) == "pairs:go pairs")
    }),
    // Rows of each table are in the order of probes, then of names.
    choice("--order", "--order key", |seen| {
        let tables = seen.text.split("Probe ").skip(1);
        let rows = |table: &str| -> Vec<String> {
            let rows = table
                .lines()
                .filter(|line| line.contains(":") && !line.starts_with("#"));
            rows.map(|row| row.split("  ").next().unwrap_or_default().to_owned())
                .collect()
        };
        let mut tables = tables.map(rows);
        tables.all(|rows| rows.is_sorted())
    }),
    choice("-d, --delay", "-d {delay}", |seen| {
        seen.took >= Duration::from_millis(1200)
    }),
    choice("-n, --iterations", "-n 2", |seen| {
        let tables = seen.text.lines().filter(|line| line.starts_with("Probe "));
        seen.by_itself && tables.count() == 2
    }),
];

pub(super) const STAT: [Choice; 10] = [
    choice("--by", "--by comm", |seen| {
        let words = |line: &str| {
            line.split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let marks = ["\"comm\":\"pairs\"", ",sdt_pairs:go,pairs,"];
        marks.iter().any(|mark| seen.text.contains(mark))
            || seen
                .text
                .lines()
                .any(|line| words(line) == "pairs:go pairs")
    }),
    choice("--value", "--value arg1", |seen| {
        seen.text.contains("arg1.mean") || seen.text.contains("mean")
    }),
    choice("--hist", "--hist arg4", |seen| {
        let text = seen.text.contains("log2 buckets");
        text || seen.text.contains("arg4.p99")
    }),
    choice("-I, --interval", "-I 10", |seen| {
        let rows = seen.text.lines().filter(|line| line.contains("pairs:go"));
        // Groups without hits in an interval are not printed.
        rows.count() > usize::from(!seen.run.has("--by comm"))
    }),
    choice("--format", "--format json", |seen| {
        seen.text.starts_with('{')
    }),
    choice("--format", "--format csv", |seen| {
        seen.text.starts_with("elapsed_ns,")
    }),
    choice("--prometheus", "--prometheus out.prom", |seen| {
        let file = seen.lab.file("out.prom");
        let text = fs::read_to_string(file).expect("metrics");
        text.contains("usdtrec_hits_total{provider=\"pairs\",probe=\"go\"")
    }),
    choice("--listen", "--listen 127.0.0.1:0", |seen| {
        seen.run.has("-q") || seen.says("usdtrec: metrics at http://127.0.0.1:")
    }),
    choice("-x, --field-separator", "-x,", |seen| {
        seen.text.starts_with("elapsed_ns,")
    }),
    choice("-o, --output", "-o out", |seen| seen.exists("out")),
];

/// Options whose effect needs another one.
pub(super) const NEEDS: &[(&str, &str)] = &[
    ("--max-stack 1", "-g"),
    ("--stack-rate 1", "-g"),
    ("--no-symbols", "-g"),
    ("-i", "CMD"),
    ("--switch-max-files 1", "--switch-output"),
    ("--order key", "--by comm"),
    ("--prometheus out.prom", "-I 10"),
    ("--listen 127.0.0.1:0", "-I 10"),
];

/// Options that end the recording.
pub(super) const ENDERS: [&str; 3] = ["--duration {duration}", "--max-size 300K", "-n 2"];

/// What is refused by `stat` alone, which writes no records.
pub(super) const OF_RECORDS: [&str; 1] = ["-m, --mmap-pages"];

/// What is refused by `top` and `stat`, which show no arguments.
pub(super) const OF_ARGUMENTS: [&str; 4] = ["--strings", "--strlen", "--nonresident", "--schema"];
