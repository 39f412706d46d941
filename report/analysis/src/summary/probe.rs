//! What a probe and its arguments held.

use usdtrec_format::schema;
use usdtrec_format::{Operand, parse_operands};
use usdtrec_trace::added::added_argument::AddedArgument;
use usdtrec_trace::form::Form;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::recorded_part::RecordedPart;

use crate::stats::argument::ArgumentStats;
use crate::stats::bursts::{Episodes, Slices};
use crate::stats::distribution::{Distribution, EXACT, Quantile};
use crate::stats::frequency::{Frequency, sort_by_count};
use crate::stats::number::{Number, Scalar};
use crate::stats::string_counts::StringCounts;
use crate::summary::counts::{NamedProcesses, ProbeSums};

/// A probe.
#[derive(Debug)]
pub struct ProbeFacts {
    /// perf's event name.
    pub event: String,
    /// Number of its samples.
    pub count: u64,
    /// Lost events; 0 if the trace does not say which probe lost them.
    pub lost: u64,
    /// The part of the selected time in which it was recorded; `None` if it was never detached.
    pub part: Option<RecordedPart>,
    /// Its processes by their names, the most samples first.
    pub processes: Vec<NamedProcesses>,
    /// Samples of processes that are too many to be counted one by one.
    pub other_processes: u64,
    /// Its arguments.
    pub arguments: Vec<ArgumentFacts>,
    /// When it hit more often than usual, and when not at all.
    pub(crate) episodes: Episodes,
}

/// An argument of a probe.
#[derive(Debug)]
pub struct ArgumentFacts {
    /// Its name.
    pub name: String,
    /// Its type: as the schema says, else sizes and signs at the probe's sites (`s32`, `u64`, `f64`; `?` where the note
    /// gives no size).
    pub kind: String,
    /// The argument that it counts.
    pub unit: Option<String>,
    /// How its values are shown.
    pub form: Form,
    /// Its integers.
    pub integers: Option<Spread>,
    /// Its floats.
    pub floats: Option<Spread>,
    /// All of them as floats, if it has integers and floats.
    pub both: Option<Spread>,
    /// Its strings.
    pub strings: Option<StringFacts>,
    /// Floats that are no number.
    pub nan: u64,
    /// Strings that are not there, as the pointer to them is null.
    pub nulls: u64,
    /// Reasons why values are missing, with their counts, the most frequent first.
    pub missing: Vec<Frequency<String>>,
}

/// Which strings an argument holds.
#[derive(Debug)]
pub struct StringFacts {
    /// Number of strings.
    pub count: u64,
    /// Strings with their counts, the most frequent first, at most [`StringFacts::MAX_STRINGS`].
    pub values: Vec<Frequency<Vec<u8>>>,
    /// Different strings; at least so many if not `exact`.
    pub different: usize,
    /// Whether all different strings were counted.
    pub exact: bool,
    /// Strings that are not whole.
    pub cut: u64,
}

impl StringFacts {
    /// Strings that are shown one by one.
    pub const MAX_STRINGS: usize = 256;

    fn new(strings: &StringCounts) -> Option<Self> {
        let all = strings.by_count();
        let values = all.iter().take(Self::MAX_STRINGS);
        (!all.is_empty()).then(|| Self {
            count: strings.count(),
            values: values.map(|string| string.map(<[u8]>::to_vec)).collect(),
            different: all.len(),
            exact: strings.others() == 0,
            cut: strings.cut(),
        })
    }
}

/// The distribution of an argument's numbers.
#[derive(Debug)]
pub struct Spread {
    /// Number of numbers.
    pub count: u64,
    /// The smallest one.
    pub min: Scalar,
    /// The median.
    pub median: Scalar,
    /// The 0.90 quantile.
    pub p90: Scalar,
    /// The 0.99 quantile.
    pub p99: Scalar,
    /// Whether these are exact; else they are within 1/256 of themselves.
    pub exact: bool,
    /// The greatest one.
    pub max: Scalar,
    /// All different numbers with their counts, the most frequent first, if they are few.
    pub values: Option<Vec<Frequency<Scalar>>>,
}

impl ArgumentFacts {
    /// Its numbers.
    pub fn spread(&self) -> Option<&Spread> {
        let spreads = [&self.both, &self.integers, &self.floats];
        spreads.into_iter().flatten().next()
    }
}

impl ProbeFacts {
    /// About how many hits there were; `None` if it was never detached, or if it is not known.
    pub fn estimated_hits(&self) -> Option<u64> {
        self.part?.estimate(self.count)
    }

    pub(crate) fn new(
        session: &TraceSession,
        rows: &Rows,
        at: usize,
        sums: ProbeSums,
        lost: u64,
        slices: Slices,
    ) -> Self {
        let row = &rows.rows[at];
        let processes = sums.names(session);
        let kinds = kinds(session, &row.events, row.arguments.len());
        let unknown_site = sums.unknown_site;
        let episodes = sums.pace.episodes(slices);
        let arguments = row.arguments.iter().zip(kinds).zip(sums.arguments);
        Self {
            event: row.name.clone(),
            count: sums.count,
            lost,
            part: None,
            processes,
            other_processes: sums.other_processes,
            episodes,
            arguments: arguments
                .map(|((known, kind), argument)| {
                    ArgumentFacts::new(known, kind, &argument, unknown_site)
                })
                .collect(),
        }
    }
}

impl ArgumentFacts {
    fn new(
        known: &schema::Argument,
        of_notes: String,
        argument: &ArgumentStats,
        unknown_site: u64,
    ) -> Self {
        let mut missing = argument.missing.in_words();
        if unknown_site > 0 {
            missing.push(Frequency::new("site not known".to_owned(), unknown_site));
        }
        let has_both = argument.integers.count() > 0 && argument.floats.count() > 0;
        let both = has_both.then(|| {
            let mut both = argument.integers.to_floats();
            both.merge(argument.floats.clone());
            Spread::new(&both)
        });
        Self {
            name: known.name.clone(),
            kind: kind(known).unwrap_or(of_notes),
            unit: known.unit.as_ref().map(ToString::to_string),
            form: Form::new(known),
            integers: Spread::new(&argument.integers),
            floats: Spread::new(&argument.floats),
            both: both.flatten(),
            strings: StringFacts::new(&argument.strings),
            nan: argument.nan,
            nulls: argument.nulls,
            missing,
        }
    }
}

impl Spread {
    /// Different numbers up to which all are listed.
    pub const MAX_VALUES: usize = EXACT;

    fn new<N: Number>(numbers: &Distribution<N>) -> Option<Self> {
        let ends = numbers.ends()?;
        let at = |thousandths| match numbers.quantile(thousandths)? {
            Quantile::Exact(number) => Some((number, true)),
            Quantile::Near(number) => Some((number, false)),
        };
        let ((median, exact), (p90, _), (p99, _)) = (at(500)?, at(900)?, at(990)?);
        let values = numbers.values().map(|mut values| {
            sort_by_count(&mut values);
            let values = values.into_iter();
            values.map(|number| number.map(N::scalar)).collect()
        });
        Some(Self {
            count: numbers.count(),
            min: ends.least.scalar(),
            median: median.scalar(),
            p90: p90.scalar(),
            p99: p99.scalar(),
            exact,
            max: ends.greatest.scalar(),
            values,
        })
    }
}

/// The kinds of each argument at all sites of a probe, `/` between different ones.
pub fn kinds(session: &TraceSession, events: &[usize], arguments: usize) -> Vec<String> {
    let mut kinds = vec![Vec::<String>::new(); arguments];
    let types = events
        .iter()
        .filter_map(|&event| session.events().events.get(event));
    for event in types {
        for (kinds, kind) in kinds.iter_mut().zip(&event.types) {
            if !kinds.contains(kind) {
                kinds.push(kind.clone());
            }
        }
    }
    let definitions = session.info().definitions.as_ref();
    let probes = events.iter().filter_map(|&event| {
        let at = session.events().events.get(event)?.probe?;
        definitions?.probes.get(at)
    });
    for probe in probes {
        let file = definitions.and_then(|all| all.files.get(probe.file));
        let arch = file.and_then(|file| file.arch);
        for site in &probe.sites {
            let args = &site.site.args;
            let operands = match &probe.plan.raw {
                Some(layout) => layout.operands(args, arch),
                None => parse_operands(args, arch),
            };
            let operands: Vec<_> = match &probe.shown {
                Some(shown) => shown.iter().map(|one| operands.get(one.argument)).collect(),
                None => operands.iter().map(Some).collect(),
            };
            for (kinds, operand) in kinds.iter_mut().zip(operands) {
                let Some(kind) = operand.map(kind_of_operand) else {
                    continue;
                };
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
    }
    let known = session.events().events.iter().enumerate();
    let asked = known.filter(|(at, _)| events.contains(at));
    for (_, event) in asked {
        let of_added = kinds.iter_mut().skip(event.own_arguments().len());
        for (kinds, added) in of_added.zip(&event.added) {
            add_kinds_of_added(session, added, kinds);
        }
    }
    kinds.into_iter().map(|kinds| kinds.join("/")).collect()
}

/// Adds the kinds of the arguments whose values an added one has.
fn add_kinds_of_added(session: &TraceSession, added: &AddedArgument, all: &mut Vec<String>) {
    for source in &added.sources {
        let of_event = kinds(session, &[source.event], source.place + 1);
        let kind = of_event.into_iter().nth(source.place);
        let kind = kind.filter(|kind| !kind.is_empty() && !all.contains(kind));
        all.extend(kind);
    }
}

/// The type of each argument of an event: what a schema says, else size and sign of the operands.
pub fn type_words(session: &TraceSession, event: usize) -> Vec<String> {
    let known = session.events().events.get(event);
    let arguments = known.map_or(&[][..], |event| &event.arguments);
    let of_operands = kinds(session, &[event], arguments.len());
    let types = arguments.iter().zip(of_operands);
    types
        .map(|(argument, of_operands)| kind(argument).unwrap_or(of_operands))
        .collect()
}

/// The type that a schema gives.
fn kind(argument: &schema::Argument) -> Option<String> {
    let bare = schema::Argument {
        unit: None,
        capture: None,
        ..argument.clone()
    };
    let known = argument.kind.is_some() || argument.labels.is_some();
    known.then(|| bare.type_words())
}

fn kind_of_operand(operand: &Operand) -> String {
    let Some(size) = operand.size else {
        return "?".to_owned();
    };
    let letter = match (operand.float, operand.signed) {
        (true, _) => 'f',
        (false, Some(true)) => 's',
        (false, _) => 'u',
    };
    format!("{letter}{}", u32::from(size) * 8)
}
