//! What is written to a window instead of a file.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::Duration;

use usdtrec_format::trace::{
    ClockReading, Compression, Loss, NewEvents, RecordPacker, Totals, TraceInfo, WriteError,
};

use super::Window;
use super::files::{ShortenedWindow, WindowLimits};
use crate::window::content::{TimedLosses, WindowContent};

/// Maximum number of readings of the clocks: there is one a minute, and two whenever the wall clock is set.
const MAX_CLOCKS: usize = 4096;

/// Writes records to a window.
#[derive(Debug)]
pub(crate) struct WindowWriter {
    info: TraceInfo,
    compression: Compression,
    packer: RecordPacker,
    window: Window,
    /// When recording began, and up to when hits were read, ns of the trace's clock.
    began: u64,
    until: u64,
    clocks: VecDeque<ClockReading>,
    losses: TimedLosses,
    cpus_changed: bool,
    /// What was packed so far.
    totals: Totals,
}

impl WindowWriter {
    /// A window for records of the events of `info`.
    ///
    /// # Errors
    /// [`WriteError::Compressor`].
    pub(crate) fn new(
        limits: WindowLimits,
        info: &TraceInfo,
        compression: Compression,
    ) -> Result<Self, WriteError> {
        let first = info.events.first();
        let id_type = first.map_or_else(Default::default, |event| event.attr.id_type());
        let packer = RecordPacker::new(id_type, compression).map_err(WriteError::Compressor)?;
        Ok(Self {
            info: info.clone(),
            compression,
            packer,
            window: Window::new(limits, id_type),
            began: 0,
            until: 0,
            clocks: VecDeque::new(),
            losses: TimedLosses::default(),
            cpus_changed: false,
            totals: Totals::default(),
        })
    }

    pub(crate) fn set_threads(&mut self, threads: NonZeroUsize) {
        self.packer.set_threads(threads, false);
    }

    pub(crate) fn push(&mut self, records: &[u8]) {
        self.packer.push(records);
    }

    pub(crate) fn pending(&self) -> usize {
        self.packer.pending()
    }

    pub(crate) fn unflushed(&self) -> usize {
        self.packer.unflushed()
    }

    pub(crate) fn has_parts(&self) -> bool {
        self.packer.has_parts()
    }

    pub(crate) const fn set_cpus_changed(&mut self) {
        self.cpus_changed = true;
    }

    /// The events so far, and what describes them.
    pub(crate) const fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Adds events.
    pub(crate) fn add_events(&mut self, new: NewEvents) {
        new.add_to(&mut self.info);
    }

    pub(crate) fn add_losses(&mut self, losses: &[Loss]) {
        self.losses.add(self.until, losses);
    }

    pub(crate) fn add_clocks(&mut self, readings: &[ClockReading]) {
        self.clocks.extend(readings);
        // Of very many the first ones are of no use any more.
        let excess = self.clocks.len().saturating_sub(MAX_CLOCKS);
        self.clocks.drain(..excess);
    }

    pub(crate) const fn set_recorded(&mut self, began: u64, until: u64) {
        self.began = began;
        self.until = until;
    }

    /// Samples and length of what was recorded so far, and memory of what the window has.
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            file_bytes: self.window.memory() as u64,
            ..self.totals
        }
    }

    /// Packs what was taken.
    ///
    /// # Errors
    /// The errors of [`RecordPacker::pack`].
    pub(crate) fn flush(&mut self, ends_round: bool) -> Result<(), WriteError> {
        let Self {
            packer,
            window,
            totals,
            ..
        } = self;
        let packed = packer.pack(ends_round, |part| {
            if let Some(samples) = &part.samples {
                totals.samples += samples.samples();
                totals.raw_bytes += samples.raw_len();
            }
            totals.raw_bytes += part.metadata.as_ref().map_or(0, |others| others.raw_len());
            window.add(part);
        });
        self.trim();
        packed
    }

    /// Has what is too old fall out.
    fn trim(&mut self) {
        self.window.trim(self.until);
        let begin = self.begin();
        self.losses.forget_before(begin);
        // The last one before the window says what its first times of day are.
        while self
            .clocks
            .get(1)
            .is_some_and(|second| second.clock_ns <= begin)
        {
            self.clocks.pop_front();
        }
    }

    /// From when on the window has all hits.
    fn begin(&self) -> u64 {
        match self.window.fell_out() {
            0 => self.began,
            last => self.began.max(last + 1),
        }
    }

    /// A copy of the window, with a reading of the clocks of now.
    pub(crate) fn content(&self, now: ClockReading) -> WindowContent {
        let mut clocks: Vec<ClockReading> = self.clocks.iter().copied().collect();
        clocks.push(now);
        let mut info = self.info.clone();
        if let (Some(clock), Some(first)) = (&mut info.clock, clocks.first()) {
            (clock.wall_ns, clock.clock_ns) = (first.wall_ns, first.clock_ns);
        }
        let first = info.events.first();
        let (began, until) = (self.begin(), self.until.max(self.window.last_hit()));
        let held = Duration::from_nanos(until.saturating_sub(began));
        WindowContent {
            id_type: first.map_or_else(Default::default, |event| event.attr.id_type()),
            info,
            compression: self.compression,
            kept: self.window.kept.copy(),
            pieces: self.window.pieces(),
            began,
            until,
            shortened: ShortenedWindow::new(self.window.limits, held, self.window.fell_out()),
            clocks,
            losses: self.losses.all(),
            cpus_changed: self.cpus_changed,
        }
    }
}
