//! A recording session: from planted probes to a finished trace.

use std::io;
use std::time::{Duration, Instant};

use usdtrec_format::trace::{Compression, TraceInfo};
use usdtrec_format::{
    Definitions, FileDefinition, ProbeDefinition, SiteDefinition, parse_operands,
};

use crate::engine::{Attached, Planted};
use crate::files::{Destination, Files, Switch};
use crate::recording::Recording;
use crate::select::PlannedProbe;
use crate::target::Target;
use crate::{HeldCommand, RecordError, cpus, host, metadata};

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
    /// End when the files have this many bytes.
    pub max_size: Option<u64>,
    /// When to go on with a new file.
    pub switch: Option<Switch>,
    /// Program name and version, for the trace.
    pub producer: String,
    /// Command line, for the trace.
    pub command_line: Vec<String>,
}

/// A session with its probes planted and not yet started.
#[derive(Debug)]
pub struct Session {
    pub(crate) options: Options,
    pub(crate) attached: Attached,
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
    /// [`RecordError::Output`], [`RecordError::Write`], [`RecordError::Host`], [`RecordError::Kernel`].
    pub fn start(
        self,
        destination: Destination,
        held: Option<HeldCommand>,
    ) -> Result<Recording, RecordError> {
        let mut files = Files::create(self.describe()?, self.options.compression, destination)?;
        if !self.starts_at_exec() {
            self.attached.enable_metadata().map_err(start_failed)?;
            files.push(&self.running_processes());
        }
        files.flush()?;
        // For a target other than the command, the probes start before the command does.
        if !self.starts_at_exec() {
            self.attached.enable().map_err(start_failed)?;
        }
        let started = Instant::now();
        let command = held.map(HeldCommand::release).transpose()?;
        Ok(Recording::new(self, files, command, started))
    }

    /// Records about the processes that run already.
    pub(crate) fn running_processes(&self) -> Vec<u8> {
        metadata::synthesise(&self.options.target, self.attached.metadata.attr.id_type())
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

fn start_failed(source: io::Error) -> RecordError {
    RecordError::Kernel {
        what: "the events cannot be started".to_owned(),
        source,
    }
}
