//! The files of a recording: one, or one after another, each a trace complete in itself.

use std::fmt;
use std::fs::File;
use std::io::{self, PipeReader};
use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use usdtrec_attach::FileChange;
use usdtrec_attach::error::RecordError;
use usdtrec_format::trace::{Compression, Loss, Totals, TraceInfo, TraceWriter, WriteError};
use usdtrec_kernel::clocks::Clocks;
use usdtrec_kernel::signals::Signals;
use usdtrec_kernel::trace_clock;

use crate::output::added_events::AddedEvents;
use crate::output::sync::DiskSync;
use crate::output::watched_file::WatchedFile;
use crate::output::writer::{Outlet, Pace, Writer};
use crate::window::content::WindowContent;
use crate::window::files::{WindowFiles, WindowLimits};

/// Length of buffered records from which on they are flushed, bytes.
const FLUSH_BYTES: usize = 1 << 20;
/// Size of the pipe within the process, bytes, if the system allows it.
const PIPE_BYTES: usize = 1 << 20;

/// The files of a recording that has ended.
#[derive(Debug)]
pub(crate) struct FinishedFiles {
    pub(crate) totals: Totals,
    /// Files that are being flushed to disk.
    pub(crate) syncs: Vec<DiskSync>,
    /// What others did to files without loss.
    pub(crate) changes: Vec<FileChange>,
}

/// Where traces are written.
pub struct Destination(DestinationKind);

enum DestinationKind {
    /// A file for each.
    Files(Box<dyn TraceFiles>),
    /// A pipe, which takes a single trace.
    Pipe(Option<Outlet>, Pace),
    /// A window in memory, and the files that are made of it, until they are taken.
    Window(WindowLimits, Option<WindowFiles>),
}

/// The files of a recording, which writes one after another.
pub trait TraceFiles: Send {
    /// Creates the next one, empty.
    ///
    /// # Errors
    /// The system call's.
    fn next(&mut self) -> io::Result<File>;

    /// A trigger fired while the newest one was written.
    fn note_trigger(&mut self) {}
}

impl<F: FnMut() -> io::Result<File> + Send> TraceFiles for F {
    fn next(&mut self) -> io::Result<File> {
        self()
    }
}

impl Destination {
    /// Files, or a function that creates an empty one.
    pub fn new(files: impl TraceFiles + 'static) -> Self {
        Self(DestinationKind::Files(Box::new(files)))
    }

    /// A window in memory, of which files are made when triggers fire.
    #[must_use]
    pub fn window(limits: WindowLimits, files: WindowFiles) -> Self {
        Self(DestinationKind::Window(limits, Some(files)))
    }

    /// The files that are made of a window, once.
    pub(crate) const fn take_window_files(&mut self) -> Option<WindowFiles> {
        match &mut self.0 {
            DestinationKind::Window(_, files) => files.take(),
            DestinationKind::Files(_) | DestinationKind::Pipe(..) => None,
        }
    }

    /// A pipe, or anything else that is written front to back. Once the recording is to end, by a signal or because `duration` is over,
    /// a reader that does not read for two seconds ends it.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn pipe(pipe: File, signals: &Signals, duration: Option<Duration>) -> io::Result<Self> {
        let outlet = Outlet::new(pipe, signals.end_signal()?, duration);
        Ok(Self(DestinationKind::Pipe(Some(outlet), Pace::INDEPENDENT)))
    }

    /// A pipe within this process, from which a thread prints hits while they are recorded, in rounds of at most 30 ms.
    /// With `heartbeat`, rounds end at that interval even without records. A reader that is too slow makes the recorder wait, and then the
    /// rings overflow.
    ///
    /// # Errors
    /// The system call's.
    pub fn live(
        heartbeat: bool,
        signals: &Signals,
        duration: Option<Duration>,
    ) -> io::Result<LiveDestination> {
        let (reader, writer) = io::pipe()?;
        // A small pipe serves as well, with more switches between the two.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES);
        let pace = Pace::live(heartbeat);
        let pipe = Outlet::new(
            File::from(OwnedFd::from(writer)),
            signals.end_signal()?,
            duration,
        );
        Ok(LiveDestination {
            destination: Self(DestinationKind::Pipe(Some(pipe), pace)),
            reader,
        })
    }
}

/// A pipe within this process.
#[derive(Debug)]
pub struct LiveDestination {
    /// The end that the recorder writes.
    pub destination: Destination,
    /// The end that a thread reads the trace from.
    pub reader: PipeReader,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Destination")
    }
}

/// When to continue with a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// When SIGUSR2 arrives.
    Signal,
    /// When a file has this many bytes; it may exceed them by what the rings hold.
    Size(u64),
    /// After this time.
    Time(Duration),
}

/// How records are compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    pub(crate) compression: Compression,
    pub(crate) threads: NonZeroUsize,
}

/// The file being written, and those before it.
#[derive(Debug)]
pub(crate) struct Files {
    packing: Packing,
    destination: Destination,
    writer: Writer,
    opened: Instant,
    /// When the file was begun, ns of the trace's clock.
    began: u64,
    /// Up to when all hits were read, ns of the trace's clock.
    drained: u64,
    flushed: Instant,
    /// Sum of the files that are finished.
    finished: Totals,
    clocks: Clocks,
    /// The first error of writing since the last flush.
    failed: Option<WriteError>,
    /// Files on their way to the disk.
    syncs: Vec<DiskSync>,
    /// Whether CPUs went or came, so that hits there are missing.
    cpus_changed: bool,
    /// What others did to files while they were written, once for each file and kind.
    changes: Vec<FileChange>,
}

impl Files {
    /// Begins the first file.
    pub(crate) fn create(
        mut info: TraceInfo,
        packing: Packing,
        mut destination: Destination,
    ) -> Result<Self, RecordError> {
        let (clocks, first) = Clocks::begin();
        // The head has the same reading, so that a stream and its file have the same times of day.
        if let Some(clock) = &mut info.clock {
            (clock.wall_ns, clock.clock_ns) = (first.wall_ns, first.clock_ns);
        }
        let mut writer = begin(&info, packing, &mut destination)?;
        let now = Instant::now();
        writer.add_clocks(&[first])?;
        let began = trace_clock::now();
        Ok(Self {
            packing,
            destination,
            writer,
            opened: now,
            began,
            drained: began,
            flushed: now,
            finished: Totals::default(),
            clocks,
            failed: None,
            syncs: Vec::new(),
            cpus_changed: false,
            changes: Vec::new(),
        })
    }

    /// Adds whole records. Writes them if there are many; the next flush returns the error if that fails.
    pub(crate) fn push(&mut self, records: &[u8]) {
        self.writer.push(records);
        if self.writer.unflushed() >= FLUSH_BYTES && self.failed.is_none() {
            self.failed = self.writer.flush_part().err();
        }
    }

    /// Writes what was taken, if it is much or has waited long. To be called between passes over all rings.
    pub(crate) fn flush_if_due(&mut self) -> Result<(), RecordError> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let pending = self.writer.pending();
        let waited = || self.flushed.elapsed() >= self.writer.flush_time();
        let is_begun = self.writer.has_parts();
        if pending >= FLUSH_BYTES || is_begun || self.writer.wants_flush() && waited() {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds events to this file and the next ones; records of their ids may be pushed after that. To be called between passes over all rings.
    /// Returns the index of the first one among the trace's events, as [`Loss::event`].
    ///
    /// # Errors
    /// The writer's; the events are as before if they are refused.
    pub(crate) fn add_events(&mut self, added: AddedEvents) -> Result<usize, RecordError> {
        let info = self.writer.info();
        let first = info.events.len();
        let new = added.beside(info);
        self.writer.add_events(new)?;
        Ok(first)
    }

    /// Notes that recording begins now: the probes are live.
    pub(crate) fn note_start(&mut self) {
        self.began = trace_clock::now();
        self.drained = self.began;
    }

    /// Notes that all hits up to a time were read: a file says so of its end.
    pub(crate) fn note_drained(&mut self, time: u64) {
        self.drained = self.drained.max(time);
    }

    /// The descriptor that becomes readable when the wall clock was set.
    pub(crate) fn clock_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.clocks.descriptor()
    }

    /// Notes the time of day if it is due: when the wall clock was set, and every minute.
    pub(crate) fn look_at_clocks(&mut self) -> Result<(), RecordError> {
        let readings = self.clocks.look();
        Ok(self.writer.add_clocks(&readings)?)
    }

    /// Notes that hits are missing on CPUs that went off line or came on line.
    pub(crate) fn note_cpus_changed(&mut self) {
        self.cpus_changed = true;
        self.writer.set_cpus_changed();
    }

    /// The pipe that is written, if it is one.
    pub(crate) fn written_pipe(&self) -> Option<BorrowedFd<'_>> {
        self.writer.written_pipe()
    }

    /// Notes that a trigger has fired.
    pub(crate) fn note_trigger(&mut self) {
        if let DestinationKind::Files(files) = &mut self.destination.0 {
            files.note_trigger();
        }
    }

    /// Longest time that a record waits for its flush.
    pub(crate) const fn flush_time(&self) -> Duration {
        self.writer.flush_time()
    }

    /// Adds losses since the last report; in a file the next flush writes them.
    pub(crate) fn add_losses(&mut self, losses: &[Loss]) -> Result<(), RecordError> {
        // A window has them with the time up to which hits were read.
        self.writer.set_recorded(self.began, self.drained);
        Ok(self.writer.add_losses(losses)?)
    }

    /// Writes what was taken.
    pub(crate) fn flush(&mut self) -> Result<(), RecordError> {
        let change = self.writer.look()?;
        note(&mut self.changes, change);
        self.writer.set_recorded(self.began, self.drained);
        self.writer.flush()?;
        self.flushed = Instant::now();
        Ok(())
    }

    /// A copy of the window, if the recording has one, up to the last pass over all rings.
    pub(crate) fn content(&mut self) -> Result<Option<WindowContent>, RecordError> {
        self.flush()?;
        let now = self.clocks.read();
        Ok(self.writer.content(now))
    }

    /// What others did to files so far.
    pub(crate) fn changes(&self) -> &[FileChange] {
        &self.changes
    }

    /// Whether it is time for the next file.
    pub(crate) fn is_due(&self, switch: Switch) -> bool {
        match switch {
            Switch::Signal => false,
            Switch::Size(bytes) => self.writer.totals().file_bytes >= bytes,
            Switch::Time(time) => self.opened.elapsed() >= time,
        }
    }

    /// Ends the file with the losses that fell into its time, and begins the next.
    pub(crate) fn switch(&mut self, losses: &[Loss]) -> Result<(), RecordError> {
        let change = self.writer.look()?;
        note(&mut self.changes, change);
        let file = self.writer.take_handle();
        // Before the oldest files are deleted on purpose.
        let fate = file.as_ref().and_then(WatchedFile::fate);
        note(&mut self.changes, fate);
        let next = begin(self.writer.info(), self.packing, &mut self.destination)?;
        let mut ended = std::mem::replace(&mut self.writer, next);
        // What is written counts, even if it fails to end the file.
        let before = self.finished;
        self.finished = sum(before, ended.totals());
        if self.cpus_changed {
            self.writer.set_cpus_changed();
        }
        let reading = self.clocks.read();
        ended.add_clocks(&[reading])?;
        self.writer.add_clocks(&[reading])?;
        // In the midst of a pass: what is read later of it is in the next file.
        let now = trace_clock::now();
        ended.set_recorded(self.began, now);
        (self.began, self.drained) = (now, now);
        let totals = ended.finish(losses)?;
        self.finished = sum(before, totals);
        for done in self.syncs.extract_if(.., |sync| sync.is_done()) {
            done.wait()?;
        }
        if let Some(mut file) = file {
            let change = file.look_at_all(totals.file_bytes, &<TraceWriter>::MAGIC);
            // That it has no name now may be on purpose.
            let change = change.ok().flatten();
            let change = change.filter(|change| !matches!(change, FileChange::Deleted { .. }));
            note(&mut self.changes, change);
            self.syncs.push(DiskSync::start(file.into_handle()));
        }
        self.opened = Instant::now();
        self.take_refusal()
    }

    /// Totals of all files so far.
    pub(crate) fn totals(&self) -> Totals {
        sum(self.finished, self.writer.totals())
    }

    /// Ends the last file; bringing it to the disk is begun.
    ///
    /// # Errors
    /// [`RecordError::Changed`], if all went well but another process took away what was written.
    pub(crate) fn finish(mut self, losses: &[Loss]) -> Result<FinishedFiles, RecordError> {
        let change = self.writer.look()?;
        note(&mut self.changes, change);
        let file = self.writer.take_handle();
        let refusal = self.take_refusal();
        // The reader of a pipe may have closed it.
        if self.writer.written_pipe().is_none() {
            self.writer.add_clocks(&[self.clocks.read()])?;
        }
        self.writer.set_recorded(self.began, self.drained);
        let totals = self.writer.finish(losses)?;
        if let Some(mut file) = file {
            // Once more, with the end that was written now.
            let change = file.look_at_all(totals.file_bytes, &<TraceWriter>::MAGIC);
            note(
                &mut self.changes,
                change.ok().flatten().into_iter().chain(file.fate()),
            );
            self.syncs.push(DiskSync::start(file.into_handle()));
        }
        refusal?;
        if self.changes.iter().any(FileChange::is_failure) {
            return Err(RecordError::Changed(self.changes));
        }
        Ok(FinishedFiles {
            totals: sum(self.finished, totals),
            syncs: self.syncs,
            changes: self.changes,
        })
    }

    /// The error that the last flush of a file cannot repair, unlike a failed write.
    fn take_refusal(&mut self) -> Result<(), RecordError> {
        match self.failed.take() {
            Some(error @ WriteError::Record(_)) => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// Adds changes, one of a kind for each file.
fn note(known: &mut Vec<FileChange>, changes: impl IntoIterator<Item = FileChange>) {
    for change in changes {
        let is_same = |known: &FileChange| {
            std::mem::discriminant(known) == std::mem::discriminant(&change)
                && known.path() == change.path()
        };
        if !known.iter().any(is_same) {
            known.push(change);
        }
    }
}

fn begin(
    info: &TraceInfo,
    packing: Packing,
    destination: &mut Destination,
) -> Result<Writer, RecordError> {
    let compression = packing.compression;
    let mut writer = match &mut destination.0 {
        DestinationKind::Files(files) => {
            let file = files.next().map_err(RecordError::Output)?;
            Writer::file(file, info, compression)?
        }
        DestinationKind::Pipe(pipe, pace) => {
            let taken = || io::Error::other("a pipe takes only one trace");
            let pipe = pipe.take().ok_or_else(taken).map_err(RecordError::Output)?;
            Writer::pipe(pipe, *pace, info, compression)?
        }
        DestinationKind::Window(limits, _) => Writer::window(*limits, info, compression)?,
    };
    writer.set_threads(packing.threads);
    Ok(writer)
}

fn sum(a: Totals, b: Totals) -> Totals {
    Totals {
        samples: a.samples + b.samples,
        raw_bytes: a.raw_bytes + b.raw_bytes,
        file_bytes: a.file_bytes + b.file_bytes,
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use usdtrec_format::perf::{Attr, EventAttr, SampleType};
    use usdtrec_format::trace::Trace;

    use super::*;

    /// Bytes of a sample.
    const SAMPLE: usize = 48;

    fn packing(compression: Compression, threads: usize) -> Packing {
        Packing {
            compression,
            threads: threads.try_into().unwrap(),
        }
    }

    fn info() -> TraceInfo {
        let attr = Attr {
            kind: 8,
            sample_type: SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU,
            flags: Attr::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        TraceInfo {
            events: vec![EventAttr {
                attr,
                name: "sdt_app:start".to_owned(),
                ids: vec![1],
            }],
            ..TraceInfo::default()
        }
    }

    fn samples(times: std::ops::Range<u64>) -> Vec<u8> {
        times
            .flat_map(|time| [9 | (SAMPLE as u64) << 48, 1, 0x1000, 7 | 8 << 32, time, 0])
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    /// What waits in memory is bounded, and what was taken before is in the file already.
    fn write_in_parts(threads: usize, most_parts: usize) {
        const PIECE: u64 = 1000;
        const PIECES: u64 = 640;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let file = path.clone();
        let destination = Destination::new(move || File::create_new(&file));
        let packing = packing(Compression::Zstd(1), threads);
        let mut files = Files::create(info(), packing, destination).unwrap();
        let bound = most_parts * (FLUSH_BYTES + PIECE as usize * SAMPLE);
        for piece in 0..PIECES {
            files.push(&samples(1 + piece * PIECE..1 + (piece + 1) * PIECE));
            let pending = files.writer.pending();
            assert!(pending < bound, "{pending} bytes wait");
            if piece % 50 == 0 {
                let trace = Trace::open(&path).unwrap();
                assert_eq!(trace.damage(), []);
                let written: u64 = trace
                    .blocks()
                    .iter()
                    .map(|block| u64::from(block.samples.unwrap()))
                    .sum();
                let taken = (piece + 1) * PIECE;
                let waiting = (pending / SAMPLE) as u64;
                assert_eq!(written, taken - waiting);
            }
        }
        files.flush_if_due().unwrap();
        assert!(!files.writer.has_parts());
        assert_eq!(files.finish(&[]).unwrap().totals.samples, PIECE * PIECES);
    }

    #[test]
    fn a_long_pass_is_written_in_parts() {
        write_in_parts(1, 1);
    }

    /// Two helpers: four parts each are compressed while the next one is filled.
    #[test]
    fn several_threads_compress_a_bounded_number_of_parts() {
        write_in_parts(3, 1 + 2 * 4);
    }

    /// What is hit after the last pass over the rings is in no file.
    #[test]
    fn a_file_ends_when_its_last_hits_were_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let file = path.clone();
        let destination = Destination::new(move || File::create_new(&file));
        let packing = packing(Compression::None, 1);
        let mut files = Files::create(info(), packing, destination).unwrap();
        files.note_start();
        let read = trace_clock::now();
        files.push(&samples(1..5));
        files.note_drained(read);
        files.flush().unwrap();
        let end = || Trace::open(&path).unwrap().recorded().unwrap().last;
        assert_eq!(end(), read);
        files.finish(&[]).unwrap();
        assert_eq!(end(), read);
    }

    /// Sealing a file has writing fail.
    #[test]
    fn samples_of_a_file_whose_end_cannot_be_written_count() {
        let name = c"trace";
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create(name, flags).unwrap());
        let sealed = file.try_clone().unwrap();
        let mut all = vec![tempfile::tempfile().unwrap(), file];
        let destination =
            Destination::new(move || all.pop().ok_or_else(|| io::Error::other("two")));
        let mut files = Files::create(info(), packing(Compression::None, 1), destination).unwrap();
        files.push(&samples(1..5));
        files.flush().unwrap();
        fcntl_add_seals(&sealed, SealFlags::WRITE).unwrap();
        let error = files.switch(&[]).unwrap_err();
        assert!(matches!(error, RecordError::Write(_)), "{error:?}");
        assert_eq!(files.totals().samples, 4);
    }

    /// A trigger that fires before the next flush gets them.
    #[test]
    fn losses_of_a_window_have_the_time_up_to_which_hits_were_read() {
        let limits = WindowLimits::new(Duration::from_secs(1), 1 << 20);
        let create = |_| Err(io::Error::other("no file"));
        let destination = Destination::window(limits, WindowFiles::new(create, None));
        let mut files = Files::create(info(), packing(Compression::None, 1), destination).unwrap();
        files.note_start();
        files.note_drained(trace_clock::now());
        let loss = Loss {
            event: 0,
            id: 1,
            lost: 3,
        };
        files.add_losses(&[loss]).unwrap();
        let content = files.content().unwrap().unwrap();
        assert_eq!(content.losses, [loss]);
    }

    #[test]
    fn what_is_no_record_is_told_at_the_end_too() {
        let file = tempfile::tempfile().unwrap();
        let mut file = Some(file);
        let destination =
            Destination::new(move || file.take().ok_or_else(|| io::Error::other("one")));
        let mut files = Files::create(info(), packing(Compression::None, 1), destination).unwrap();
        let mut records = samples(1..2 + (FLUSH_BYTES / SAMPLE) as u64);
        // A size of three bytes.
        records.extend((9_u64 | 3 << 48).to_le_bytes());
        files.push(&records);
        assert!(files.failed.is_some());
        let error = files.finish(&[]).unwrap_err();
        assert!(
            matches!(error, RecordError::Write(WriteError::Record(_))),
            "{error:?}"
        );
    }
}
