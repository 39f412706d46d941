//! Several files are one trace: it has the same answers as a single file with the same events, and says what is between the files.

use std::fs;
use std::path::PathBuf;

use usdtrec_format::trace::TraceInfo;
use usdtrec_report::question::{GroupOrder, Question, SpanQuestion};
use usdtrec_report::{EventSelection, Format, ReportError, Sentences, Sources, TraceSession};
use usdtrec_testing::test;

use crate::support::{DONE, HINTS, HIT, Hit, INNER, REQUEST, REQUEST_INLINED, Recorded, Recording};

/// Events from here on, one each microsecond.
const BEGIN: u64 = HIT.time;
const EVENTS: u64 = 3000;

/// What happens, the same in each recording of it.
struct Happening {
    time: u64,
    what: What,
}

enum What {
    Hit(Hit),
    Renamed(&'static str),
    Forked,
}

const fn time(number: u64) -> u64 {
    BEGIN + number * 1000
}

/// Requests of two threads, which go on over any boundary; thread 101 is renamed, and a process begins, in the middle.
fn happenings() -> Vec<Happening> {
    let hit = |number: u64| {
        let tid = 101 + (number % 2) as i32;
        let id = match number % 10 / 2 {
            0 => REQUEST,
            1 => REQUEST_INLINED,
            _ => DONE,
        };
        Hit {
            id,
            tid: if number % 50 >= 40 && number > EVENTS / 2 {
                200
            } else {
                tid
            },
            pid: if number % 50 >= 40 && number > EVENTS / 2 {
                200
            } else {
                100
            },
            time: time(number),
            ax: number,
            cpu: (number % 4) as u32,
            ..HIT
        }
    };
    let hits = (0..EVENTS).map(|number| Happening {
        time: time(number),
        what: What::Hit(hit(number)),
    });
    let mut all: Vec<Happening> = hits.collect();
    for (number, what) in [
        (EVENTS / 3, What::Renamed("renamed")),
        (EVENTS / 2, What::Forked),
        (EVENTS / 4 * 3, What::Renamed("again")),
    ] {
        all.push(Happening {
            time: time(number) + 1,
            what,
        });
    }
    all.sort_by_key(|happening| happening.time);
    all
}

/// A recording from one event to another one, which begins with what runs then.
fn part(from: u64, to: u64, change: impl FnOnce(&mut TraceInfo)) -> Recording {
    let mut recording = Recording::with("/opt/app".as_ref(), change);
    let mut worker = "worker";
    for happening in happenings() {
        if happening.time < time(from)
            && let What::Renamed(name) = happening.what
        {
            worker = name;
        }
    }
    recording.running((100, 100), 1, "server");
    recording.running((100, 101), 100, worker);
    recording.running((100, 102), 100, "second");
    recording.mmap(0, 100, "/opt/app");
    if from > EVENTS / 2 {
        recording.running((200, 200), 100, worker);
        recording.mmap(0, 200, "/opt/app");
    }
    recording.flush();
    for happening in happenings() {
        // A recorder repeats what happened while it read the processes that run.
        let repeats = happening.time >= time(from.saturating_sub(400));
        let is_in = happening.time >= time(from) && happening.time < time(to);
        match happening.what {
            What::Hit(hit) if is_in => recording.hit(hit),
            What::Renamed(name) if is_in || repeats && happening.time < time(to) => {
                recording.comm(happening.time, (100, 101), name, false);
            }
            What::Forked if is_in || repeats && happening.time < time(to) => {
                recording.fork(happening.time, (200, 200), (100, 101));
            }
            _ => {}
        }
        if happening.time % 100_000 == 0 {
            recording.flush();
        }
    }
    recording.recorded(time(from), time(to));
    recording
}

fn whole() -> Recorded {
    part(0, EVENTS, |_| ()).finish_with(&[(0, REQUEST, 6)])
}

/// The same in so many files.
fn parts(count: u64) -> Recorded {
    let length = EVENTS / count;
    let files: Vec<Recorded> = (0..count)
        .map(|number| {
            let end = if number + 1 == count {
                EVENTS
            } else {
                (number + 1) * length
            };
            let lost = if number < 2 { 3 } else { 0 };
            part(number * length, end, |_| ()).finish_with(&[(0, REQUEST, lost)])
        })
        .collect();
    Recorded::together(&files)
}

fn questions() -> Vec<Question> {
    let groups = |sort: &[&str]| Question::Groups {
        sort: sort.iter().map(|&key| key.to_owned()).collect(),
        value: None,
        top: None,
        order: GroupOrder::default(),
    };
    let spans = |by: &[&str]| {
        Question::Spans(SpanQuestion {
            spans: vec!["request..done".to_owned()],
            key: vec!["tid".to_owned()],
            by: by.iter().map(|&key| key.to_owned()).collect(),
            ..SpanQuestion::default()
        })
    };
    vec![
        groups(&["comm", "pid"]),
        groups(&["event", "sym", "dso"]),
        spans(&[]),
        spans(&["comm", "cpu"]),
    ]
}

/// What is said about the files themselves is not in a single one.
fn without_files(json: &str) -> serde_json::Value {
    let mut answer: serde_json::Value = serde_json::from_str(json).unwrap();
    let members = answer.as_object_mut().unwrap();
    for name in ["file", "files"] {
        members.remove(name);
    }
    answer
}

/// Places of blocks are those in the files.
fn without_offsets(answer: &str) -> String {
    let mut parts = answer.split("\"offset\":");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out += part.trim_start_matches(|letter: char| letter.is_ascii_digit());
    }
    out
}

#[test]
fn files_of_one_recording_answer_as_a_single_one() {
    let single = whole();
    for count in [2, 3, 30] {
        let joined = parts(count);
        let session = joined.session();
        assert_eq!(session.damage(), [], "{count} files");
        assert_eq!(session.files().iter().count() as u64, count);
        assert_eq!(session.files().gaps().count(), 0);
        for format in [Format::Json, Format::Csv, Format::Text] {
            assert_eq!(
                single.script_as(format),
                joined.script_as(format),
                "{count} files"
            );
        }
        for question in questions() {
            for format in [Format::Json, Format::Csv] {
                let one = without_offsets(&single.same_answer(&question, format));
                let several = without_offsets(&joined.same_answer(&question, format));
                assert_eq!(one, several, "{question:?}, {count} files");
            }
        }
        let summary = |recorded: &Recorded| {
            without_files(&recorded.same_answer(&Question::Summary, Format::Json))
        };
        assert_eq!(summary(&single), summary(&joined), "{count} files");
    }
}

#[test]
fn a_part_of_the_time_is_that_of_all_files() {
    let (single, joined) = (whole(), parts(5));
    for span in ["10%-30%", "-1ms", "-2ms..-1ms", "5.0005,5.0015"] {
        let selection = EventSelection {
            time: Some(span.parse().unwrap()),
            ..EventSelection::default()
        };
        let lines = single.json(&selection);
        assert!(
            lines.len() > 500 && lines.len() < 2000,
            "{span}: {} lines",
            lines.len()
        );
        assert_eq!(lines, joined.json(&selection), "{span}");
        let sources = Sources {
            time: selection.time.clone(),
            ..Sources::default()
        };
        let part = TraceSession::open(&joined.path, &sources).unwrap();
        assert_eq!(part.time(), single.session().time(), "{span}");
    }
}

/// Processes that are called otherwise after a gap were so all the time since the file before it.
#[test]
fn gaps_are_said_and_do_not_count_as_recorded() {
    let files = [
        part(0, 1000, |_| ()).finish(),
        part(2000, 3000, |_| ()).finish(),
    ];
    let joined = Recorded::together(&files);
    let session = joined.session();
    let gaps: Vec<_> = session
        .files()
        .gaps()
        .map(|gap| (gap.first, gap.last))
        .collect();
    assert_eq!(gaps, [(time(1000), time(2000))]);
    let report = joined
        .report(&Question::Summary, &Default::default())
        .unwrap();
    let sentences = report.1.sentences(HINTS);
    assert!(
        sentences[0].contains("nothing was recorded for 1ms, from 5.001000 to 5.002000 s, between"),
        "{sentences:?}"
    );
    let answer = joined.report_as(Format::Json, &[]);
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["gaps"][0]["from_ns"], time(1000));
    assert_eq!(answer["files"].as_array().unwrap().len(), 2);
    // 2000 events in 2 ms.
    let text = joined.report_as(Format::Text, &[]);
    assert!(text.contains("2000 events in 2ms"), "{text}");
    let names: Vec<String> = joined
        .json(&EventSelection::default())
        .iter()
        .filter(|line| line["tid"] == 101)
        .map(|line| line["comm"].as_str().unwrap().to_owned())
        .collect();
    let mut runs = names.clone();
    runs.dedup();
    assert_eq!(runs, ["worker", "renamed", "again"]);
}

/// Numbers of events and ids are each recording's own.
#[test]
fn files_with_other_numbers_are_put_together() {
    let other_numbers = |info: &mut TraceInfo| {
        let all = info.definitions.as_mut().unwrap();
        // The id of one site is that of the other one in the first file.
        all.probes[0].sites[0].ids = vec![REQUEST_INLINED];
        all.probes[0].sites[1].ids = vec![REQUEST];
        info.events[1].ids = vec![INNER];
        all.probes[1].sites[0].ids = vec![INNER];
        info.events.swap(0, 1);
        all.probes.swap(0, 1);
    };
    let first = part(0, 1000, |_| ()).finish_with(&[(0, REQUEST, 1), (1, DONE, 2)]);
    let mut second = Recording::with("/opt/app".as_ref(), other_numbers);
    second.running((100, 100), 1, "server");
    second.mmap(0, 100, "/opt/app");
    for (number, id) in [(1000, REQUEST_INLINED), (1001, REQUEST), (1002, INNER)] {
        second.hit(Hit {
            id,
            time: time(number),
            ax: 70_000 + number,
            ..HIT
        });
    }
    second.recorded(time(1000), time(1100));
    let second = second.finish_with(&[(0, INNER, 3), (1, REQUEST, 4)]);
    let joined = Recorded::together(&[first, second]);
    let session = joined.session();
    assert_eq!(session.damage(), []);
    let probes = session
        .events()
        .events
        .iter()
        .filter(|event| event.is_probe);
    assert_eq!(probes.count(), 2);
    let lines = joined.json(&EventSelection::default());
    let last: Vec<String> = lines[1000..]
        .iter()
        .map(|line| {
            format!(
                "{} {}",
                line["event"].as_str().unwrap(),
                line["args"]["arg1"]
            )
        })
        .collect();
    let expected = [
        "sdt_app:request 71000",
        "sdt_app:request -5",
        "sdt_app:done 71002",
    ];
    assert_eq!(last, expected);
    let answer: serde_json::Value =
        serde_json::from_str(&joined.report_as(Format::Json, &[])).unwrap();
    let lost: Vec<_> = answer["probes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|probe| {
            (
                probe["event"].as_str().unwrap(),
                probe["lost"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(lost, [("sdt_app:done", 5), ("sdt_app:request", 5)]);
}

fn refusal(files: &[Recorded]) -> String {
    let joined = Recorded::together(files);
    let error = TraceSession::open(&joined.path, &Sources::default()).unwrap_err();
    assert!(matches!(error, ReportError::Join(_)), "{error:?}");
    error.to_string()
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let first = || part(0, 1000, |_| ()).finish();
    let second = |change: fn(&mut TraceInfo)| part(1000, 2000, change).finish();
    let of_host = refusal(&[first(), second(|info| info.hostname = "db8".to_owned())]);
    assert!(
        of_host.contains("the host is db7 in the first and db8"),
        "{of_host}"
    );
    let boot = |info: &mut TraceInfo| {
        info.definitions.as_mut().unwrap().boot = Some("b".to_owned());
    };
    let of_boot = refusal(&[
        part(0, 1000, |info| {
            info.definitions.as_mut().unwrap().boot = Some("a".to_owned())
        })
        .finish(),
        second(boot),
    ]);
    assert!(
        of_boot.contains("the boot is a in the first and b"),
        "{of_boot}"
    );
    let slept = refusal(&[
        first(),
        second(|info| info.clock.as_mut().unwrap().wall_ns += 2_000_000_000),
    ]);
    assert!(slept.contains("another boot"), "{slept}");
    let overlap = refusal(&[first(), part(999, 2000, |_| ()).finish()]);
    assert!(
        overlap.contains("both were recorded from 5.000999 to 5.001000 s"),
        "{overlap}"
    );
    let same = refusal(&[first(), first()]);
    assert!(same.contains("both were recorded"), "{same}");
}

#[test]
fn other_probes_are_said() {
    let second = part(2000, 3000, crate::support::with_inner).finish();
    let joined = Recorded::together(&[part(0, 1000, |_| ()).finish(), second]);
    let report = joined
        .report(&Question::Summary, &Default::default())
        .unwrap();
    let sentences = report.1.sentences(HINTS).join("\n");
    assert!(
        sentences.contains("does not have the probes of the files before: it adds sdt_app:inner"),
        "{sentences}"
    );
}

#[test]
fn a_probe_of_another_build_is_not_said_to_be_missing() {
    let other = |info: &mut TraceInfo| {
        let probes = &mut info.definitions.as_mut().unwrap().probes;
        probes[1].sites[0].site.pc += 0x10;
    };
    let second = part(2000, 3000, other).finish();
    let joined = Recorded::together(&[part(0, 1000, |_| ()).finish(), second]);
    let report = joined
        .report(&Question::Summary, &Default::default())
        .unwrap();
    let sentences = report.1.sentences(HINTS).join("\n");
    let words = "of the files before: it has another definition of sdt_app:done";
    assert!(sentences.contains(words), "{sentences}");
    assert!(!sentences.contains("lacks"), "{sentences}");
}

#[test]
fn damage_is_at_its_place_in_its_file() {
    let recorded = [
        part(0, 1000, |_| ()).finish(),
        part(1000, 2000, |_| ()).finish(),
    ];
    let joined = Recorded::together(&recorded);
    // The first file has the greatest number.
    let path = joined.path.join("trace.1");
    let mut bytes = fs::read(&path).unwrap();
    let alone = TraceSession::open(&path, &Sources::default()).unwrap();
    let block = alone.blocks().last().unwrap().block;
    let at = block.offset + block.len - 9;
    bytes[at as usize] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    let (_, notices) = joined.script(&EventSelection::default(), &Default::default());
    let sentences = notices.sentences(HINTS);
    let expected = format!("{}: offset {}: chunk lost", path.display(), block.offset);
    assert!(
        sentences
            .iter()
            .any(|sentence| sentence.starts_with(&expected)),
        "{sentences:?}"
    );
}

/// A recorder that was killed leaves a file that ends anywhere, or is empty.
#[test]
fn the_last_file_may_be_cut() {
    let recorded = [
        part(0, 1000, |_| ()).finish(),
        part(1000, 2000, |_| ()).finish(),
    ];
    let joined = Recorded::together(&recorded);
    let path = joined.path.join("trace.1");
    let bytes = fs::read(&path).unwrap();
    let alone = TraceSession::open(&path, &Sources::default()).unwrap();
    let end = alone.blocks()[3].block.end() + 5;
    fs::write(&path, &bytes[..end as usize]).unwrap();
    let lines = joined.json(&EventSelection::default()).len();
    assert!(lines > 1000 && lines < 2000, "{lines} lines");
    fs::write(&path, b"").unwrap();
    let session = joined.session();
    assert_eq!(session.left_out(), [path]);
    assert_eq!(joined.json(&EventSelection::default()).len(), 1000);
}

/// Files may be more than a process may have open.
#[test]
fn very_many_files_are_one_trace() {
    let length = 5;
    let files: Vec<Recorded> = (0..300)
        .map(|number| part(number * length, (number + 1) * length, |_| ()).finish())
        .collect();
    let joined = Recorded::together(&files);
    assert_eq!(joined.json(&EventSelection::default()).len(), 1500);
    let paths: Vec<PathBuf> = fs::read_dir(&joined.path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let open = fs::read_dir("/proc/self/fd").unwrap().count();
    let session = TraceSession::open_files(&paths, &Sources::default()).unwrap();
    let more = fs::read_dir("/proc/self/fd")
        .unwrap()
        .count()
        .saturating_sub(open);
    assert!(more < 100, "{more} descriptors");
    assert_eq!(session.time().unwrap().first, BEGIN);
}
