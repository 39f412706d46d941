//! The stacks of two recordings, event by event.

use std::collections::BTreeMap;

use foldhash::HashMap;
use usdtrec_format::BuildId;

use crate::analysis::diff::sides::Sides;
use crate::analysis::losses::Losses;
use crate::analysis::question::StackKind;
use crate::analysis::samples::SelectedSamples;
use crate::analysis::stacks::diff_tree::DiffTree;
use crate::analysis::stacks::sliced::{SlicedPath, sliced};
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::{EventSelection, SampleFilter};
use crate::question_error::QuestionError;
use crate::stats::keys::stack::SameFiles;
use crate::trace::process::Dso;
use crate::trace::rows::Rows;
use crate::trace::session::TraceSession;
use crate::trace::time_span::TimeSpan;

/// The stacks of two recordings.
#[derive(Debug)]
pub(crate) struct ComparedStacks {
    /// The trees of the events that both recordings have, by name.
    pub(crate) trees: Vec<DiffTree>,
    /// What each lost.
    pub(crate) losses: Sides<Losses>,
    /// The faults of each recording.
    pub(crate) notices: Sides<Notices>,
}

/// Compares the stacks of the selected samples.
///
/// # Errors
/// If times are requested and not parts of each recording, or one has no stacks, or too many different ones.
pub(crate) fn compare_stacks(
    sessions: Sides<&TraceSession>,
    selection: &EventSelection,
    of: StackKind,
) -> Result<ComparedStacks, ReportError> {
    if matches!(selection.time, Some(TimeSpan::Times(..))) {
        return Err(QuestionError::TwoClocks.into());
    }
    let mut notices = sessions.map(Notices::new);
    let a = stacks(sessions.a, selection, of, &mut notices.a)?;
    let b = stacks(sessions.b, selection, of, &mut notices.b)?;
    let losses = Sides {
        a: a.losses,
        b: b.losses,
    };
    let same_files = same_files(sessions);
    let both = a.events.into_iter().filter_map(|(name, one)| {
        let other = b.events.get(&name)?;
        let paths = Sides {
            a: one.as_slice(),
            b: other.as_slice(),
        };
        Some(DiffTree::new(name, paths, &same_files))
    });
    let trees = both.collect::<Result<_, _>>()?;
    Ok(ComparedStacks {
        trees,
        losses,
        notices,
    })
}

/// The files of B that A has under another path, by their build-ids.
fn same_files(sessions: Sides<&TraceSession>) -> SameFiles {
    let files = sessions.map(|session| session.mappings().files());
    let of_a = files
        .a
        .iter()
        .filter_map(|file| Some((file.build_id?, file)));
    let of_a: HashMap<BuildId, &Dso> = of_a.collect();
    let known = files.b.iter().filter_map(|file| {
        let known = of_a.get(&file.build_id?)?;
        Some((file.path.as_path().into(), known.path.as_path().into()))
    });
    known.collect()
}

/// The part of one recording that is compared.
struct OneSide {
    losses: Losses,
    events: BTreeMap<String, Vec<SlicedPath>>,
}

fn stacks(
    session: &TraceSession,
    selection: &EventSelection,
    of: StackKind,
    notices: &mut Notices,
) -> Result<OneSide, ReportError> {
    let filter = SampleFilter::new(selection, session)?;
    let samples = SelectedSamples {
        session,
        filter: &filter,
    };
    let rows = Rows::new(session, |event| filter.event(event));
    Ok(OneSide {
        losses: Losses::new(session, &rows),
        events: sliced(samples, of, notices)?,
    })
}
