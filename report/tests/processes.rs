//! Processes are counted by pid and begin: pids are used again.

use crate::support::{DONE, HIT, Hit, Recorded, Recording};
use serde_json::{Value, json};
use usdtrec_report::question::{GroupOrder, Question};
use usdtrec_report::report::ReportOptions;
use usdtrec_report::{Format, HintWords, Sentences};
use usdtrec_testing::test;

/// Rounds of processes, of which each has the pids of the round before.
const ROUNDS: u64 = 5;
const PIDS: i32 = 40;

/// A process hits `done` twice, one `exec`s between; the pid 100 was there before the recording and begins anew in no round.
fn recorded() -> Recorded {
    let mut recording = Recording::usual();
    let done = |pid, time| Hit {
        id: DONE,
        pid,
        tid: pid,
        time,
        ax: 1,
        ..HIT
    };
    for round in 0..ROUNDS {
        for pid in 1000..1000 + PIDS {
            let time = 1_000_000 * (1 + round) + 100 * (pid as u64 - 1000);
            recording.fork(time, (pid, pid), (100, 100));
            recording.comm(time + 1, (pid, pid), "worker", true);
            // A thread is no process.
            recording.fork(time + 2, (pid, pid + 5000), (pid, pid));
            recording.hit(done(pid, time + 3));
            recording.hit(done(pid, time + 4));
            if pid == 1000 && round == 0 {
                recording.comm(time + 5, (pid, pid), "other", true);
                recording.hit(done(pid, time + 6));
            }
        }
        recording.hit(done(100, 1_000_000 * (1 + round) + 900_000));
        recording.flush();
    }
    recording.finish()
}

fn with_threads<T: Send>(threads: usize, ask: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(ask)
}

#[test]
fn processes_of_one_pid_are_counted_each() {
    let recorded = recorded();
    let report = |format| with_threads(1, || recorded.report_as(format, &[]));
    let answer: Value = serde_json::from_str(&report(Format::Json)).unwrap();
    let all = ROUNDS * PIDS as u64;
    let done = answer["probes"].as_array().unwrap();
    let done = done.iter().find(|probe| probe["event"] == "sdt_app:done");
    assert_eq!(
        done.unwrap()["processes"],
        json!([
            {"comm": "worker", "processes": all, "count": 2 * all},
            {"comm": "server", "processes": 1, "count": ROUNDS},
            {"comm": "other", "processes": 1, "count": 1},
        ])
    );
    let busiest = answer["processes"].as_array().unwrap();
    assert_eq!(busiest.len() as u64, all + 2);
    assert_eq!(busiest[0]["pid"], 100);
    let of_one_pid = busiest.iter().filter(|process| process["pid"] == 1001);
    let counts: Vec<_> = of_one_pid.map(|process| &process["count"]).collect();
    assert_eq!(counts, vec![2; ROUNDS as usize]);
    let text = report(Format::Text);
    assert!(
        text.contains(&format!("worker ({all}) and 2 more")),
        "{text}"
    );
    assert!(
        text.contains(&format!("and {} other processes", all + 2 - 5)),
        "{text}"
    );
    for format in [Format::Text, Format::Json] {
        for threads in [2, 7] {
            let again = with_threads(threads, || recorded.report_as(format, &[]));
            assert_eq!(again, report(format), "{threads} threads");
        }
    }
}

#[test]
fn grouping_by_pid_says_that_processes_are_added_up() {
    let recorded = recorded();
    let groups = |sort: &[&str]| Question::Groups {
        sort: sort.iter().map(|&key| key.to_owned()).collect(),
        value: None,
        top: None,
        order: GroupOrder::default(),
    };
    let rate = Question::Rate {
        interval: 1_000_000,
        sort: vec!["pid".to_owned()],
    };
    let said = format!(
        "{PIDS} pids were used by several processes of one name, one after the other: their events are added up"
    );
    for (question, expected) in [
        (groups(&["pid"]), vec![said.clone()]),
        (groups(&["event", "pid"]), vec![said.clone()]),
        (groups(&["comm"]), vec![]),
        (rate, vec![said]),
    ] {
        for threads in [1, 3] {
            let options = ReportOptions::default();
            let ask = || recorded.report(&question, &options).unwrap();
            let (_, notices) = with_threads(threads, ask);
            assert_eq!(
                notices.sentences(HintWords::default()),
                expected,
                "{question:?}"
            );
        }
    }
}
