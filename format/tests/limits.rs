//! What the writer writes, the reader takes: a trace at each limit is read wholly, and what exceeds one is refused.

use crate::support::info;
use usdtrec_format::perf::{EventAttr, TracepointFormat};
use usdtrec_format::schema::Argument;
use usdtrec_format::trace::{
    Compression, HeadSize, Limit, LimitExceeded, NewEvents, PipeReader, PipeWriter, Trace,
    TraceInfo, TraceWriter, WriteError,
};

/// A head that has `limit` wholly, and `more` of it.
fn head(limit: Limit, more: u64) -> TraceInfo {
    let mut head = info();
    let taken = HeadSize::of(&head).of_limit(limit);
    let missing = (limit.max() + more - taken) as usize;
    let definitions = head.definitions.as_mut().unwrap();
    match limit {
        Limit::Events => {
            let last = head.events.last().unwrap().clone();
            let ids = 1_000_000..1_000_000 + missing as u64;
            head.events.extend(ids.map(|id| EventAttr {
                ids: vec![id],
                ..last.clone()
            }));
        }
        Limit::EventName => head.events[0].name = "x".repeat((limit.max() + more) as usize),
        Limit::IdsOfEvent => head.events.push(EventAttr {
            ids: (1_000_000..1_000_000 + limit.max() + more).collect(),
            ..head.events[0].clone()
        }),
        Limit::EventNames => add_names(&mut head, missing),
        Limit::Format => head.tracepoints.push(format(1, missing)),
        Limit::Formats => add_formats(&mut head, missing),
        Limit::Definitions | Limit::Values => {
            let byte = if limit == Limit::Values { "," } else { "x" };
            definitions.probes[0].description = Some(byte.repeat(missing));
            lower_to(&mut head, limit, more);
        }
        Limit::Arguments => {
            let arguments = &mut definitions.probes[0].arguments;
            arguments.extend((0..missing).map(Argument::unnamed));
        }
        Limit::StreamHead => {
            add_names(&mut head, missing / 2);
            add_formats(&mut head, missing / 2);
        }
    }
    head
}

/// Shortens the description until the head has the limit and `more`.
fn lower_to(head: &mut TraceInfo, limit: Limit, more: u64) {
    let excess = HeadSize::of(head).of_limit(limit) - limit.max() - more;
    let description = &mut head.definitions.as_mut().unwrap().probes[0].description;
    let text = description.as_mut().unwrap();
    text.truncate(text.len() - excess as usize);
}

/// Adds events with `bytes` of names, attrs and ids.
fn add_names(head: &mut TraceInfo, bytes: usize) {
    let template = EventAttr {
        name: String::new(),
        ids: vec![0],
        ..head.events.last().unwrap().clone()
    };
    let mut size = HeadSize::default();
    size.add_events(std::slice::from_ref(&template));
    let others = size.of_limit(Limit::EventNames) as usize;
    let events = (1_000_000..).zip(parts(bytes, 8000));
    head.events.extend(events.map(|(id, bytes)| EventAttr {
        name: "x".repeat(bytes - others),
        ids: vec![id],
        ..template.clone()
    }));
}

fn add_formats(head: &mut TraceInfo, bytes: usize) {
    let formats = (1..).zip(parts(bytes, 30_000));
    head.tracepoints
        .extend(formats.map(|(id, bytes)| format(id, bytes)));
}

/// About equal parts, each with at most `most`.
fn parts(all: usize, most: usize) -> impl Iterator<Item = usize> {
    let count = all.div_ceil(most);
    (0..count).map(move |at| all / count + usize::from(at < all % count))
}

/// A format that takes a number of bytes.
fn format(id: u16, bytes: usize) -> TracepointFormat {
    let mut format = TracepointFormat {
        system: "sdt_app".to_owned(),
        name: "x".to_owned(),
        id,
        ..TracepointFormat::default()
    };
    let mut size = HeadSize::default();
    size.add_formats(std::slice::from_ref(&format));
    let taken = size.of_limit(Limit::Format) as usize;
    format.print = "x".repeat(bytes - taken);
    format
}

fn refused(result: Result<(), WriteError>, limit: Limit) {
    match result {
        Err(WriteError::Limit(LimitExceeded { limit: found, .. })) => assert_eq!(found, limit),
        other => panic!("{limit:?}: {other:?}"),
    }
}

fn assert_same(found: &TraceInfo, head: &TraceInfo, limit: Limit) {
    assert!(found.events == head.events, "{limit:?}: events");
    assert!(
        found.tracepoints == head.tracepoints,
        "{limit:?}: formats of tracepoints"
    );
    assert!(
        found.definitions == head.definitions,
        "{limit:?}: definitions"
    );
}

/// Writes a head to a file. Of ids, which are limited where events are added, those of the last event.
fn write(file: std::fs::File, head: &TraceInfo, limit: Limit) -> Result<(), WriteError> {
    let mut first = head.clone();
    if limit == Limit::IdsOfEvent {
        first.events.pop();
    }
    let mut writer = TraceWriter::create(file, &first, Compression::Zstd(1))?;
    if limit == Limit::IdsOfEvent {
        let new = NewEvents::after(writer.info(), head);
        writer.add_events(new)?;
    }
    writer.finish(&[]).map(drop)
}

#[test]
fn a_file_at_each_limit_is_read_and_one_beyond_is_refused() {
    let of_files = Limit::ALL.into_iter();
    for limit in of_files.filter(|limit| *limit != Limit::StreamHead) {
        let at_limit = head(limit, 0);
        let file = tempfile::tempfile().unwrap();
        write(file.try_clone().unwrap(), &at_limit, limit).unwrap();
        let trace = Trace::from_file(file).unwrap();
        assert_eq!(trace.damage(), [], "{limit:?}");
        assert_same(trace.info(), &at_limit, limit);
        drop(trace);
        let file = tempfile::tempfile().unwrap();
        refused(write(file, &head(limit, 1), limit), limit);
    }
}

/// A stream has one limit more. What a reader takes, it takes wholly.
#[test]
fn a_stream_at_each_limit_is_read_or_refused() {
    for limit in Limit::ALL {
        let at_limit = head(limit, 0);
        let mut bytes = Vec::new();
        let write = |head: &TraceInfo, bytes: &mut Vec<u8>| {
            PipeWriter::create(bytes, head, Compression::Zstd(1)).map(drop)
        };
        match write(&at_limit, &mut bytes) {
            Ok(()) => {
                let reader = PipeReader::open(&*bytes).unwrap();
                assert_same(reader.info(), &at_limit, limit);
            }
            Err(WriteError::Limit(exceeded)) => {
                assert_eq!(exceeded.limit, Limit::StreamHead, "{limit:?}");
            }
            Err(error) => panic!("{limit:?}: {error}"),
        }
        let beyond = head(limit, 1);
        if limit != Limit::IdsOfEvent {
            bytes.clear();
            assert!(write(&beyond, &mut bytes).is_err(), "{limit:?}");
        }
    }
}
