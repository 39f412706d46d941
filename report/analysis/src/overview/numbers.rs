//! The numbers of arguments in detail.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::form::Form;

use crate::heatmap::{HeatMaps, heat_maps};
use crate::histogram::{Histograms, histograms};
use crate::question::{Scale, Subject};
use crate::samples::SelectedSamples;
use crate::summary::facts::SummaryFacts;
use crate::summary::probe::ArgumentFacts;

/// Different numbers up to which a list of them says more than their distribution.
const MAX_LISTED_NUMBERS: usize = 16;

/// The numbers of an argument.
#[derive(Debug)]
pub struct NumberOverview {
    /// Their distribution.
    pub histograms: Histograms,
    /// Their distribution over time.
    pub heat: HeatMaps,
}

impl NumberOverview {
    /// The numbers of all arguments of a name.
    pub(crate) fn new(
        samples: SelectedSamples<'_>,
        name: &str,
        notices: &mut Notices,
    ) -> Result<Self, ReportError> {
        // An argument may have the name of another key.
        let of = Subject::Argument(format!("args.{name}"));
        Ok(Self {
            histograms: histograms(samples, &of, Scale::Auto, notices)?,
            heat: heat_maps(samples, &of, notices)?,
        })
    }
}

/// Names of arguments whose distribution says something, those of the probes with the most events first. Keys of spans are left out.
pub(crate) fn names(summary: &SummaryFacts) -> Vec<String> {
    let keys: Vec<&str> = summary.spans.iter().map(|span| &*span.key).collect();
    let mut names: Vec<String> = Vec::new();
    for probe in summary.probes.iter().filter(|probe| probe.count > 0) {
        for argument in &probe.arguments {
            let is_key = keys.contains(&&*argument.name);
            if has_distribution(argument) && !is_key && !names.contains(&argument.name) {
                names.push(argument.name.clone());
            }
        }
    }
    names
}

/// Whether an argument has so many different numbers that their distribution says something.
fn has_distribution(argument: &ArgumentFacts) -> bool {
    let is_number = matches!(argument.form, Form::Plain | Form::Time(_) | Form::Memory(_));
    let mut spreads = [&argument.integers, &argument.floats].into_iter().flatten();
    is_number
        && spreads.any(|spread| {
            spread
                .values
                .as_ref()
                .is_none_or(|values| values.len() > MAX_LISTED_NUMBERS)
        })
}
