//! Events that are added while recording.

use crate::support::added::{
    FIRST_ID, SAMPLES, added_sample, expected, found, id_and_number, info_with, mixed_samples,
    stream,
};
use crate::support::log::Log;
use crate::support::{LOSSES, info, open, process, read};
use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::trace::{
    AddedEventsFault, Compression, DamageKind, EventFault, Limit, LimitExceeded, NewEvents,
    PipeReader, PipeWriter, Trace, TraceInfo, TraceWriter, WriteError,
};

const BOTH: [Compression; 2] = [Compression::None, Compression::Zstd(1)];

/// What a trace has after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Committed {
    samples: u64,
    added: usize,
}

/// Writes rounds, the numbers of whose added events are given. Returns the steps, with what is committed after each.
fn record(adding: &[usize], compression: Compression) -> (Log, Vec<Committed>) {
    let log = Log::default();
    let mut now = Committed {
        samples: 0,
        added: 0,
    };
    let mut committed = Vec::new();
    let mut writer = TraceWriter::create(log.clone(), &info(), compression).unwrap();
    let mut records = Vec::new();
    process(&mut records);
    writer.push(&records);
    for (round, &added) in (0..).zip(adding) {
        if added != now.added {
            let new = NewEvents::after(writer.info(), &info_with(added));
            writer.add_events(new).unwrap();
            assert!(writer.has_added_events());
        }
        writer.push(&mixed_samples(
            round * SAMPLES..(round + 1) * SAMPLES,
            added,
        ));
        writer.flush().unwrap();
        assert!(!writer.has_added_events());
        // The last step of a flush is the commit.
        committed.resize(log.steps(), now);
        now = Committed {
            samples: (round + 1) * SAMPLES,
            added,
        };
        committed.push(now);
    }
    writer.finish(&LOSSES).unwrap();
    committed.resize(log.steps() + 1, now);
    (log, committed)
}

fn assert_head(trace: &Trace, added: usize, place: &str) {
    let expected = info_with(added);
    let found = trace.info();
    assert_eq!(found.events, expected.events, "{place}");
    assert_eq!(found.definitions, expected.definitions, "{place}");
    assert_eq!(found.tracepoints, expected.tracepoints, "{place}");
    assert_eq!(found.hostname, expected.hostname, "{place}");
    assert_eq!(found.version, expected.version, "{place}");
}

#[test]
fn every_kill_leaves_all_of_an_addition_or_nothing() {
    let adding = [0, 3, 3, 40];
    for compression in BOTH {
        let (log, committed) = record(&adding, compression);
        let mut opened = 0;
        for (step, now) in committed.iter().enumerate().take(log.steps()) {
            let len = log.len(step);
            let torn = match log.is_commit(step) {
                true => vec![0],
                false => vec![0, 8, len / 3, len / 2, len - 1],
            };
            for torn in torn {
                let place = format!("{compression:?}: step {step}, {torn} bytes of it");
                let Ok(trace) = open(&log.image(step, torn)) else {
                    assert_eq!(now.samples, 0, "{place}");
                    continue;
                };
                opened += 1;
                assert_eq!(found(&trace), expected(&adding, now.samples), "{place}");
                assert_eq!(read(&trace).damage, [], "{place}");
                assert!(!trace.is_finished(), "{place}");
                assert_head(&trace, now.added, &place);
            }
        }
        assert!(opened > 30, "{opened}");
        let whole = open(&log.image(log.steps(), 0)).unwrap();
        assert!(whole.is_finished());
        assert_eq!(found(&whole), expected(&adding, 4 * SAMPLES));
        assert_eq!(read(&whole).damage, []);
        assert_head(&whole, 40, "whole");
    }
}

/// Heads of very many additions are not written each time: the file grows with what is added. It is complete after each flush all the same.
#[test]
fn a_file_grows_with_what_is_added_and_not_with_its_square() {
    /// Bytes of a name; each addition has that many bytes in its names, and in its formats.
    const LONG: usize = 7000;
    const ROUNDS: usize = 160;
    let with = |added: usize| {
        let mut info = info_with(added);
        let first = info.events.len() - added;
        for (number, event) in info.events[first..].iter_mut().enumerate() {
            event.name = format!("sdt_late:{}{number}", "x".repeat(LONG));
        }
        info
    };
    let log = Log::default();
    let mut writer = TraceWriter::create(log.clone(), &info(), Compression::Zstd(1)).unwrap();
    let mut lengths = Vec::new();
    for round in 1..=ROUNDS {
        let new = NewEvents::after(writer.info(), &with(round));
        writer.add_events(new).unwrap();
        let number = round as u64 - 1;
        writer.push(&mixed_samples(number * 10..number * 10 + 10, round));
        writer.flush().unwrap();
        lengths.push(writer.totals().file_bytes);
        if round % 20 == 0 {
            let trace = open(&log.image(log.steps(), 0)).unwrap();
            assert_eq!(trace.damage(), [], "{round}");
            assert_eq!(trace.info().events, with(round).events, "{round}");
            assert_eq!(trace.info().definitions, with(round).definitions, "{round}");
            assert_eq!(trace.info().tracepoints, with(round).tracepoints, "{round}");
            assert_eq!(found(&trace).len(), round * 10, "{round}");
        }
    }
    let unended = log.image(log.steps(), 0);
    // Of a file that is cut, too.
    let cut = open(&unended[..unended.len() - 1]).unwrap();
    assert_eq!(cut.info().events, with(ROUNDS).events);
    let totals = writer.finish(&LOSSES).unwrap();
    // A head of each round would be 160 * 160 / 2 * 7000 bytes = 90 MB.
    assert!(totals.file_bytes < 12 << 20, "{lengths:?}");
    let whole = open(&log.image(log.steps(), 0)).unwrap();
    assert!(whole.is_finished());
    assert_eq!(whole.damage(), []);
    assert_eq!(whole.info().events, with(ROUNDS).events);
    assert_eq!(whole.info().definitions, with(ROUNDS).definitions);
}

/// More than fit into a record: attrs, formats, names and definitions.
#[test]
fn very_many_events_are_added() {
    const MANY: usize = 2500;
    let (log, _) = record(&[0, MANY], Compression::Zstd(1));
    let image = log.image(log.steps(), 0);
    let trace = open(&image).unwrap();
    assert_eq!(read(&trace).damage, []);
    assert_head(&trace, MANY, "whole");
    // Without the index.
    let cut = open(&image[..image.len() - 1]).unwrap();
    assert_eq!(found(&cut), expected(&[0, MANY], 2 * SAMPLES));
    assert_head(&cut, MANY, "cut");
}

/// Of a file that was cut, the samples before the cut are read, and each has its event; the head is one that was written.
#[test]
fn a_cut_file_has_a_head_that_was_written() {
    let adding = [0, 3, 3, 40];
    for compression in BOTH {
        let (log, _) = record(&adding, compression);
        let image = log.image(log.steps(), 0);
        let mut heads = [0; 3];
        let mut late = 0;
        for len in (70_000..image.len()).step_by(97) {
            let trace = open(&image[..len]).unwrap();
            let place = format!("{compression:?}: {len} bytes");
            let known = [0, 3, 40].map(|added| info_with(added).events);
            let head = known
                .iter()
                .position(|events| *events == trace.info().events);
            let head = head.unwrap_or_else(|| panic!("{place}: {:?}", trace.info().events));
            heads[head] += 1;
            let samples = found(&trace);
            assert!(
                expected(&adding, 4 * SAMPLES).starts_with(&samples),
                "{place}"
            );
            let ids: Vec<u64> = trace
                .info()
                .events
                .iter()
                .flat_map(|event| event.ids.clone())
                .collect();
            assert!(samples.iter().all(|(id, _)| ids.contains(id)), "{place}");
            let definitions = trace.info().definitions.as_ref().unwrap().by_id();
            late += samples.iter().filter(|(id, _)| *id >= FIRST_ID).count();
            assert!(
                samples.iter().all(|(id, _)| definitions.contains_key(id)),
                "{place}"
            );
        }
        assert!(heads.iter().all(|&count| count > 3), "{heads:?}");
        assert!(late > 1000, "{late}");
    }
}

#[test]
fn damaged_attrs_of_added_events_are_found_and_replaced() {
    let (log, _) = record(&[0, 5], Compression::Zstd(1));
    let image = log.image(log.steps(), 0);
    let word = |at: usize| u64::from_le_bytes(*image[at..].first_chunk().unwrap()) as usize;
    let (attrs, size) = (word(24), word(32));
    assert!(attrs > 65536);
    for at in (attrs..attrs + size).step_by(13) {
        let mut odd = image.clone();
        odd[at] ^= 0x20;
        let trace = open(&odd).unwrap();
        let kinds: Vec<_> = trace.damage().iter().map(|damage| &damage.kind).collect();
        assert!(
            kinds.contains(&&DamageKind::AttrSum { is_repeated: true }),
            "{at}: {kinds:?}"
        );
        assert_head(&trace, 5, "EVENT_DESC");
    }
}

/// After another process has truncated the file, the next flush writes the added events again.
#[test]
fn a_truncated_file_gets_its_events_again() {
    use std::os::unix::fs::FileExt;
    let file = tempfile::tempfile().unwrap();
    let again = file.try_clone().unwrap();
    let mut writer = TraceWriter::create(again, &info(), Compression::Zstd(1)).unwrap();
    let new = NewEvents::after(writer.info(), &info_with(4));
    writer.add_events(new).unwrap();
    writer.push(&mixed_samples(0..SAMPLES, 4));
    writer.flush().unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    writer.restore_head().unwrap();
    writer.push(&mixed_samples(SAMPLES..2 * SAMPLES, 4));
    writer.finish(&[]).unwrap();
    let trace = Trace::from_file(file).unwrap();
    assert_head(&trace, 4, "truncated");
    let last: Vec<_> = expected(&[4, 4], 2 * SAMPLES).split_off(SAMPLES as usize);
    assert_eq!(found(&trace), last);
}

#[test]
fn what_cannot_be_added_is_refused() {
    let mut writer = TraceWriter::create(Log::default(), &info(), Compression::None).unwrap();
    let mut add = |info: &TraceInfo| {
        let new = NewEvents::after(writer.info(), info);
        writer.add_events(new)
    };
    add(&info_with(2)).unwrap();
    let mut refuse = |info: &TraceInfo| add(info).unwrap_err();
    let mut taken = info_with(3);
    taken.events.last_mut().unwrap().ids = vec![FIRST_ID];
    let fault = EventFault::TakenId { id: FIRST_ID };
    let error = refuse(&taken);
    assert!(
        matches!(&error, WriteError::Event { fault: found, .. } if *found == fault),
        "{error}"
    );
    let mut exceeds = |info: &TraceInfo| match refuse(info) {
        WriteError::Limit(LimitExceeded { limit, .. }) => limit,
        other => panic!("{other}"),
    };
    let mut long = info_with(3);
    long.events.last_mut().unwrap().name = "x".repeat(70_000);
    assert_eq!(exceeds(&long), Limit::EventName);
    let mut long = info_with(3);
    long.tracepoints.last_mut().unwrap().print = "x".repeat(70_000);
    assert_eq!(exceeds(&long), Limit::Format);
    let mut many = info_with(3);
    many.events.last_mut().unwrap().ids = (5000..9000).collect();
    assert_eq!(exceeds(&many), Limit::IdsOfEvent);
    add(&info_with(3)).unwrap();
}

/// What a reader of a stream gets.
#[derive(Debug, Default)]
struct Streamed {
    samples: Vec<(u64, u64)>,
    info: TraceInfo,
    damage: Vec<DamageKind>,
    /// Samples whose event was not known when they came.
    unknown: usize,
}

fn read_stream(bytes: &[u8]) -> Streamed {
    let mut reader = PipeReader::open(bytes).unwrap();
    let mut streamed = Streamed {
        info: reader.info().clone(),
        ..Streamed::default()
    };
    let mut records = Vec::new();
    while reader.read(&mut records).unwrap() {
        for record in Records::new(&records).filter(|record| record.kind == RecordType::SAMPLE) {
            let sample = id_and_number(record.body);
            let mut events = streamed.info.events.iter();
            streamed.unknown += usize::from(!events.any(|event| event.ids.contains(&sample.0)));
            streamed.samples.push(sample);
        }
        records.clear();
        if let Some(info) = reader.take_added() {
            streamed.info = info;
        }
    }
    streamed.damage = reader
        .take_damage()
        .into_iter()
        .map(|damage| damage.kind)
        .collect();
    streamed.samples.sort_unstable_by_key(|&(_, number)| number);
    streamed
}

#[test]
fn events_are_added_to_a_stream() {
    // 1200 events do not fit into one record of names; some are added before any record.
    for adding in [&[0, 3, 3, 40][..], &[0, 1200], &[7, 7]] {
        for compression in BOTH {
            let bytes = stream(adding, compression);
            let streamed = read_stream(&bytes);
            let expected = expected(adding, SAMPLES * adding.len() as u64);
            let head = info_with(*adding.last().unwrap());
            assert_eq!(streamed.samples, expected);
            assert_eq!(streamed.unknown, 0);
            assert_eq!(streamed.damage, []);
            assert_eq!(streamed.info.events, head.events);
            assert_eq!(streamed.info.definitions, head.definitions);
            assert_eq!(streamed.info.tracepoints, head.tracepoints);
            let stored = open(&bytes).unwrap();
            assert_eq!(found(&stored), expected);
            assert_eq!(read(&stored).damage, []);
            assert_head(&stored, *adding.last().unwrap(), "stored");
        }
    }
}

#[test]
fn a_stream_cannot_change_former_events() {
    let head = stream(&[0], Compression::None);
    // The writer would not write these.
    let with = |former: &TraceInfo, info: &TraceInfo| {
        let mut bytes = Vec::new();
        let mut writer = PipeWriter::create(&mut bytes, former, Compression::None).unwrap();
        let from = writer.totals().file_bytes as usize;
        let new = NewEvents::after(writer.info(), info);
        writer.add_events(new).unwrap();
        writer.finish(&[]).unwrap();
        [&head, &bytes[from..]].concat()
    };
    let fault = |bytes: &[u8]| {
        let streamed = read_stream(bytes);
        assert_eq!(streamed.info.events, info().events);
        assert_eq!(streamed.info.definitions, info().definitions);
        assert_eq!(streamed.samples.len(), SAMPLES as usize);
        let stored = open(bytes).unwrap();
        assert_eq!(stored.info().events, info().events);
        assert_eq!(stored.info().definitions, info().definitions);
        match &streamed.damage[..] {
            [DamageKind::AddedEvents(fault)] => fault.clone(),
            other => panic!("{other:?}"),
        }
    };
    // An id of a former event.
    let mut former = info();
    former.events[0].ids = vec![1];
    let mut taken = info_with(1);
    taken.events[0].ids = vec![1];
    taken.events[3].ids = vec![101];
    assert_eq!(
        fault(&with(&former, &taken)),
        AddedEventsFault::TakenId { id: 101 }
    );
    // A site with one.
    let mut foreign = info_with(1);
    foreign.definitions.as_mut().unwrap().probes[2].sites[0]
        .ids
        .push(102);
    assert_eq!(
        fault(&with(&info(), &foreign)),
        AddedEventsFault::ForeignId { id: 102 }
    );
}

#[test]
fn flips_in_added_events_are_survived() {
    let bytes = stream(&[0, 3], Compression::Zstd(1));
    let begin = stream(&[0], Compression::Zstd(1)).len() - 8;
    let before = info();
    for at in (begin..bytes.len()).step_by(11) {
        for flip in [1, 0xff] {
            let mut odd = bytes.clone();
            odd[at] ^= flip;
            let streamed = read_stream(&odd);
            assert!(
                streamed.info.events.starts_with(&before.events),
                "byte {at}"
            );
            assert!(
                streamed.info.events.len() <= before.events.len() + 3,
                "byte {at}"
            );
            let first: Vec<_> = streamed
                .samples
                .iter()
                .take(SAMPLES as usize)
                .copied()
                .collect();
            assert_eq!(first, expected(&[0], SAMPLES), "byte {at}");
            let _ = open(&odd).map(|trace| read(&trace));
        }
    }
    let mut one = Vec::new();
    added_sample(0, 0, &mut one);
    assert_eq!(id_and_number(&one[8..]), (FIRST_ID, 0));
}
