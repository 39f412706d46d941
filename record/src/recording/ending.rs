//! What happens after the trace is complete: the command is ended, and the kernel removes the probes.
//!
//! When a recording ends, programs stop recording, held processes continue, the rings are drained, and the file is
//! completed. Only then is the command ended and are the probes removed, by a helper (`engine/release/`). The
//! recorder waits for it only while it makes progress. Files are flushed to disk by another helper (`output/sync.rs`), and
//! pipes are written without blocking (`output/outlet.rs`).

use std::fmt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use usdtrec_attach::engine::{Attached, InProgram, Release, in_programs};
use usdtrec_attach::error::RecordError;
use usdtrec_kernel::signals::Signals;
use usdtrec_watch::left_breakpoints::{LeftBehind, OwnSites};

use crate::command::RunningCommand;
use crate::output::sync::DiskSync;

/// Interval of polling.
const STEP: Duration = Duration::from_millis(50);
/// First interval of polling for what usually takes less than [`STEP`]; each following interval is twice as long.
const FIRST_STEP: Duration = Duration::from_millis(1);
/// Time after which a notice says what is waited for.
const SAY_AFTER: Duration = Duration::from_secs(2);
/// How long the user who ended the recording waits for removing probes, before that is left to the helper process: the trace is complete.
const ASKED_TIME: Duration = Duration::from_secs(5);
/// How long the recorder waits for the command to end after SIGTERM.
const COMMAND_TIME: Duration = Duration::from_secs(10);
/// How long the recorder waits without progress in removing probes, before it leaves that to the helper process.
const STALL_TIME: Duration = Duration::from_secs(10);

/// A finished session: its command, and its probes, which are still open in the kernel. Dropping it closes them.
#[derive(Debug)]
pub struct Ending {
    pub(super) command: Option<RunningCommand>,
    pub(super) leave_command: bool,
    pub(super) release: Release,
    pub(super) attached: Attached,
    /// Files that are being flushed to disk.
    pub(super) syncs: Vec<DiskSync>,
    /// The sites that are to be as they were when the probes are removed.
    pub(super) own: Option<OwnSites>,
    /// Whether a signal ended the recording.
    pub(super) is_asked: bool,
}

/// How the command ended.
#[derive(Clone, Copy, Debug)]
pub struct CommandEnd {
    /// Its status.
    pub status: ExitStatus,
    /// Whether it ended because the recording did, or a signal ended both: then SIGTERM is no failure of it.
    pub with_recording: bool,
}

/// A notice about what is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The command has not ended yet after SIGTERM.
    CommandRuns {
        /// Its process id.
        pid: u32,
    },
    /// The command is left running.
    CommandLeft {
        /// Its process id.
        pid: u32,
    },
    /// The kernel is still removing probes.
    LettingGo {
        /// Links or events still open.
        left: usize,
        /// Number of links or events.
        total: usize,
        /// Expected time for the rest, from the progress so far.
        remaining: Option<Duration>,
    },
    /// The file is not on disk yet.
    Syncing,
    /// The recorder does not wait for the disk any longer.
    NotSynced {
        /// The process that waits for it.
        helper: Option<u32>,
    },
    /// The helper process continues removing probes.
    Left {
        /// Links or events still open.
        left: usize,
        /// Links or events in all.
        total: usize,
        /// The process that closes them.
        helper: Option<u32>,
        /// Threads that are inside the program of a probe.
        inside: Vec<InProgram>,
    },
    /// Breakpoints have stayed in programs although all probes are removed.
    LeftBehind(LeftBehind),
}

impl Ending {
    /// Ends the command (SIGTERM, as perf does), unless it is to be left running, and waits for it, at most until a signal or for ten
    /// seconds. Returns how it ended, if it has.
    pub fn end_command(
        &mut self,
        signals: &Signals,
        say: &mut dyn FnMut(Notice),
    ) -> Option<CommandEnd> {
        let command = self.command.as_mut()?;
        let ended = command.try_wait().ok()?;
        if ended.is_some() || self.leave_command {
            return ended.map(|status| CommandEnd {
                status,
                with_recording: self.is_asked,
            });
        }
        command.terminate();
        let (begun, mut said) = (Instant::now(), false);
        loop {
            if let Some(status) = command.try_wait().ok()? {
                return Some(CommandEnd {
                    status,
                    with_recording: true,
                });
            }
            let pid = command.pid();
            if begun.elapsed() >= COMMAND_TIME || signals.has_arrived() {
                say(Notice::CommandLeft { pid });
                return None;
            }
            if !said && begun.elapsed() >= SAY_AFTER {
                say(Notice::CommandRuns { pid });
                said = true;
            }
            let _ = signals.wait(STEP);
        }
    }

    /// Waits until the kernel has removed all probes, or until a signal, or until there is no progress any more: then the helper process
    /// removes the rest. After a signal that ended the recording it waits for five seconds at most.
    pub fn let_go(&mut self, signals: &Signals, say: &mut dyn FnMut(Notice)) {
        let (begun, mut said) = (Instant::now(), false);
        while !self.release.wait(STEP) {
            let (left, total) = (self.release.left(), self.release.total());
            let is_late = self.is_asked && begun.elapsed() >= ASKED_TIME;
            if is_late || self.release.stalled() >= STALL_TIME || signals.has_arrived() {
                self.attached.engine.leave_to_guard();
                if let Some(own) = self.own.take() {
                    own.keep_notes();
                }
                return say(Notice::Left {
                    left,
                    total,
                    helper: self.release.helper(),
                    inside: in_programs(),
                });
            }
            if !said && begun.elapsed() >= SAY_AFTER {
                let remaining = self.release.remaining();
                say(Notice::LettingGo {
                    left,
                    total,
                    remaining,
                });
                said = true;
            }
        }
        let left = self.own.take().map(OwnSites::look_behind);
        if let Some(left) = left.filter(|left| *left != LeftBehind::default()) {
            say(Notice::LeftBehind(left));
        }
    }

    /// Waits until the files are on disk; they are complete without that. After a signal the helper process continues alone.
    ///
    /// # Errors
    /// [`RecordError::Write`] if a file cannot be flushed.
    pub fn sync(self, signals: &Signals, say: &mut dyn FnMut(Notice)) -> Result<(), RecordError> {
        let (begun, mut said) = (Instant::now(), false);
        let Self {
            syncs, attached, ..
        } = self;
        // Removing the remaining probes does not wait for the disk.
        drop(attached);
        for mut sync in syncs {
            let mut step = FIRST_STEP;
            while !sync.is_done() {
                if signals.wait(step) && !sync.is_done() {
                    let helper = sync.helper();
                    say(Notice::NotSynced { helper });
                    return Ok(());
                }
                if !said && begun.elapsed() >= SAY_AFTER {
                    say(Notice::Syncing);
                    said = true;
                }
                step = STEP.min(2 * step);
            }
            sync.wait()?;
        }
        Ok(())
    }
}

impl Notice {
    /// Whether the notice is about work that is not done when the recorder ends.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(
            self,
            Self::CommandLeft { .. }
                | Self::Left { .. }
                | Self::NotSynced { .. }
                | Self::LeftBehind(_)
        )
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandRuns { pid } => write!(
                f,
                "the command (pid {pid}) has not ended after SIGTERM; Ctrl-C leaves it running"
            ),
            Self::CommandLeft { pid } => write!(
                f,
                "the command (pid {pid}) has not ended after SIGTERM, and is left running"
            ),
            Self::LettingGo {
                left,
                total,
                remaining,
            } => {
                write!(
                    f,
                    "the kernel still has to remove {left} of {total} probe links and events"
                )?;
                if let Some(remaining) = remaining {
                    write!(f, ", about {:.0} s", remaining.as_secs_f64().ceil())?;
                }
                f.write_str("; Ctrl-C leaves that to a background process")
            }
            Self::LeftBehind(left) => left.fmt(f),
            Self::Syncing => f.write_str(
                "the trace is complete; waiting until it is on disk (fdatasync): Ctrl-C leaves that to a background process",
            ),
            Self::NotSynced { helper } => {
                f.write_str(
                    "the trace is complete, but not yet on disk: parts of it may be lost in a power failure",
                )?;
                match helper {
                    Some(pid) => write!(f, "; process {pid} continues to flush it"),
                    None => f.write_str("; this process ends when it is"),
                }
            }
            Self::Left {
                left,
                total,
                helper,
                inside,
            } => {
                write!(
                    f,
                    "the kernel has not yet removed {left} of {total} probe links and events"
                )?;
                match helper {
                    Some(pid) => write!(f, "; process {pid} continues closing them")?,
                    None => f.write_str("; this process ends when it has")?,
                }
                if let [first, ..] = inside.as_slice() {
                    write!(f, "; inside a probe: {first}")?;
                    if inside.len() > 1 {
                        write!(f, " and {} more", inside.len() - 1)?;
                    }
                }
                Ok(())
            }
        }
    }
}
