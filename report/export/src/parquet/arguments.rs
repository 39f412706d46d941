//! The columns of the arguments of several events.

use foldhash::HashMap;
use usdtrec_analysis::summary::probe::kinds;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::TraceSession;

use crate::dataset_table::DatasetTable;
use crate::parquet::argument::{ArgumentKind, TableArgument};
use crate::parquet::column::ColumnSpec;
use crate::parquet::names::ColumnNames;
use crate::redaction::{RedactedArguments, RedactedAs};

/// The columns of the arguments of several events, and of each event which argument is in which column.
#[derive(Debug, Default)]
pub(crate) struct ArgumentColumns {
    pub(crate) columns: Vec<DescribedColumn>,
    pub(crate) specs: Vec<ColumnSpec>,
    /// By event.
    pub(crate) of_event: HashMap<usize, Vec<TableArgument>>,
}

/// The description of the columns of an argument.
#[derive(Clone, Debug)]
pub(crate) struct DescribedColumn {
    /// The first of its columns.
    pub(crate) column: String,
    /// The name of the argument.
    pub(crate) argument: String,
    pub(crate) kind: ArgumentKind,
    pub(crate) unit: Option<String>,
    pub(crate) description: Option<String>,
}

/// An argument of one or more events.
struct ArgumentSlot {
    described: DescribedColumn,
    /// Its number among those of its name in an event.
    number: usize,
}

impl ArgumentColumns {
    /// The columns of a table of events, with those that every event has.
    pub(crate) fn of_events(
        session: &TraceSession,
        events: &[usize],
        redacted: &RedactedArguments,
    ) -> Self {
        let mut specs = ColumnSpec::of_table(&DatasetTable::EVENTS);
        let mut names = ColumnNames::new(&specs);
        let arguments = Self::new(session, events, redacted, "", &mut names, specs.len());
        specs.extend(arguments.specs);
        Self { specs, ..arguments }
    }

    /// The columns of the arguments of events, whose names begin with `prefix`; the first of them has the index `first`. Arguments of
    /// one name have the same columns.
    pub(crate) fn new(
        session: &TraceSession,
        events: &[usize],
        redacted: &RedactedArguments,
        prefix: &str,
        names: &mut ColumnNames,
        first: usize,
    ) -> Self {
        let mut slots: Vec<ArgumentSlot> = Vec::new();
        let mut by_name: HashMap<(String, usize), usize> = HashMap::default();
        let mut of_event: HashMap<usize, Vec<TableArgument>> = HashMap::default();
        for &at in events {
            let Some(event) = session.events().events.get(at) else {
                continue;
            };
            let operands = kinds(session, &[at], event.arguments.len());
            let mut seen: HashMap<&str, usize> = HashMap::default();
            let arguments = event.arguments.iter().zip(&operands).enumerate();
            let arguments = arguments.filter_map(|(place, (argument, operands))| {
                let mut form = Form::new(argument).plain();
                let mut kind = ArgumentKind::new(argument, &form, operands);
                let redaction = redacted.redacted_as(at, place);
                match redaction {
                    Some(RedactedAs::Dropped) => return None,
                    Some(RedactedAs::Hashed) => {
                        form = Form::Plain;
                        kind = ArgumentKind::String { mangled: false };
                    }
                    None => {}
                }
                let seen = seen.entry(&argument.name).or_insert(0);
                let number = std::mem::replace(seen, *seen + 1);
                let key = (argument.name.clone(), number);
                let unit = argument.unit.as_ref().map(ToString::to_string);
                let description = argument.description.clone();
                let slot = *by_name.entry(key).or_insert_with(|| {
                    slots.push(ArgumentSlot {
                        number,
                        described: DescribedColumn {
                            column: String::new(),
                            argument: argument.name.clone(),
                            kind,
                            // Those of the values are not those of their hashes.
                            unit: unit.filter(|_| redaction.is_none()),
                            description: description.filter(|_| redaction.is_none()),
                        },
                    });
                    slots.len() - 1
                });
                if let Some(slot) = slots.get_mut(slot) {
                    slot.described.kind = slot.described.kind.merged(kind);
                }
                Some(TableArgument {
                    place,
                    first: slot,
                    kind,
                    form,
                })
            });
            of_event.insert(at, arguments.collect());
        }
        Self::placed(slots, of_event, prefix, names, first)
    }

    /// Gives each argument its columns.
    fn placed(
        mut slots: Vec<ArgumentSlot>,
        mut of_event: HashMap<usize, Vec<TableArgument>>,
        prefix: &str,
        names: &mut ColumnNames,
        first: usize,
    ) -> Self {
        // Names are given to the first of each name first, so that others do not change theirs.
        let mut order: Vec<usize> = (0..slots.len()).collect();
        order.sort_by_key(|&slot| slots.get(slot).map(|slot| slot.number));
        for at in order {
            if let Some(ArgumentSlot { described, .. }) = slots.get_mut(at) {
                described.column = names.take(&format!("{prefix}{}", described.argument));
            }
        }
        let mut specs = Vec::new();
        let mut firsts = Vec::new();
        for ArgumentSlot { described, .. } in &slots {
            firsts.push(first + specs.len());
            specs.extend(described.kind.specs(&described.column));
        }
        for argument in of_event.values_mut().flatten() {
            let slot = argument.first;
            argument.first = firsts.get(slot).copied().unwrap_or(usize::MAX);
            if let Some(ArgumentSlot { described, .. }) = slots.get(slot) {
                argument.kind = described.kind;
            }
        }
        Self {
            columns: slots.into_iter().map(|slot| slot.described).collect(),
            specs,
            of_event,
        }
    }
}
