//! The stacks of two recordings, event by event.

use std::collections::BTreeMap;

use foldhash::HashMap;
use usdtrec_format::BuildId;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::process::Dso;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::loss_ledger::LossLedger;
use usdtrec_trace::time_span::TimeSpan;

use crate::diff::sides::Sides;
use crate::question::StackKind;
use crate::samples::SelectedSamples;
use crate::stacks::diff_tree::DiffTree;
use crate::stacks::sliced::{SlicedPath, sliced};
use crate::stats::keys::stack::SameFiles;

/// The stacks of two recordings.
#[derive(Debug)]
pub struct ComparedStacks {
    /// The trees of the events that both recordings have, by name.
    pub trees: Vec<DiffTree>,
    /// What each lost.
    pub losses: Sides<LossLedger>,
    /// The faults of each recording.
    pub notices: Sides<Notices>,
}

/// Compares the stacks of the selected samples.
///
/// # Errors
/// If times are requested and not parts of each recording, or one has no stacks, or too many different ones.
pub fn compare_stacks(
    sessions: Sides<&TraceSession>,
    selection: &EventSelection,
    of: StackKind,
) -> Result<ComparedStacks, ReportError> {
    if !selection.time.as_ref().is_none_or(TimeSpan::is_relative) {
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
    losses: LossLedger,
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
    Ok(OneSide {
        losses: session.losses().clone(),
        events: sliced(samples, of, notices)?,
    })
}
