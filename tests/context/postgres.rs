//! PostgreSQL 15: which statement waits for a lock.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{Lab, Postgres, Recorder, test};

/// Clients update one row in transactions that sleep: each wait is one of the statement that its process began last, which a walk over the events says.
#[test]
fn which_statement_waits() {
    let lab = Lab::privileged();
    let postgres = Postgres::start();
    postgres.ask("CREATE TABLE one (n int); INSERT INTO one VALUES (0)");
    let program = Postgres::program();
    lab.usdtrec(["buildid-cache", "--add", program.to_str().expect("a path")])
        .success();
    let events = ["query__*", "lock__wait*", "lwlock__*"];
    let mut options = vec![
        "-a".to_owned(),
        "-m".to_owned(),
        "64M".to_owned(),
        "-o".to_owned(),
        "trace".to_owned(),
    ];
    for event in events {
        options.extend(["-e".to_owned(), format!("postgresql:{event}")]);
    }
    let script = "BEGIN;\nUPDATE one SET n = n + 1;\nSELECT pg_sleep(0.005);\nEND;\n";
    let script = postgres.script(script);
    let recorder = Recorder::start(&lab, &options);
    let script = script.to_str().expect("a path");
    postgres.client("pgbench", ["-n", "-c", "4", "-t", "25", "-f", script]);
    recorder.stop().complains(" 0 lost");
    drop(postgres);
    let script = [
        "script", "-i", "trace", "--with", "query", "--format", "json",
    ];
    let printed = lab.usdtrec(script).success().stdout;
    let mut statements: BTreeMap<i64, String> = BTreeMap::new();
    let mut waits = 0;
    for line in printed.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let tid = event["tid"].as_i64().expect("a tid");
        let args = &event["args"];
        let statement = || args["query"].as_str().expect("a statement").to_owned();
        match event["event"].as_str().expect("a name") {
            "sdt_postgresql:query__start" => {
                statements.insert(tid, statement());
            }
            "sdt_postgresql:query__done" => {
                assert_eq!(
                    args["query.query"],
                    statements.remove(&tid).expect("it"),
                    "{event}"
                );
            }
            name => {
                let expected = statements
                    .get(&tid)
                    .map_or(Value::Null, |text| text.as_str().into());
                assert_eq!(args["query.query"], expected, "{event}");
                if name.ends_with(":lock__wait__start") {
                    waits += 1;
                    let text = args["query.query"].as_str().expect("a statement");
                    assert!(text.starts_with("UPDATE one"), "{text}");
                }
            }
        }
    }
    assert!(waits >= 25, "{waits}");
    let by = [
        "--with",
        "query",
        "--by",
        "query.query:shape",
        "--format",
        "json",
    ];
    let report = ["report", "-i", "trace", "--span", "lock__wait"];
    let printed = lab.usdtrec(report.iter().chain(&by)).success().stdout;
    let report: Value = serde_json::from_str(&printed).expect("JSON");
    let groups = report["spans"][0]["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!(groups[0]["query.query:shape"], "UPDATE one SET n = n + ?;");
    assert_eq!(groups[0]["count"], waits);
    // Who had a lock of the tranche meanwhile is a candidate.
    let script = [
        "script",
        "-i",
        "trace",
        "--with",
        "query",
        "--holders",
        "--format",
        "json",
    ];
    let printed = lab.usdtrec(script).success().stdout;
    let events = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let events: Vec<Value> = events.collect();
    let is_wait = |event: &&Value| event["event"] == "sdt_postgresql:lwlock__wait__done";
    for wait in events.iter().filter(is_wait) {
        let args = &wait["args"];
        assert!(args.get("candidate.comm").is_some() && args.get("holder.comm").is_none());
        assert_ne!(args["candidate.tid"], wait["tid"]);
    }
}
