//! What happens when triggers fire: files are made of the window, requests are answered, commands run, or the recording ends.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use usdtrec_attach::error::RecordError;
use usdtrec_format::trace::{FiredTrigger, TriggerKind};
use usdtrec_kernel::KernelError;
use usdtrec_kernel::signals::Signals;
use usdtrec_kernel::trace_clock;

use crate::output::sync::DiskSync;
use crate::recording::outcome::TriggerEvent;
use crate::triggers::command::{CommandFault, RunningCommands, TriggerCommand};
use crate::triggers::pace::{DueTrigger, TriggerOptions, TriggerPace};
use crate::triggers::requests::{DumpRequest, DumpRequests, Dumped};
use crate::triggers::watch::TriggerWatch;
use crate::window::file_maker::{FileMaker, MadeFile};
use crate::window::files::{WindowFiles, WrittenWindow};

/// The state of triggers.
#[derive(Debug)]
pub(super) struct Triggering {
    pub(super) pace: TriggerPace,
    pub(super) window: Option<WindowState>,
    /// Events of triggers that were not passed on yet.
    events: Vec<TriggerEvent>,
    /// The trigger that ends the recording.
    pub(super) ending: Option<DueTrigger>,
}

/// What a recording with a window has besides.
#[derive(Debug)]
pub(super) struct WindowState {
    pub(super) maker: FileMaker,
    command: Option<TriggerCommand>,
    commands: RunningCommands,
    requests: Option<DumpRequests>,
    /// Requests for which no file is being made yet, and for which one is.
    pub(super) waiting: Vec<DumpRequest>,
    pub(super) served: Vec<DumpRequest>,
    /// Files on their way to the disk, with what fired.
    syncs: Vec<(FiredTrigger, DiskSync)>,
    /// Readable when there is something to do, and what makes it so.
    woken: UnixStream,
    wake: UnixStream,
}

impl Triggering {
    /// Listens for requests if there is a window.
    ///
    /// # Errors
    /// [`KernelError::Host`] if a thread cannot be started.
    pub(super) fn new(
        options: &TriggerOptions,
        files: Option<WindowFiles>,
    ) -> Result<Self, RecordError> {
        let mut events = Vec::new();
        let window = files.map(|files| WindowState::new(files, &mut events));
        let window = window.transpose();
        Ok(Self {
            pace: TriggerPace::new(options.after, options.cooldown),
            window: window.map_err(KernelError::host("files of triggers"))?,
            events,
            ending: None,
        })
    }

    /// Says which triggers no probe can fire so far.
    pub(super) fn note_idle(&mut self, watch: Option<&TriggerWatch>) {
        let idle = watch.into_iter().flat_map(TriggerWatch::idle);
        self.events.extend(idle.map(|trigger| TriggerEvent::Idle {
            trigger: trigger.text.clone(),
        }));
    }

    /// Says, at the end, which spans overlap on their threads.
    pub(super) fn note_overlaps(&mut self, watch: Option<&TriggerWatch>) {
        let overlaps = watch.map(TriggerWatch::overlaps).unwrap_or_default();
        let events = overlaps.into_iter().map(|(span, ends)| {
            let span = span.to_owned();
            TriggerEvent::Overlap { span, ends }
        });
        self.events.extend(events);
    }

    /// Wakes the recorder at SIGUSR2.
    pub(super) fn begin(&self, signals: &Signals) -> Result<(), RecordError> {
        let Some(window) = &self.window else {
            return Ok(());
        };
        let wake = window.wake.try_clone();
        let woken = wake.and_then(|wake| signals.wake_at_switch(wake));
        Ok(woken.map_err(KernelError::host("signals"))?)
    }

    /// Becomes readable when there is something to do.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.window.as_ref().map(|window| window.woken.as_fd())
    }

    /// How long until the rings are to be read for a trigger; `None` if none waits.
    pub(super) fn remaining(&self) -> Option<Duration> {
        let window = self.window.as_ref();
        if window.is_some_and(|window| window.maker.is_busy()) && !self.pace.is_ending() {
            return None;
        }
        let remaining = self.pace.remaining(trace_clock::now())?;
        Some(Duration::from_nanos(remaining))
    }

    /// Notes a trigger in the file that is written.
    pub(super) fn note(&mut self, fired: FiredTrigger) {
        self.events.push(TriggerEvent::Noted(fired));
    }

    /// The events of triggers since the last call.
    pub(super) fn take_events(&mut self) -> Vec<TriggerEvent> {
        std::mem::take(&mut self.events)
    }

    /// Fires what has been asked for from outside.
    pub(super) fn take_asked(&mut self, signals: &Signals) {
        let Some(window) = &mut self.window else {
            return;
        };
        // It does not block.
        while matches!((&window.woken).read(&mut [0; 64]), Ok(1..)) {}
        let fired = |kind| FiredTrigger {
            kind,
            time_ns: trace_clock::now(),
            ..FiredTrigger::default()
        };
        if signals.take_switch() {
            self.pace.fire(fired(TriggerKind::Signal), false);
        }
        while let Some(request) = window.requests.as_ref().and_then(DumpRequests::next) {
            let fired = FiredTrigger {
                pid: request.pid.unwrap_or(0),
                uid: Some(request.uid),
                ..fired(TriggerKind::Request)
            };
            window.waiting.push(request);
            self.pace.fire(fired, false);
        }
    }

    /// Takes what threads and commands have done.
    pub(super) fn take_done(&mut self) {
        let Self { window, events, .. } = self;
        let Some(window) = window else {
            return;
        };
        if let Some(made) = window.maker.next() {
            window.made(made, events);
        }
        let faults = window.commands.look();
        events.extend(faults.into_iter().map(command_event));
        for (fired, done) in window.syncs.extract_if(.., |(_, sync)| sync.is_done()) {
            let failed = done.wait().err();
            events.extend(failed.map(|error| TriggerEvent::NotWritten {
                fired,
                error: Arc::new(error),
            }));
        }
    }

    /// The trigger for which a file is to be made now, or the recording to be ended; all hits up to `read` have been read.
    pub(super) fn take_due(&mut self, read: u64) -> Option<DueTrigger> {
        let window = self.window.as_ref();
        if window.is_some_and(|window| window.maker.is_busy()) && !self.pace.is_ending() {
            return None;
        }
        self.pace.take(read)
    }

    /// The trigger that ended the recording, or one that waits still, at the end.
    pub(super) fn take_last(&mut self) -> Option<DueTrigger> {
        self.ending.take().or_else(|| self.pace.take(u64::MAX))
    }

    /// Waits for the file that is being made, or for a signal.
    pub(super) fn settle(&mut self, signals: &Signals) {
        let Self { window, events, .. } = self;
        if let Some(window) = window
            && let Some(made) = window.maker.wait(|| signals.has_arrived())
        {
            window.made(made, events);
        }
    }

    /// Waits for commands, or for a signal. Returns the files that are on their way to the disk.
    pub(super) fn finish(&mut self, signals: &Signals) -> Vec<DiskSync> {
        let Some(window) = self.window.take() else {
            return Vec::new();
        };
        let faults = window.commands.finish(|| signals.has_arrived());
        self.events.extend(faults.into_iter().map(command_event));
        window.syncs.into_iter().map(|(_, sync)| sync).collect()
    }
}

impl WindowState {
    fn new(files: WindowFiles, events: &mut Vec<TriggerEvent>) -> io::Result<Self> {
        let (woken, wake) = UnixStream::pair()?;
        for stream in [&woken, &wake] {
            stream.set_nonblocking(true)?;
        }
        let requests = DumpRequests::listen(wake.try_clone()?);
        let requests = requests
            .map_err(|error| events.push(TriggerEvent::NoRequests(Arc::new(error))))
            .ok();
        Ok(Self {
            command: files.command.clone(),
            maker: FileMaker::start(files, wake.try_clone()?)?,
            commands: RunningCommands::default(),
            requests,
            waiting: Vec::new(),
            served: Vec::new(),
            syncs: Vec::new(),
            woken,
            wake,
        })
    }

    /// Takes a file that was made, and answers the requests for it.
    fn made(&mut self, made: MadeFile, events: &mut Vec<TriggerEvent>) {
        let MadeFile { fired, made, sync } = made;
        let answer = match &made {
            Ok(written) => Dumped::File(written.path.clone()),
            Err(error) => Dumped::Failed(with_causes(error)),
        };
        for request in self.served.drain(..) {
            request.answer(answer.clone());
        }
        if let (Ok(written), Some(command)) = (&made, &self.command) {
            let fault = self.commands.start(command, environment(written)).err();
            events.extend(fault.map(command_event));
        }
        self.syncs.extend(sync.map(|sync| (fired.clone(), sync)));
        events.push(match made {
            Ok(written) => TriggerEvent::Written(written),
            Err(error) => TriggerEvent::NotWritten {
                fired,
                error: Arc::new(error),
            },
        });
    }
}

/// An error and its causes.
fn with_causes(error: &RecordError) -> String {
    let first: &dyn std::error::Error = error;
    let chain = std::iter::successors(Some(first), |error| error.source());
    let messages: Vec<String> = chain.map(ToString::to_string).collect();
    messages.join(": ")
}

fn command_event(fault: CommandFault) -> TriggerEvent {
    TriggerEvent::Command(Arc::new(fault))
}

/// What a command gets to know of a file.
fn environment(written: &WrittenWindow) -> Vec<(&'static str, OsString)> {
    let WrittenWindow {
        path,
        fired,
        wall_ns,
        ..
    } = written;
    let duration = fired.duration_ns.map(|duration| duration.to_string());
    vec![
        ("USDTREC_FILE", path.clone().into()),
        ("USDTREC_KIND", fired.kind.word().into()),
        ("USDTREC_TRIGGER", fired.condition.clone().into()),
        ("USDTREC_TIME_NS", wall_ns.to_string().into()),
        ("USDTREC_EVENT", fired.event.clone().into()),
        ("USDTREC_SPAN", fired.span.clone().into()),
        ("USDTREC_DURATION_NS", duration.unwrap_or_default().into()),
        ("USDTREC_PID", fired.pid.to_string().into()),
        ("USDTREC_TID", fired.tid.to_string().into()),
    ]
}
