//! The summary of a trace.

use serde::Serialize;
use usdtrec_analysis::stats::frequency::Frequency;
use usdtrec_analysis::stats::number::Scalar;
use usdtrec_analysis::stats::ratio::{per_second, share};
use usdtrec_analysis::summary::busiest::BusyProcess;
use usdtrec_analysis::summary::counts::NamedProcesses;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, ProbeFacts, Spread, StringFacts};
use usdtrec_trace::form::Form;

use crate::answer::figure::Figure;
use crate::answer::reasons::{DamageRow, NoEventsRow, ShortfallRow, UnusualRow};
use crate::answer::recorded_time::RecordedTime;
use crate::answer::recording::RecordingAnswer;
use crate::answer::spans::SpanStatistics;
use crate::hints::HintWords;
use crate::sentences::Sentences as _;
use crate::text::scalar::{decimal, shown};

/// The summary of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SummaryAnswer {
    /// The recording as a whole.
    #[serde(flatten)]
    pub recording: RecordingAnswer,
    /// Number of selected events.
    pub events: u64,
    /// When recording began, within the selected time, by the trace's clock, ns; `None` if the trace does not say.
    pub begin_ns: Option<u64>,
    /// When it ended, ns; `None` as `begin_ns`.
    pub end_ns: Option<u64>,
    /// Time of the first event, by the trace's clock, ns; `None` without events.
    pub first_ns: Option<u64>,
    /// Time of the last event, ns.
    pub last_ns: Option<u64>,
    /// Number of events that were lost; `None` if that is not known.
    pub lost: Option<u64>,
    /// Whether these are all; else at least so many were lost.
    pub lost_exact: bool,
    /// The probes, those with the most events first.
    pub probes: Vec<ProbeRow>,
    /// Spans that are found by the names of probes.
    pub spans: Vec<SpanStatistics>,
    /// Processes, at most 256, the busiest first.
    pub processes: Vec<ProcessRow>,
    /// What stands out.
    pub unusual: Vec<UnusualRow>,
    /// `no_events` in sentences.
    pub reasons: Vec<String>,
    /// Known reasons why probes have no events.
    pub no_events: Vec<NoEventsRow>,
    /// What the recorder found not to work.
    pub shortfalls: Vec<ShortfallRow>,
    /// Damaged parts of the trace.
    pub damage: Vec<DamageRow>,
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbeRow {
    /// Name of the event: `sdt_PROVIDER:NAME`.
    pub event: String,
    /// Number of its events.
    pub count: u64,
    /// Its events per second, over the recording; `None` if there are too few to say.
    pub per_second: Option<f64>,
    /// Its share of all events, 0 to 1.
    pub share: f64,
    /// Number of its events that were lost; `None` if that is not known.
    pub lost: Option<u64>,
    /// When it was recorded; `None` if it was never detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedProbeRow>,
    /// The processes that hit it, by name, those with the most events first.
    pub processes: Vec<CommRow>,
    /// Whether these are all; else there were more than 1,048,576, and some of them are counted.
    pub processes_exact: bool,
    /// Its arguments in their order.
    pub arguments: Vec<ArgumentRow>,
}

/// A probe that was detached for a part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PausedProbeRow {
    /// When it was recorded.
    #[serde(flatten)]
    pub recorded: RecordedTime,
    /// About how many hits there were; `None` if it is not known.
    pub estimated_hits: Option<u64>,
}

/// Processes of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommRow {
    /// The name.
    pub comm: String,
    /// Number of processes that have it.
    pub processes: usize,
    /// Number of their events.
    pub count: u64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessRow {
    /// Its name.
    pub comm: String,
    /// Its id.
    pub pid: i32,
    /// Number of its events.
    pub count: u64,
    /// Number of probes that it hit.
    pub probes: usize,
}

/// An argument of a probe. Percentiles are of its numbers, and `None` without numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArgumentRow {
    /// Its name.
    pub name: String,
    /// `s32`, `u64`, `f64`, …, several with `/` between; or what the schema says: `str`, `enum`, ….
    #[serde(rename = "type")]
    pub kind: String,
    /// What it counts: `ns`, `bytes`, ….
    pub unit: Option<String>,
    /// Number of numbers.
    pub count: u64,
    /// The least.
    pub min: Option<Figure>,
    /// Median.
    pub p50: Option<Figure>,
    /// 90th percentile.
    pub p90: Option<Figure>,
    /// 99th percentile.
    pub p99: Option<Figure>,
    /// The greatest.
    pub max: Option<Figure>,
    /// Whether percentiles are exact; else they are within 1/256 of themselves.
    pub exact: bool,
    /// Different numbers, the most frequent first; `None` if they are more than 256, or none.
    pub values: Option<Vec<NumberRow>>,
    /// The strings, if there are any.
    pub texts: Option<StringsAnswer>,
    /// Number of floats that are NaN.
    pub nan: u64,
    /// Number of strings whose pointer is null.
    pub nulls: u64,
    /// Reasons of missing values, the most frequent first.
    pub missing: Vec<MissingRow>,
}

/// A number, and how often it occurred.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberRow {
    /// The number.
    pub value: Figure,
    /// The word, or other form, that the schema has for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// How often.
    pub count: u64,
}

/// The strings of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StringsAnswer {
    /// Number of strings.
    pub count: u64,
    /// Number of different ones; if not exact, at least so many.
    pub different: usize,
    /// Whether all were counted one by one.
    pub exact: bool,
    /// Number of strings that were longer than what was captured.
    pub cut: u64,
    /// The most frequent ones, at most 256.
    pub values: Vec<StringRow>,
}

/// A string, and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StringRow {
    /// The string; U+FFFD replaces what is not UTF-8.
    pub value: String,
    /// How often.
    pub count: u64,
    /// The readable name, if it is a mangled name of C++ or Rust, as a schema says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demangled: Option<String>,
}

/// Why values are missing, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingRow {
    /// The reason.
    pub reason: String,
    /// How often.
    pub count: u64,
}

impl SummaryAnswer {
    pub(crate) fn new(facts: &SummaryFacts) -> Self {
        let unusual = facts.unusual.iter();
        let probes = facts.probes.iter();
        Self {
            recording: RecordingAnswer::new(&facts.origin),
            events: facts.events,
            begin_ns: facts.recorded.map(|time| time.first),
            end_ns: facts.recorded.map(|time| time.last),
            first_ns: facts.time.map(|time| time.first),
            last_ns: facts.time.map(|time| time.last),
            lost: facts.losses.ledger.known_total(),
            lost_exact: facts.losses.ledger.is_exact(),
            probes: probes.map(|probe| ProbeRow::new(probe, facts)).collect(),
            spans: facts.spans.iter().map(SpanStatistics::new).collect(),
            processes: facts.busiest.first.iter().map(ProcessRow::new).collect(),
            unusual: unusual
                .map(|unusual| UnusualRow::new(unusual, facts.start))
                .collect(),
            reasons: facts.reasons.sentences(HintWords::default()),
            no_events: facts.reasons.iter().map(NoEventsRow::new).collect(),
            shortfalls: facts.shortfalls.iter().map(ShortfallRow::new).collect(),
            damage: facts.damage.iter().map(DamageRow::new).collect(),
        }
    }
}

impl ProbeRow {
    fn new(probe: &ProbeFacts, facts: &SummaryFacts) -> Self {
        Self {
            event: probe.event.clone(),
            count: probe.count,
            per_second: per_second(probe.count, facts.duration_of(probe)),
            share: share(probe.count, facts.events),
            lost: facts.losses.ledger.known(probe.lost),
            paused: probe.part.map(|part| PausedProbeRow {
                recorded: RecordedTime::new(&part),
                estimated_hits: probe.estimated_hits(),
            }),
            processes: probe.processes.iter().map(CommRow::new).collect(),
            processes_exact: probe.other_processes == 0,
            arguments: probe.arguments.iter().map(ArgumentRow::new).collect(),
        }
    }
}

impl CommRow {
    fn new(named: &NamedProcesses) -> Self {
        Self {
            comm: named.name.clone(),
            processes: named.processes,
            count: named.count,
        }
    }
}

impl ProcessRow {
    fn new(process: &BusyProcess) -> Self {
        Self {
            comm: process.comm.clone(),
            pid: process.pid,
            count: process.count,
            probes: process.probes,
        }
    }
}

impl ArgumentRow {
    fn new(argument: &ArgumentFacts) -> Self {
        let spread = argument.spread();
        let number = |of: fn(&Spread) -> Scalar| spread.map(|spread| of(spread).into());
        let form = argument.form.clone().plain();
        let values = spread.and_then(|spread| spread.values.as_ref());
        let missing = argument.missing.iter().map(|reason| MissingRow {
            reason: reason.value.clone(),
            count: reason.count,
        });
        Self {
            name: argument.name.clone(),
            kind: argument.kind.clone(),
            unit: argument.unit.clone(),
            count: spread.map_or(0, |spread| spread.count),
            min: number(|spread| spread.min),
            p50: number(|spread| spread.median),
            p90: number(|spread| spread.p90),
            p99: number(|spread| spread.p99),
            max: number(|spread| spread.max),
            exact: spread.is_none_or(|spread| spread.exact),
            values: values.map(|all| all.iter().map(|one| NumberRow::new(*one, &form)).collect()),
            texts: argument
                .strings
                .as_ref()
                .map(|strings| StringsAnswer::new(strings, &argument.form)),
            nan: argument.nan,
            nulls: argument.nulls,
            missing: missing.collect(),
        }
    }
}

impl NumberRow {
    fn new(Frequency { value, count }: Frequency<Scalar>, form: &Form) -> Self {
        let shown = shown(value, form);
        Self {
            value: value.into(),
            shown: (shown != decimal(value)).then_some(shown),
            count,
        }
    }
}

impl StringsAnswer {
    fn new(strings: &StringFacts, form: &Form) -> Self {
        let row = |string: &Frequency<Vec<u8>>| StringRow {
            value: String::from_utf8_lossy(&string.value).into_owned(),
            count: string.count,
            demangled: form.readable_string(&string.value),
        };
        Self {
            count: strings.count,
            different: strings.different,
            exact: strings.exact,
            cut: strings.cut,
            values: strings.values.iter().map(row).collect(),
        }
    }
}
