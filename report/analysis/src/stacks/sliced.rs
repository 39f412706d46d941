//! Stacks of a recording, slice by slice of its time.

use std::collections::BTreeMap;

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;

use crate::diff::slices::{Counts, SLICES};
use crate::groups::{GroupQuestion, grouped_by};
use crate::question::{GroupOrder, StackKind};
use crate::samples::SelectedSamples;
use crate::stacks::path::{Step, WeighedPath};
use crate::stats::keys::key::Key;
use crate::stats::keys::stack::CallStack;
use crate::stats::keys::value::KeyValue;
use crate::stats::timeline::Timeline;

/// A stack with its hits in each slice.
#[derive(Clone, Debug)]
pub(crate) struct SlicedPath {
    /// The outermost first.
    pub(crate) steps: Vec<Step>,
    pub(crate) hits: Counts,
}

/// The stacks of each event.
///
/// # Errors
/// If the events have no stacks, or too many different ones.
pub(crate) fn sliced(
    samples: SelectedSamples<'_>,
    of: StackKind,
    notices: &mut Notices,
) -> Result<BTreeMap<String, Vec<SlicedPath>>, ReportError> {
    let SelectedSamples { session, filter } = samples;
    let rows = Rows::new(session, |event| filter.event(event));
    let timeline = Timeline::divided(session, filter, SLICES);
    let keys = vec![
        Key::parse(of.key(), session, &rows)?,
        Key::Interval(timeline),
    ];
    let question = GroupQuestion {
        sort: &[],
        value: None,
        top: None,
        order: GroupOrder::Count,
    };
    let found = grouped_by(samples, keys, question, notices)?;
    let mut events = BTreeMap::new();
    for table in found.tables {
        if table.others.is_some() {
            return Err(QuestionError::TooManyStacks.into());
        }
        // Slices of a stack need not be next to each other.
        let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let mut paths: Vec<SlicedPath> = Vec::new();
        for group in table.rows {
            let mut values = group.values.into_iter();
            let (Some(stack), Some(KeyValue::Integer(slice))) = (values.next(), values.next())
            else {
                continue;
            };
            let order = match &stack {
                KeyValue::Stack(stack) => CallStack::order(stack),
                _ => Vec::new(),
            };
            let place = match places.get(&order) {
                Some(place) => *place,
                None => {
                    let path = WeighedPath::from_value(stack, 0, 0);
                    if path.lacks_stack().is_some() {
                        continue;
                    }
                    places.insert(order, paths.len());
                    paths.push(SlicedPath {
                        steps: path.steps,
                        hits: [0; SLICES],
                    });
                    paths.len() - 1
                }
            };
            let hits = paths.get_mut(place).map(|path| &mut path.hits);
            if let Some(hits) = hits.and_then(|hits| hits.get_mut(slice as usize)) {
                *hits += group.count.samples;
            }
        }
        if !paths.is_empty() {
            events.insert(table.event.unwrap_or_default(), paths);
        }
    }
    Ok(events)
}
