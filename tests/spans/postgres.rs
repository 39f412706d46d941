//! PostgreSQL 15 under pgbench: which statement is slow, and how long locks are waited for and held.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use super::walk::{Asked, ask, list, number};
use crate::common::{Lab, Postgres, Recorder, test};

const CLIENTS: usize = 3;
const TRANSACTIONS: usize = 40;

const QUERY: Asked<'_> = Asked {
    starts: &["query__start"],
    dones: &["query__done"],
    key: None,
    by: &["query"],
};

/// What pgbench says of a script.
struct Said {
    /// Its statements, each up to the first variable or number.
    statements: Vec<String>,
    /// How long all of it took at the most, ns.
    took: u64,
}

/// Records a server while pgbench runs a script; what pgbench says of it.
#[track_caller]
fn record(lab: &Lab, postgres: &Postgres, events: &[&str], script: &str) -> Said {
    // Of this file alone: what other programs of this host are is not asked.
    let program = Postgres::program();
    let events = events
        .iter()
        .map(|event| format!("{event}@{}", program.display()));
    let events: Vec<String> = events.collect();
    let mut options = vec!["-a", "-m", "64M", "-o", "trace"];
    for event in &events {
        options.extend(["-e", event]);
    }
    let script = postgres.script(script);
    let recorder = Recorder::start(lab, options);
    let (clients, transactions) = (CLIENTS.to_string(), TRANSACTIONS.to_string());
    let options = ["-n", "-r", "-c", &clients, "-t", &transactions, "-f"];
    let script = script.to_str().expect("a path");
    let begin = Instant::now();
    let pgbench = postgres.client("pgbench", options.into_iter().chain([script]));
    let took = u64::try_from(begin.elapsed().as_nanos()).expect("not that long");
    let processed = format!(
        "transactions actually processed: {0}/{0}",
        CLIENTS * TRANSACTIONS
    );
    assert!(pgbench.stdout.contains(&processed), "{}", pgbench.stdout);
    recorder.stop().complains(" 0 lost");
    let statements = statements(&pgbench.stdout);
    Said { statements, took }
}

/// The statements of the lines below "statement latencies in milliseconds and failures", `0.160  0  BEGIN;`, but for pgbench's own commands.
fn statements(report: &str) -> Vec<String> {
    let (_, lines) = report
        .split_once("statement latencies in milliseconds and failures:\n")
        .unwrap_or_else(|| panic!("no latencies in {report}"));
    let texts = lines.lines().filter_map(|line| {
        let (_latency, rest) = line.trim().split_once(' ')?;
        let (_failures, text) = rest.trim().split_once(' ')?;
        Some(text.trim())
    });
    let statements = texts.filter(|text| !text.starts_with('\\'));
    let plain = |text: &str| {
        let end = text.find(|c: char| c == ':' || c.is_ascii_digit());
        text[..end.unwrap_or(text.len())].to_owned()
    };
    statements.map(plain).collect()
}

/// "Which statement is slowest at p99": one command, whose counts are pgbench's, whose times fit into what pgbench took, and whose
/// figures are those of a walk over all events, statement by statement and by their shapes.
#[test]
fn which_statement_is_slow() {
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    postgres.client("pgbench", ["-i", "-q", "-s", "1"]);
    let script = "\\set aid random(1, 100000)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
                  UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
                  SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nSELECT pg_sleep(0.01);\n\
                  SELECT count(*),\n\t'größe' FROM pgbench_branches WHERE bid = 1;\nEND;\n";
    let said = record(&lab, &postgres, &["postgresql:query__*"], script);
    drop(postgres);
    let count = said.statements.len();
    assert_eq!(count, 6);
    let walk = QUERY.compare(&lab, "query", &[]);
    assert_eq!((walk.open, walk.unmatched, walk.depth), (0, 0, 1));
    let spans: usize = walk.groups.values().map(Vec::len).sum();
    assert_eq!(spans, CLIENTS * TRANSACTIONS * count);

    let question = ["--span", "query", "--by", "query:shape", "--order", "p99"];
    let answer = ask(&lab, &question);
    let groups = list(&answer["spans"][0], "groups");
    assert_eq!(groups.len(), count, "{groups:?}");
    for statement in &said.statements {
        let begins = |text: &str| text.starts_with(statement);
        let mut of_statement = groups.iter().filter(|group| begins(shape(group)));
        let group = of_statement.next().unwrap_or_else(|| panic!("{groups:?}"));
        let walked = walk.groups.iter();
        let walked = walked.filter(|(text, _)| begins(&text[2..]));
        let walked: Vec<u64> = walked.flat_map(|(_, all)| all.clone()).collect();
        assert_eq!(group["count"], CLIENTS * TRANSACTIONS);
        assert_eq!(walked.len(), CLIENTS * TRANSACTIONS);
        assert_eq!(number(group, "sum_ns"), walked.iter().sum::<u64>());
        assert_eq!(group["max_ns"], *walked.iter().max().expect("spans"));
    }
    // Each client has one statement in hand at a time. (pgbench's own latencies leave out what it did before and after
    // reading its clock, so that they may be below and above ours.)
    let all: u64 = walk.groups.values().flatten().sum();
    assert!(all <= said.took * CLIENTS as u64, "{all} of {}", said.took);
    let p99: Vec<u64> = groups.iter().map(|group| number(group, "p99_ns")).collect();
    assert!(p99.is_sorted_by(|one, next| one >= next), "{p99:?}");
    let sleep = groups
        .iter()
        .find(|group| shape(group) == "SELECT pg_sleep(?);");
    assert!(number(sleep.expect("it"), "min_ns") >= 10_000_000);

    // It is what the report without options says is next.
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    let next = "usdtrec report -i trace --span query --by query:shape --order p99";
    assert!(report.contains(next), "{report}");
}

/// The shape of a group's statement.
#[track_caller]
fn shape(group: &Value) -> &str {
    group["query:shape"].as_str().expect("a text")
}

/// "How long do lock waits take, by lock": the table that everybody locks is waited for as long as its LOCK takes.
#[test]
fn how_long_are_locks_waited_for() {
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    postgres.ask("CREATE TABLE one (n int)");
    let table: u64 = postgres
        .ask("SELECT 'one'::regclass::oid")
        .trim()
        .parse()
        .expect("an oid");
    let events = [
        "postgresql:query__*",
        "postgresql:lock__*",
        "postgresql:lwlock__*",
    ];
    let script = "BEGIN;\nLOCK TABLE one;\nSELECT pg_sleep(0.005);\nEND;\n";
    let said = record(&lab, &postgres, &events, script);
    drop(postgres);
    let waits = Asked {
        starts: &["lock__wait__start"],
        dones: &["lock__wait__done"],
        key: None,
        by: &["type", "field2"],
    };
    let walk = waits.compare(&lab, "lock__wait", &[]);
    assert_eq!((walk.open, walk.unmatched), (0, 0));
    let waited = &walk.groups[&format!("[\"relation(0)\",{table}]")];
    // Only who comes when the table is free need not wait: the last transaction of a client, or any on a busy machine.
    assert!(waited.len() >= CLIENTS, "{}", waited.len());
    let total: u64 = waited.iter().sum();
    let locks: u64 = QUERY.walk(&lab.events("trace")).groups["[\"LOCK TABLE one;\"]"]
        .iter()
        .sum();
    assert!(total <= locks, "{total} ns of waits in {locks} ns of LOCK");
    assert_eq!(said.statements[1], "LOCK TABLE one;");
    assert!(
        locks <= said.took * CLIENTS as u64,
        "{locks} of {}",
        said.took
    );

    let held = Asked {
        starts: &[
            "lwlock__acquire",
            "lwlock__condacquire",
            "lwlock__acquire__or__wait",
        ],
        dones: &["lwlock__release"],
        key: None,
        by: &["tranche", "mode"],
    };
    // Each release has its acquisition, whichever way that was.
    assert_eq!(held.compare(&lab, "lwlock", &[]).unmatched, 0);
    let waits = Asked {
        starts: &["lwlock__wait__start"],
        dones: &["lwlock__wait__done"],
        key: None,
        by: &["tranche"],
    };
    let names: BTreeMap<String, Value> = ask(&lab, &[])["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .map(|span| (span["name"].to_string(), span["count"].clone()))
        .collect();
    let count: usize = waits
        .compare(&lab, "lwlock__wait", &[])
        .groups
        .values()
        .map(Vec::len)
        .sum();
    assert_eq!(names["\"postgresql:lwlock__wait\""], count);
    assert_eq!(
        names["\"postgresql:lock__wait\""],
        walk.groups.values().map(Vec::len).sum::<usize>()
    );
}
