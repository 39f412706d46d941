//! `--filter` of script and report, compared with what the events say without it.

use std::fs;

use crate::common::{Event, Lab, Number, test};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

const SCHEMA: &str = r#"
provider = "usdtrec"
[enum.status]
200 = "ok"
404 = "not_found"
[[probe]]
name = "request__done"
arguments = ["id", "status: s32 enum(status)", "bytes: u64", "latency: f64 ms", "worker: u8", "retries"]
"#;

fn events(lab: &Lab, options: &[&str]) -> Vec<Event> {
    let script = ["script", "--format", "json", "-i", TRACE];
    let script = lab.usdtrec([&script[..], options].concat()).success();
    Event::parse_lines(&script.stdout)
}

#[test]
fn only_what_is_true_passes() {
    let lab = Lab::new();
    fs::write(lab.file("s.toml"), SCHEMA).unwrap();
    let all = events(&lab, &[]);
    let done = |event: &Event| event.name() == "request__done";
    let float = |event: &Event, number| match event.argument(number) {
        Ok(Number::Float(value)) => value,
        other => panic!("{other:?}"),
    };
    type Judge<'a> = &'a dyn Fn(&Event) -> bool;
    let cases: [(&str, Judge<'_>); 7] = [
        ("arg2 < 0", &|event| done(event) && event.integer(2) < 0),
        ("arg3 > 40000 && arg5 == 2 || arg2 == 404", &|event| {
            done(event)
                && (event.integer(3) > 40000 && event.integer(5) == 2 || event.integer(2) == 404)
        }),
        ("latency >= 1.5", &|event| {
            done(event) && float(event, 4) >= 1.5
        }),
        ("status == \"not_found\"", &|event| {
            done(event) && event.integer(2) == 404
        }),
        ("(u8)id == 0x10", &|event| {
            done(event) && event.integer(1) % 256 == 16
        }),
        ("cpu == 1 && pid == tid && comm ~ \"usd*\"", &|event| {
            event.cpu == 1
        }),
        ("!(arg1 % 100)", &|event| event.integer(1) % 100 == 0),
    ];
    for (filter, judge) in cases {
        let expected: Vec<u64> = all
            .iter()
            .filter(|event| judge(event))
            .map(|event| event.time_ns)
            .collect();
        let options = ["--schema", "s.toml", "--filter", filter];
        let passed = events(&lab, &options);
        let passed: Vec<u64> = passed.iter().map(|event| event.time_ns).collect();
        assert_eq!(passed, expected, "{filter}");
        assert!(
            !expected.is_empty() && expected.len() < all.len(),
            "{filter}"
        );
        let report = ["report", "--format", "json", "-i", TRACE];
        let report = lab
            .usdtrec([&report[..], &options].concat())
            .success()
            .stdout;
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["events"], expected.len(), "{filter}");
    }
}

#[test]
fn what_cannot_be_asked_is_said_with_its_place() {
    let lab = Lab::new();
    fs::write(lab.file("s.toml"), SCHEMA).unwrap();
    for (filter, words) in [
        ("arg1 >", "at byte 7: expected a number"),
        (
            "arg1 == 1 && colour",
            "at byte 14: sdt_usdtrec:request__done has no argument colour; it has id,",
        ),
        (
            "status == \"odd\"",
            "\"odd\" is not one of its words: ok, not_found",
        ),
    ] {
        let script = [
            "script", "-i", TRACE, "--schema", "s.toml", "--filter", filter,
        ];
        let refused = lab.usdtrec(script);
        assert!(
            !refused.status.success() && refused.stdout.is_empty(),
            "{filter}"
        );
        assert!(
            refused.stderr.contains(words),
            "{filter}: {}",
            refused.stderr
        );
    }
}
