//! Common Trace Format 1.8: a folder with `metadata`, which says in a language of its own (TSDL) what is in the others, and a stream for each CPU.
//!
//! | in the trace | in the folder |
//! |---|---|
//! | hit | event of the stream of its CPU (`cpu_N`), or of `no_cpu` where hits have none |
//! | arguments | fields; what a value does not say is a field of its own: `NAME_missing` (the reason, in place of the field `NAME`), `NAME_cut`, `NAME_bytes`, `NAME_number`, `NAME_demangled` |
//! | process, thread, name of the thread | context of the event: `pid`, `tid`, `comm` |
//! | stack | `stack`, a sequence of strings |
//! | lost events | `events_discarded` of the second packet of the stream `losses`: it is not known on which CPU they were lost |
//!
//! Hits of a probe whose values have the same types are of one event class. A probe has several classes of one name if some values are missing or cut, or if its sites
//! have arguments of different types: so no field has a value that is not one. Spans are not written, because they are pairs of events.

pub(crate) mod event_classes;
pub(crate) mod field_names;
pub(crate) mod packets;
pub(crate) mod tsdl;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_trace::session::TraceSession;
use usdtrec_view::frames::{cut_text, frame_text};

use crate::ctf::event_classes::EventClasses;
use crate::ctf::packets::{LostPackets, PacketStreams, StreamKey, put_string};
use crate::redaction::RedactedArguments;
use crate::thread_names::name;

/// Writes the format.
pub(crate) struct CtfTrace<'a> {
    session: &'a TraceSession,
    folder: PathBuf,
    classes: EventClasses,
    streams: PacketStreams,
    stacks: Stacks,
    /// The event that is being written.
    event: Vec<u8>,
    fields: Vec<u8>,
}

impl<'a> CtfTrace<'a> {
    /// Writes into an empty folder.
    pub(crate) fn new(
        session: &'a TraceSession,
        redacted: &RedactedArguments,
        folder: &Path,
    ) -> Self {
        Self {
            session,
            folder: folder.to_owned(),
            classes: EventClasses::new(session, redacted),
            streams: PacketStreams::new(folder),
            stacks: Stacks::default(),
            event: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Writes the end.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.streams.flush()?;
        let lost = self.session.losses().total();
        if let (true, Some(time)) = (lost > 0, self.session.time()) {
            self.streams.losses(LostPackets {
                first: time.first,
                last: time.last,
                lost,
            })?;
        }
        let metadata = tsdl::metadata(self.session, &self.classes);
        fs::write(self.folder.join("metadata"), metadata)
    }

    /// Appends the frames of a stack.
    fn put_stack(&mut self, hit: RowHit<'_>) {
        let stack = self.stacks.names(hit.stack, self.session);
        let frames = stack.frames.iter().map(frame_text);
        let frames: Vec<String> = frames.chain(stack.cut.iter().map(cut_text)).collect();
        self.event.extend((frames.len() as u32).to_le_bytes());
        for frame in &frames {
            put_string(frame, &mut self.event);
        }
    }
}

impl RowSink for CtfTrace<'_> {
    fn event(&mut self, hit: RowHit<'_>, _: RowSide) -> io::Result<()> {
        self.fields.clear();
        let class = self.classes.class(hit, &mut self.fields)?;
        self.event.clear();
        self.event.extend(class.to_le_bytes());
        self.event.extend(hit.row.time.to_le_bytes());
        self.event.extend(hit.row.pid.to_le_bytes());
        self.event.extend(hit.row.tid.to_le_bytes());
        let comm = hit.row.comm.map_or("", |id| name(self.session, id));
        put_string(comm, &mut self.event);
        self.event.extend(&self.fields);
        if self.classes.has_stack(hit.row.event) {
            self.put_stack(hit);
        }
        let stream = match hit.row.cpu {
            Some(cpu) => StreamKey::Cpu(cpu),
            None => StreamKey::NoCpu,
        };
        self.streams.put(stream, hit.row.time, &self.event)
    }

    fn span(&mut self, _: SpanRow<'_>) -> io::Result<()> {
        Ok(())
    }
}
