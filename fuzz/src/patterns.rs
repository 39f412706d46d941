//! What is written on the command line: lines that are taken as patterns, spans of time, lists of CPUs and of fields.

use usdtrec_format::Pattern;
use usdtrec_report::script::{FieldChoice, Template};
use usdtrec_report::{CpuSet, TimeRange, TimeSpan, TraceTimes};

/// Parses every line, and matches each pattern with every other line.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split('\n').take(8).collect();
    for line in &lines {
        if let Ok(span) = line.parse::<TimeSpan>() {
            let first = |samples: TimeRange| {
                let end = samples.last;
                let trace = TraceTimes { samples, end };
                span.within(trace, None).map(|range| range.first)
            };
            assert!(first(TimeRange::ALL) <= first(TimeRange::at(u64::MAX)));
        }
        if let Ok(cpus) = line.parse::<CpuSet>() {
            assert!(!cpus.contains(u32::MAX) || line.contains("4294967295"));
        }
        let _ = line.parse::<FieldChoice>();
        let _ = line.parse::<Template>();
        match Pattern::parse(line) {
            Ok(pattern) => {
                for name in &lines {
                    let matches = pattern.matches(name, name);
                    if pattern.matches_event(name) {
                        assert!(name.contains(':'));
                    }
                    if pattern.is_exact() && matches {
                        let same =
                            |a: &str, b: &str| a.replace('-', "__").contains(&b.replace('-', "__"));
                        assert!(same(line, name), "{line:?} {name:?}");
                    }
                }
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control), "{error}"),
        }
    }
}
