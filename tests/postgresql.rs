//! PostgreSQL 15 under pgbench.

use std::collections::BTreeMap;

use crate::common::{Event, Lab, Postgres, Recorder, events_named, test};

/// Transactions of each pgbench client, and clients.
const TRANSACTIONS: usize = 50;
const CLIENTS: usize = 4;

/// What each client sends, with its own number in it.
const SCRIPT: &str = "BEGIN;\n\
                      SELECT abalance, 'größer \"1\"' FROM pgbench_accounts WHERE aid = 1 + :client_id;\n\
                      END;\n";

/// Records pgbench with a script of three statements a transaction.
#[track_caller]
fn record_pgbench(lab: &Lab, events: &[&str]) -> Vec<Event> {
    let postgres = Postgres::start();
    postgres.client("pgbench", ["-i", "-q", "-s", "1"]);
    let script = postgres.script(SCRIPT);
    let program = Postgres::program();
    lab.usdtrec(["buildid-cache", "--add", program.to_str().expect("a path")])
        .success();
    let mut options = vec!["-a", "-m", "32M", "-o", "trace"];
    for event in events {
        options.extend(["-e", event]);
    }
    let recorder = Recorder::start(lab, options);
    let (clients, transactions) = (CLIENTS.to_string(), TRANSACTIONS.to_string());
    let script = script.to_str().expect("a path");
    let pgbench = postgres.client(
        "pgbench",
        ["-n", "-c", &clients, "-t", &transactions, "-f", script],
    );
    let processed = format!(
        "transactions actually processed: {0}/{0}",
        CLIENTS * TRANSACTIONS
    );
    assert!(pgbench.stdout.contains(&processed), "{}", pgbench.stdout);
    recorder.stop().complains(" 0 lost");
    lab.events("trace")
}

/// Events of a probe, by process.
fn by_process<'a>(events: &'a [Event], name: &str) -> BTreeMap<u32, Vec<&'a Event>> {
    let mut processes = BTreeMap::new();
    for event in events_named(events, name) {
        assert_eq!(event.comm, "postgres");
        processes
            .entry(event.pid)
            .or_insert_with(Vec::new)
            .push(event);
    }
    processes
}

/// pgbench's own count of transactions is ours: each client's, and one that every backend needs to start.
#[test]
fn transactions_and_queries() {
    let lab = Lab::privileged();
    let events = ["sdt_postgresql:query__*", "postgresql:transaction__*"];
    let events = record_pgbench(&lab, &events);
    let queries = by_process(&events, "query__start");
    assert_eq!(queries.len(), CLIENTS, "the processes that ran queries");
    assert!(
        queries
            .values()
            .all(|queries| queries.len() == TRANSACTIONS * 3)
    );
    strings_are_what_was_sent(queries.values());
    let done = by_process(&events, "query__done");
    assert!(done.values().all(|done| done.len() == TRANSACTIONS * 3));
    let starts = by_process(&events, "transaction__start");
    for backend in queries.keys() {
        assert_eq!(starts[backend].len(), TRANSACTIONS + 1);
        let numbers: Vec<i128> = starts[backend]
            .iter()
            .map(|event| event.integer(1))
            .collect();
        assert!(
            numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "a backend numbers its transactions one by one: {numbers:?}"
        );
    }
    let commits = by_process(&events, "transaction__commit");
    assert!(
        queries
            .keys()
            .all(|backend| commits[backend].len() == starts[backend].len())
    );
}

/// The SQL of every query, client by client.
fn strings_are_what_was_sent<'a>(queries: impl Iterator<Item = &'a Vec<&'a Event>>) {
    let mut clients = Vec::new();
    for queries in queries {
        let strings: Vec<&str> = queries.iter().map(|event| event.string(1)).collect();
        let number = strings[1]
            .strip_suffix(';')
            .and_then(|string| string.rsplit(' ').next());
        let client: usize = number
            .and_then(|number| number.parse().ok())
            .expect("a number");
        let sent = SCRIPT.replace(":client_id", &client.to_string());
        let sent: Vec<&str> = sent.lines().collect();
        for strings in strings.chunks(3) {
            assert_eq!(strings, sent);
        }
        clients.push(client);
    }
    clients.sort_unstable();
    assert_eq!(clients, (0..CLIENTS).collect::<Vec<_>>());
}

/// Locks are taken in one of three modes, and released as often as they are taken.
#[test]
fn lightweight_locks() {
    let lab = Lab::privileged();
    let events = ["postgresql:query__start", "sdt_postgresql:lwlock__*"];
    let events = record_pgbench(&lab, &events);
    let queries = by_process(&events, "query__start");
    let acquired = by_process(&events, "lwlock__acquire");
    let released = by_process(&events, "lwlock__release");
    assert_eq!(queries.len(), CLIENTS);
    for backend in queries.keys() {
        let (acquired, released) = (&acquired[backend], &released[backend]);
        assert!(acquired.len() > TRANSACTIONS, "{}", acquired.len());
        assert!(released.len() >= acquired.len());
        let modes = acquired.iter().map(|event| event.integer(2));
        assert!(modes.into_iter().all(|mode| (0..=2).contains(&mode)));
    }
}
