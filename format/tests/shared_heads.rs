//! Heads of several files.

use std::path::Path;

use crate::support::info;
use usdtrec_format::perf::EventAttr;
use usdtrec_format::trace::{Compression, NamedTrace, SharedHeads, Trace, TraceInfo, TraceWriter};

fn write(path: &Path, info: &TraceInfo, began: u64) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = TraceWriter::create(file, info, Compression::Zstd(1)).unwrap();
    writer.set_recorded(began, began + 10);
    writer.finish(&[]).unwrap();
}

#[test]
fn equal_heads_are_kept_once() {
    let directory = tempfile::tempdir().unwrap();
    let heads = SharedHeads::default();
    let mut other_definitions = info();
    other_definitions.definitions.as_mut().unwrap().probes[0].name = "other".to_owned();
    let mut other_names = info();
    other_names.events[0].name = "other".to_owned();
    let infos = [info(), info(), other_definitions, other_names, info()];
    let traces: Vec<Trace> = infos
        .iter()
        .enumerate()
        .map(|(number, info)| {
            let path = directory.path().join(number.to_string());
            write(&path, info, 0);
            Trace::open_sharing(&path, &heads).unwrap()
        })
        .collect();
    let is_first = |trace: &Trace| std::ptr::eq(trace.info(), traces[0].info());
    let is_first: Vec<bool> = traces.iter().map(is_first).collect();
    assert_eq!(is_first, [true, true, false, false, true]);
    for (trace, info) in traces.iter().zip(&infos) {
        assert_eq!(trace.damage(), []);
        assert_eq!(trace.info().events, info.events);
        assert_eq!(trace.info().definitions, info.definitions);
    }
}

/// Very many events of one name, in several files with ids of their own: each is known again.
#[test]
fn events_are_known_again_however_many_there_are() {
    const EVENTS: u64 = 20_000;
    let head = |first_id: u64| {
        let mut head = info();
        let event = head.events[0].clone();
        let definitions = head.definitions.as_mut().unwrap();
        let probe = definitions.probes[0].clone();
        for id in first_id..first_id + EVENTS {
            head.events.push(EventAttr {
                ids: vec![id],
                ..event.clone()
            });
            let mut probe = probe.clone();
            probe.sites.truncate(1);
            probe.sites[0].ids = vec![id];
            definitions.probes.push(probe);
        }
        head
    };
    let directory = tempfile::tempdir().unwrap();
    let traces = (0..3).map(|number| {
        let path = directory.path().join(number.to_string());
        write(&path, &head(1_000_000 * (number + 1)), 10 * number);
        NamedTrace {
            trace: Trace::open(&path).unwrap(),
            path,
        }
    });
    let all = Trace::join(traces.collect()).unwrap();
    assert_eq!(
        all.info().events.len(),
        info().events.len() + EVENTS as usize
    );
    let added = all.parts().iter().map(|part| part.probes().added.len());
    assert_eq!(added.skip(1).sum::<usize>(), 0);
    assert_eq!(all.parts()[1].sample_id(2_000_000), 2_000_000);
}
