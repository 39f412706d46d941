//! Passes over the rings. Process records are brought into the order of time here, and mappings get the build-ids of their files.
//!
//! The kernel can write the build-ids (`attr.build_id`, Linux 5.12), but then it also sets the flag "this record has a build-id" in the copies for
//! other tracers' events, which have no build-id: files that stock `perf record` wrote at the same time could not be read (seen on Linux 6.18,
//! `perf_event_mmap_output`). For the same reason the recorder ignores that flag in its own records: stock perf crashes on records that have the
//! flag and no build-id.

use usdtrec_attach::engine::{EngineOutcome, Release, StackUse};
use usdtrec_format::perf::{
    Lost, Mmap, MmapFile, ProcessChange, ProcessChangeKind, Records, SampleType,
};
use usdtrec_kernel::clocks::trace_clock;

use super::build_ids::BuildIds;
use super::session::Session;

impl Session {
    /// One pass over all rings: samples first, so that earlier process records are in the same pass. Returns whether it left many records
    /// in the rings of programs.
    /// `changes` gets a copy of the process records. `sink` returns what the stacks that it was given have needed.
    pub(super) fn drain(
        &mut self,
        mut sink: impl FnMut(&[u8]) -> Vec<(u64, StackUse)>,
        changes: Option<&mut Vec<u8>>,
    ) -> bool {
        let left = self.attached.engine.drain(&mut sink);
        self.drain_processes(|records| drop(sink(records)), changes);
        left
    }

    /// One pass over the rings of process records, of which `changes` gets a copy. Those that are later than its begin wait for the next one.
    pub(super) fn drain_processes(
        &mut self,
        sink: impl FnMut(&[u8]),
        changes: Option<&mut Vec<u8>>,
    ) {
        self.drain_processes_until(trace_clock::now(), sink, changes);
    }

    fn drain_processes_until(
        &mut self,
        time: u64,
        mut sink: impl FnMut(&[u8]),
        changes: Option<&mut Vec<u8>>,
    ) {
        let processes = &mut self.attached.processes;
        let id_type = processes.attr.attr.id_type();
        let mut complete = Vec::new();
        processes.drain(|records| self.build_ids.complete(records, id_type, &mut complete));
        let ordered = self.process_order.pass(&complete, time, id_type);
        if ordered.is_empty() {
            return;
        }
        if let Some(changes) = changes {
            changes.extend_from_slice(&ordered);
        }
        sink(&ordered);
    }

    /// The last pass over all rings, when nothing is written to them any more; `release` is what
    /// [`Engine::release_first`](usdtrec_attach::engine::Engine::release_first) has started.
    pub(super) fn drain_last(
        &mut self,
        release: Option<&mut Release>,
        mut sink: impl FnMut(&[u8]),
    ) -> EngineOutcome {
        let outcome = self.attached.engine.end(release, &mut sink);
        self.drain_processes_until(u64::MAX, sink, None);
        outcome
    }
}

impl BuildIds {
    /// Appends process records to `out`, mappings with the build-ids of their files.
    fn complete(&mut self, records: &[u8], id_type: SampleType, out: &mut Vec<u8>) {
        for record in Records::new(records) {
            if let Some(lost) = Lost::parse(&record, id_type) {
                self.note_lost(lost.lost);
            }
            let change = ProcessChange::parse_in_ring(&record, id_type);
            if let Some(change) = change.filter(ProcessChange::executes) {
                self.begin_program(change.pid);
            }
            match change.map(|change| change.kind) {
                Some(ProcessChangeKind::Mapped(mapping)) => {
                    let build_id = self.of_record(&mapping);
                    let file = build_id.map_or(mapping.file, MmapFile::BuildId);
                    Mmap { file, ..mapping }.encode(id_type, out);
                }
                _ => record.put(out),
            }
        }
    }
}
