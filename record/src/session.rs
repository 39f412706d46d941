//! A recording session: from planted probes to a finished trace.

use std::fs::File;
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_format::trace::{Compression, Loss, Totals, TraceInfo, TraceWriter};
use usdtrec_format::{
    Definitions, FileDefinition, ProbeDefinition, SiteDefinition, parse_operands,
};

use crate::engine::{Attached, Planted};
use crate::select::PlannedProbe;
use crate::target::Target;
use crate::{RecordError, RunningCommand, Signals, cpus, host, metadata};

/// Bytes of records that are worth a flush.
const FLUSH_BYTES: usize = 1 << 20;

/// Longest time that a record waits for its flush: what a crash of the recorder can cost.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// Longest time between two looks at the rings.
const POLL_TIME: Duration = Duration::from_millis(100);

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who.
    pub target: Target,
    /// On which CPUs; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// Bytes of each CPU's ring, a power of two; `None` leaves it to us.
    pub ring_bytes: Option<usize>,
    /// How to write.
    pub compression: Compression,
    /// End after this time.
    pub duration: Option<Duration>,
    /// Program name and version, for the trace.
    pub producer: String,
    /// Command line, for the trace.
    pub command_line: Vec<String>,
}

/// How a recording went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was written.
    pub totals: Totals,
    /// From start to stop.
    pub elapsed: Duration,
    /// Losses by probe, most first: event name, lost, hits.
    pub losses: Vec<ProbeLoss>,
    /// Hits that the kernel counted and that are neither in the trace nor among the losses.
    pub unaccounted: u64,
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// How the command ended, if there was one.
    pub command_status: Option<ExitStatus>,
}

/// What one probe lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeLoss {
    /// Event name.
    pub event: String,
    /// Hits that found no room in the ring.
    pub lost: u64,
    /// All hits.
    pub hits: u64,
}

/// Progress of a running session.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// What was written so far.
    pub totals: Totals,
}

/// A session with its probes planted and not yet started.
#[derive(Debug)]
pub struct Session {
    options: Options,
    attached: Attached,
    probes: Vec<PlannedProbe>,
    refused: Vec<(PlannedProbe, RecordError)>,
    cpus: Vec<u32>,
}

impl Session {
    /// Plants the probes.
    ///
    /// # Errors
    /// [`RecordError`]: the kernel refuses, or nothing of all that was asked could be planted.
    pub fn attach(probes: Vec<PlannedProbe>, options: Options) -> Result<Self, RecordError> {
        let cpus = wanted_cpus(options.cpus.as_deref())?;
        let watch = options.target.watch(cpus.clone())?;
        let mut attached = Attached::open(&probes, &watch, options.ring_bytes)?;
        let mut refusals = std::mem::take(&mut attached.refused).into_iter().peekable();
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        for (index, probe) in probes.into_iter().enumerate() {
            match refusals.next_if(|(refused, _)| *refused == index) {
                Some((_, error)) => refused.push((probe, error)),
                None => kept.push(probe),
            }
        }
        if kept.is_empty() {
            return Err(refused.pop().map_or_else(
                || RecordError::NoProbe("no probe to record".into()),
                |(_, error)| error,
            ));
        }
        Ok(Self {
            options,
            attached,
            probes: kept,
            refused,
            cpus,
        })
    }

    /// Probes that the kernel refused, and why.
    #[must_use]
    pub fn refused(&self) -> &[(PlannedProbe, RecordError)] {
        &self.refused
    }

    /// Probes that are planted.
    #[must_use]
    pub fn probes(&self) -> &[PlannedProbe] {
        &self.probes
    }

    /// CPUs recorded.
    #[must_use]
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Bytes of each CPU's ring.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.attached.ring_bytes
    }

    /// How the sites are planted: `uprobe PMU`, or `tracefs` where new threads and children are followed.
    #[must_use]
    pub fn way(&self) -> &'static str {
        self.attached.way()
    }

    /// perf events open for the probes.
    #[must_use]
    pub fn events(&self) -> usize {
        self.attached.events()
    }

    /// Writes the head of the trace, says which processes run already, starts the probes and then lets the
    /// held command go, if there is one.
    ///
    /// # Errors
    /// [`RecordError::Write`], [`RecordError::Host`], [`RecordError::Kernel`].
    pub fn start(
        self,
        file: File,
        held: Option<crate::HeldCommand>,
    ) -> Result<Recording, RecordError> {
        let info = self.describe()?;
        let mut writer = TraceWriter::create(file, &info, self.options.compression)?;
        if !self.starts_at_exec() {
            self.attached.enable_metadata().map_err(start_failed)?;
            let mut records = Vec::new();
            metadata::synthesise(
                &self.options.target,
                self.attached.metadata.attr.id_type(),
                &mut records,
            );
            writer.push(&records);
        }
        writer.flush()?;
        // For a target other than the command, the probes start before the command does.
        if !self.starts_at_exec() {
            self.attached.enable().map_err(start_failed)?;
        }
        let started = Instant::now();
        let command = held.map(crate::HeldCommand::release).transpose()?;
        Ok(Recording {
            session: self,
            writer,
            command,
            started,
        })
    }

    /// Whether the kernel starts the events when the command begins.
    fn starts_at_exec(&self) -> bool {
        matches!(self.options.target, Target::Command(_))
    }

    fn describe(&self) -> Result<TraceInfo, RecordError> {
        let mut info = host::describe(&self.options.producer, self.options.command_line.clone())?;
        info.pmus = vec![
            (1, "software".to_owned()),
            (self.attached.pmu, "uprobe".to_owned()),
        ];
        let planted = self
            .attached
            .planted
            .iter()
            .map(|planted| planted.attr.clone());
        info.events = planted.chain([self.attached.metadata.clone()]).collect();
        info.definitions = Some(self.definitions());
        Ok(info)
    }

    fn definitions(&self) -> Definitions {
        let mut files: Vec<FileDefinition> = Vec::new();
        let mut probes = Vec::new();
        for (probe, planted) in self.probes.iter().zip(&self.attached.planted) {
            let file = FileDefinition {
                path: probe.path.clone(),
                build_id: probe.build_id,
                arch: probe.arch,
            };
            let index = files
                .iter()
                .position(|known| *known == file)
                .unwrap_or_else(|| {
                    files.push(file);
                    files.len() - 1
                });
            probes.push(definition(probe, planted, index));
        }
        Definitions {
            version: Definitions::VERSION,
            producer: self.options.producer.clone(),
            engine: "perf".to_owned(),
            files,
            probes,
        }
    }
}

fn definition(probe: &PlannedProbe, planted: &Planted, file: usize) -> ProbeDefinition {
    let operands = |args: &str| parse_operands(args, probe.arch).len();
    let arguments = probe
        .sites
        .iter()
        .map(|site| operands(&site.args))
        .max()
        .unwrap_or(0);
    let sites = probe
        .sites
        .iter()
        .zip(&planted.sites)
        .map(|(site, events)| SiteDefinition {
            site: site.clone(),
            ids: events.iter().map(|event| event.id).collect(),
        });
    ProbeDefinition {
        event: probe.event(),
        provider: probe.provider.clone(),
        name: probe.name.clone(),
        file,
        plan: probe.plan,
        arguments: (1..=arguments)
            .map(|number| format!("arg{number}"))
            .collect(),
        sites: sites.collect(),
    }
}

/// A running session.
#[derive(Debug)]
pub struct Recording {
    session: Session,
    writer: TraceWriter,
    command: Option<RunningCommand>,
    started: Instant,
}

/// Why the loop goes on or ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Drain,
    Interrupted,
    Ended,
}

impl Recording {
    /// Records until a signal, the end of the time, of the command, or of all that is recorded, and
    /// ends the trace. `progress` is called at least ten times a second.
    ///
    /// What is open in the kernel is handed back in any case. The outcome is [`RecordError::Write`] when
    /// the trace could not be written on: what was flushed is whole.
    pub fn run(
        mut self,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> (Result<Outcome, RecordError>, Released) {
        let looped = self.record(signals, progress);
        let elapsed = self.started.elapsed();
        // Stopping cannot fail for events that are open; if it did, their last hits would only come too late.
        let _ = self.session.attached.disable();
        // The command ended, or it is to end with the recording, as with perf.
        let command_status = self
            .command
            .as_mut()
            .and_then(|command| command.terminate().ok());
        self.drain();
        let losses = losses(&self.session.attached);
        let Self {
            session, writer, ..
        } = self;
        let outcome = looped.and_then(|interrupted| {
            let losses = losses.map_err(|source| host_error("the events' counts", source))?;
            let totals = writer.finish(&losses.exact)?;
            Ok(Outcome {
                totals,
                elapsed,
                unaccounted: losses.hits.saturating_sub(totals.samples + losses.lost),
                losses: losses.by_probe,
                interrupted,
                command_status,
            })
        });
        (
            outcome,
            Released {
                _attached: session.attached,
            },
        )
    }

    /// The loop; tells whether a signal ended it.
    fn record(
        &mut self,
        signals: &Signals,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, RecordError> {
        let mut flushed = Instant::now();
        let mut watched: Vec<bool> = self.session.attached.descriptors().map(|_| true).collect();
        loop {
            let next = self.wait(signals, &mut watched)?;
            self.drain();
            if self.writer.pending() >= FLUSH_BYTES
                || (flushed.elapsed() >= FLUSH_TIME && self.writer.pending() > 0)
            {
                self.writer.flush()?;
                flushed = Instant::now();
            }
            progress(Progress {
                elapsed: self.started.elapsed(),
                totals: self.writer.totals(),
            });
            match next {
                Next::Drain => {}
                Next::Interrupted => return Ok(true),
                Next::Ended => return Ok(false),
            }
        }
    }

    /// Waits until a ring has something, or it is time to look.
    fn wait(&mut self, signals: &Signals, watched: &mut [bool]) -> Result<Next, RecordError> {
        let timeout = self
            .remaining()
            .map_or(POLL_TIME, |remaining| remaining.min(POLL_TIME));
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let descriptors = self
            .session
            .attached
            .descriptors()
            .enumerate()
            .filter(|(index, _)| watched[*index]);
        let (indexes, descriptors): (Vec<_>, Vec<_>) = descriptors.unzip();
        let mut polled: Vec<PollFd<'_>> = vec![PollFd::from_borrowed_fd(
            signals.descriptor(),
            PollFlags::IN,
        )];
        polled.extend(
            descriptors
                .into_iter()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(host_error("the rings (poll)", error.into())),
        }
        for (index, polled) in indexes.into_iter().zip(&polled[1..]) {
            watched[index] = !polled.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        }
        let interrupted = polled[0].revents().contains(PollFlags::IN);
        drop(polled);
        self.next(interrupted, watched)
    }

    fn next(&mut self, interrupted: bool, watched: &[bool]) -> Result<Next, RecordError> {
        if interrupted {
            return Ok(Next::Interrupted);
        }
        let command_ended = match &mut self.command {
            Some(command) => command
                .try_wait()
                .map_err(|source| host_error("the command's status", source))?
                .is_some(),
            None => false,
        };
        let all_ended = !watched.contains(&true);
        let time_is_up = self.remaining() == Some(Duration::ZERO);
        Ok(if command_ended || all_ended || time_is_up {
            Next::Ended
        } else {
            Next::Drain
        })
    }

    /// What is left of the time asked for.
    fn remaining(&self) -> Option<Duration> {
        let duration = self.session.options.duration?;
        Some(duration.saturating_sub(self.started.elapsed()))
    }

    /// One pass over all rings.
    fn drain(&mut self) {
        for ring in &mut self.session.attached.rings {
            ring.drain(|records| self.writer.push(records));
        }
    }
}

/// Reads all counts.
fn losses(attached: &Attached) -> io::Result<Losses> {
    let probe = |planted: &Planted| ProbeLoss {
        event: planted.attr.name.clone(),
        lost: 0,
        hits: 0,
    };
    let mut by_probe: Vec<ProbeLoss> = attached.planted.iter().map(probe).collect();
    let mut losses = Losses::default();
    for counted in attached.counts() {
        let (event, id, count) = counted?;
        let lost = count.lost.unwrap_or(0);
        losses.hits += count.hits;
        losses.lost += lost;
        by_probe[event].hits += count.hits;
        by_probe[event].lost += lost;
        if lost > 0 {
            losses.exact.push(Loss { event, id, lost });
        }
    }
    by_probe.retain(|probe| probe.lost > 0);
    by_probe.sort_by_key(|probe| std::cmp::Reverse(probe.lost));
    losses.by_probe = by_probe;
    Ok(losses)
}

/// What the events counted at the end.
#[derive(Debug, Default)]
struct Losses {
    exact: Vec<Loss>,
    by_probe: Vec<ProbeLoss>,
    hits: u64,
    lost: u64,
}

/// A finished session's events, still open in the kernel. Dropping it lets go of them, which takes the
/// kernel about a tenth of a second each.
#[derive(Debug)]
pub struct Released {
    _attached: Attached,
}

fn wanted_cpus(asked: Option<&[u32]>) -> Result<Vec<u32>, RecordError> {
    let online = cpus::online()?;
    let Some(asked) = asked else {
        return Ok(online);
    };
    match asked.iter().find(|cpu| !online.contains(cpu)) {
        Some(cpu) => Err(RecordError::Usage(format!(
            "CPU {cpu} is not on line (on line: {online:?})"
        ))),
        None => Ok(asked.to_vec()),
    }
}

fn host_error(what: &str, source: io::Error) -> RecordError {
    RecordError::Host {
        what: what.to_owned(),
        source,
    }
}

fn start_failed(source: io::Error) -> RecordError {
    RecordError::Kernel {
        what: "the events cannot be started".to_owned(),
        source,
    }
}
