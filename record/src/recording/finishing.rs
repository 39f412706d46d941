//! The end of a recording.

use std::thread;
use std::time::Duration;

use usdtrec_attach::engine::{COUNTERS, EngineOutcome, Release};
use usdtrec_attach::error::RecordError;
use usdtrec_buildid_cache::served::Haste;
use usdtrec_format::trace::Loss;
use usdtrec_kernel::signals::Signals;
use usdtrec_kernel::trace_clock;
use usdtrec_watch::left_breakpoints::{KernelLog, OwnSites};
use usdtrec_watch::makers::CodeMakers;
use usdtrec_watch::semaphores::Semaphores;
use usdtrec_watch::shortfalls::{FoundShortfall, Shortfalls};
use usdtrec_watch::stacks::StackUnwinder;
use usdtrec_watch::verify::Verifier;

use super::waiting::MIN_GATHER_TIME;
use super::{Recording, losses, misses_hits, remarks, without_waits};
use crate::budget::budgeting::Budgeting;
use crate::output::files::{Files, FinishedFiles};
use crate::output::sync::DiskSync;
use crate::recording::ending::Ending;
use crate::recording::losses::EventCounts;
use crate::recording::outcome::{End, EndedProcess, Finished, HitTotals, Outcome, Progress};
use crate::recording::session::Session;
use crate::recording::unread_files::UnreadCounts;

/// How the named processes of a session ended.
fn ended(session: &Session) -> Vec<EndedProcess> {
    let named = session.named.iter().map(|process| EndedProcess {
        pid: process.pid,
        status: process.exit_status(),
    });
    named.collect()
}

/// What the last pass left to be completed.
struct LastPass {
    /// Why the loop ended.
    looped: Result<End, RecordError>,
    elapsed: Duration,
    ended: Vec<EndedProcess>,
    engine: EngineOutcome,
    /// Whether a file could be made of a trigger that waited.
    made: Result<(), RecordError>,
    counts: Result<EventCounts, RecordError>,
    syncs: Vec<DiskSync>,
    release: Option<Release>,
    log: Option<KernelLog>,
}

/// What was counted until the end.
struct Counted {
    end: End,
    elapsed: Duration,
    counts: EventCounts,
    /// What was aggregated in the kernel; `None` if hits were recorded.
    totals: Option<HitTotals>,
}

/// How many hits were to be written, and how many were before the end.
#[derive(Clone, Copy)]
struct Extent {
    /// `None` if not known.
    hits: Option<u64>,
    written: u64,
    /// Those that are not to be written.
    left_out: u64,
}

impl Extent {
    /// An error, with what is missing if it is one of writing.
    fn incomplete(self, error: RecordError) -> RecordError {
        match (error, self.hits) {
            (RecordError::Write(source), Some(hits)) => RecordError::Incomplete {
                missing: hits.saturating_sub(self.written + self.left_out),
                hits: hits.saturating_sub(self.left_out),
                source,
            },
            (error, _) => error,
        }
    }
}

impl Recording {
    /// Records until a signal, the end of the duration, of the command, or of all recorded processes, and completes the trace. Calls
    /// `progress` at least ten times per second.
    ///
    pub fn run(mut self, signals: &Signals, progress: &mut dyn FnMut(Progress)) -> Finished {
        // The rings are drained meanwhile.
        let _haste = Haste::begin();
        let looped = self.record(signals, progress);
        let elapsed = self.started.elapsed();
        signals.forget();
        self.follower.end();
        self.file_watch.end();
        if let Some(budgeting) = &mut self.budgeting {
            budgeting.end();
        }
        self.session.attached.engine.end_holding();
        self.look_last();
        // From here on only: other tracers leave breakpoints, too.
        let log = match self.log.take() {
            Some(log) => log.forward(),
            None => KernelLog::from_now(),
        };
        self.lower_semaphores();
        let ended = match looped {
            Ok(End::Gone) => ended(&self.session),
            _ => Vec::new(),
        };
        let attached = &mut self.session.attached;
        // Disabling open events cannot fail. If it did, only their last hits would come too late.
        let _ = attached.disable();
        let disabled = trace_clock::now();
        let mut release = attached.engine.release_first();
        let engine = self.drain_last(release.as_mut(), &ended);
        self.files.note_drained(disabled);
        self.note_last(&engine);
        self.triggering.settle(signals);
        // A signal for a file that was sent before the one for the end may be handled after it, by another thread.
        self.triggering.take_asked(signals);
        let last = self.triggering.take_last();
        let made = last.map_or(Ok(()), |due| self.make_file(due));
        self.triggering.settle(signals);
        let syncs = self.triggering.finish(signals);
        self.cpus.look_now();
        self.note_cpus();
        let counts = self.count();
        self.complete(LastPass {
            looped,
            elapsed,
            ended,
            engine,
            made,
            counts,
            syncs,
            release,
            log,
        })
    }

    /// The last pass over all rings, when no hits come any more.
    fn drain_last(
        &mut self,
        release: Option<&mut Release>,
        ended: &[EndedProcess],
    ) -> EngineOutcome {
        let (files, pipeline) = (&mut self.files, &mut self.pipeline);
        let session = &mut self.session;
        pipeline.begin(session, files, None);
        let engine = session.drain_last(release, |records| {
            pipeline.take(files, records);
        });
        if let Some(verifier) = pipeline.stages.get::<Verifier>() {
            for EndedProcess { pid, status } in ended {
                if let Some(status) = status {
                    verifier.note_end(*pid, *status);
                }
            }
            if let Some(command) = &mut self.command
                && let Ok(Some(status)) = command.try_wait()
            {
                verifier.note_end(command.pid(), status);
            }
        }
        pipeline.finish(files);
        engine
    }

    /// Writes what is known at the end only.
    fn note_last(&mut self, engine: &EngineOutcome) {
        self.follower.take(self.session.build_ids.take_new());
        let unread = UnreadCounts {
            processes: self.rereading.unread_processes(),
            ..self.session.build_ids.unread()
        };
        self.report_planted(true);
        let session = &self.session;
        self.follower.finish(unread, &session.shortfalls);
        let events = &session.options.following.events;
        remarks::note_unselected(events, &session.attached, &session.shortfalls);
        note_counters(engine, &session.shortfalls);
        if let (Some(spans), Some(counts)) = (&session.options.engine.slow_spans, engine.spans) {
            let is_filtered = session.options.following.has_filter();
            remarks::note_short_spans(&session.shortfalls, spans, is_filtered, Some(counts));
        }
        self.write_shortfalls();
        self.write_strings();
        self.fire_sighted();
        self.triggering.note_overlaps(self.pipeline.stages.get());
    }

    /// Completes the trace.
    fn complete(mut self, last: LastPass) -> Finished {
        let is_asked = matches!(last.looped, Ok(End::Signal));
        let known = last.counts.as_ref().ok();
        let lost = known.map_or_else(Vec::new, |counts| counts.since(&self.counts));
        let extent = Extent {
            hits: known.map(|counts| counts.hits),
            written: self.totals().samples,
            left_out: self.pipeline.stages.left_out(),
        };
        let own = self.own_sites(last.log);
        let stacks = self.pipeline.stages.get();
        let elsewhere = stacks.map(StackUnwinder::files_elsewhere);
        let makers = self.pipeline.stages.take_out();
        let recorded = last.looped.and_then(|end| {
            last.made?;
            self.counted(end, last.counts?, last.elapsed)
        });
        let outcome = recorded.map(|counted| self.outcome(counted, last.engine, last.ended));
        let mut syncs = last.syncs;
        let outcome = finish(self.files, &lost, outcome, &mut syncs);
        let mut attached = self.session.attached;
        let release = last.release;
        Finished {
            outcome: outcome.map_err(|error| extent.incomplete(error)),
            elsewhere: elsewhere.unwrap_or_default(),
            maker_files: makers.map(CodeMakers::finish).unwrap_or_default(),
            ending: Ending {
                command: self.command,
                leave_command: self.session.options.leave_command,
                release: release.unwrap_or_else(|| attached.engine.release()),
                attached,
                syncs,
                own: Some(own),
                is_asked,
            },
        }
    }

    /// What was counted until the end.
    fn counted(
        &self,
        end: End,
        counts: EventCounts,
        elapsed: Duration,
    ) -> Result<Counted, RecordError> {
        let aggregation = self.session.options.engine.aggregation.as_ref();
        let totals = aggregation.map(|_| {
            let engine = &self.session.attached.engine;
            losses::read_totals(engine, elapsed, counts.by_probe.clone())
        });
        Ok(Counted {
            end,
            elapsed,
            totals: totals.transpose()?,
            counts,
        })
    }

    /// The outcome, once the files are finished.
    fn outcome(
        &mut self,
        counted: Counted,
        engine: EngineOutcome,
        ended: Vec<EndedProcess>,
    ) -> impl FnOnce(FinishedFiles) -> Outcome + use<> {
        let Counted {
            end,
            elapsed,
            counts,
            totals: counted,
        } = counted;
        let left_out = self.pipeline.stages.left_out();
        let stacks = self.pipeline.stages.get();
        let cut_stacks = stacks.map_or_else(Vec::new, StackUnwinder::cut_stacks);
        let cpus_uncounted = misses_hits(&self.session, &self.cpus);
        let changed_cpus = self.cpus.changed();
        let followed = self.follower.files();
        let shortfalls = self.session.shortfalls.all().to_vec();
        let triggered = self.triggering.take_events();
        let without_file = self.triggering.pace.without_file();
        let has_budget = self.session.options.engine.budget.is_some();
        let budgeting = self.budgeting.as_mut();
        let paused = budgeting.as_ref().map_or_else(Vec::new, |of| of.paused());
        let budget = budgeting.map_or_else(Vec::new, Budgeting::take_events);
        move |FinishedFiles {
                  totals, changes, ..
              }| Outcome {
            totals: without_waits(totals, engine.waits),
            elapsed,
            unaccounted: match counted {
                None => (counts.hits + engine.waits)
                    .saturating_sub(totals.samples + counts.lost + left_out),
                Some(_) => 0,
            },
            losses: counts.losing(),
            counted,
            // Hits of spans that are not recorded are counted for all events of spans together.
            silent: match engine.spans.is_some_and(|spans| spans.has_any()) {
                true => Vec::new(),
                false => counts.silent(),
            },
            engine,
            cpus_uncounted,
            changed_cpus,
            cut_stacks,
            followed,
            shortfalls,
            changes,
            triggered,
            without_file,
            has_budget,
            paused,
            budget,
            end,
            ended,
        }
    }

    /// Where this recording had breakpoints.
    fn own_sites(&mut self, log: Option<KernelLog>) -> OwnSites {
        let checked = self.pipeline.stages.get().map(Verifier::files);
        OwnSites {
            files: checked.cloned().unwrap_or_default(),
            pids: self.pipeline.processes(),
            notes: self.session.notes.take(),
            log,
        }
    }

    /// Decrements the semaphores that the kernel counts wrong, and drains the rings meanwhile: until then programs hit their sites.
    fn lower_semaphores(&mut self) {
        let Some(semaphores) = self.session.semaphores.take() else {
            return;
        };
        let mut semaphores = Some(semaphores);
        thread::scope(|scope| {
            let lower = || semaphores.take().map(Semaphores::finish);
            let lowering = thread::Builder::new().spawn_scoped(scope, lower);
            while lowering.as_ref().is_ok_and(|thread| !thread.is_finished()) {
                self.drain();
                thread::sleep(MIN_GATHER_TIME);
            }
        });
        // No thread could be started.
        if let Some(semaphores) = semaphores {
            semaphores.finish();
        }
    }

    /// Verifies the processes a last time, before anything is removed.
    fn look_last(&mut self) {
        let (files, pipeline) = (&mut self.files, &mut self.pipeline);
        let session = &mut self.session;
        session.drain_processes(|records| pipeline.take(files, records), None);
        if let Some(verifier) = pipeline.stages.get_mut::<Verifier>() {
            verifier.look_last();
        }
    }
}

/// Finishes the files, also if the recording failed. `outcome` makes the outcome of them.
fn finish(
    files: Files,
    lost: &[Loss],
    outcome: Result<impl FnOnce(FinishedFiles) -> Outcome, RecordError>,
    syncs: &mut Vec<DiskSync>,
) -> Result<Outcome, RecordError> {
    // It could not be written before.
    if let Err(error @ RecordError::Write(_)) = outcome {
        return Err(error);
    }
    let mut finished = files.finish(lost);
    if let Ok(finished) = &mut finished {
        syncs.append(&mut finished.syncs);
    }
    // The hits that were read last are in the file all the same. What ended the recording is the error to be told.
    let outcome = outcome?;
    finished.map(outcome)
}

/// Notes what the engine has counted.
fn note_counters(outcome: &EngineOutcome, shortfalls: &Shortfalls) {
    for counter in COUNTERS {
        let value = outcome.counts.of(counter.kind);
        if value > 0 {
            shortfalls.replace(FoundShortfall {
                kind: counter.kind,
                found: (counter.found)(value),
                effect: counter.effect.to_owned(),
                ..FoundShortfall::default()
            });
        }
    }
}
