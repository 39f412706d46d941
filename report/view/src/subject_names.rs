//! Names of what histograms and heat maps are of.

use usdtrec_analysis::measured_subject::{MeasuredSubject, SpanGroup, SpanPart};
use usdtrec_analysis::spans::ambiguity::{Ambiguity, NameUse};
use usdtrec_trace::form::Form;
use usdtrec_trace::session::event_name::short_name;

use crate::cells::{cells, group_name};
use crate::hints::{Hint, HintWords};

/// The name of what numbers are of: `app:request.size`, `app:request by tid: 17`.
pub fn measured(of: &MeasuredSubject, human: bool) -> String {
    match of {
        MeasuredSubject::Argument { event, name, .. } => format!("{}.{name}", short_name(event)),
        MeasuredSubject::Spans(spans) => span_group(spans, human),
    }
}

fn span_group(group: &SpanGroup, human: bool) -> String {
    let SpanGroup {
        span,
        by,
        measured,
        part,
    } = group;
    let of_part = measured.map(|measured| format!("{} of ", measured.spec().name));
    let span = format!("{}{span}", of_part.unwrap_or_default());
    let by = by.join(", ");
    match part {
        SpanPart::All => span,
        SpanPart::Group { keys, values } => {
            let name = group_name(&cells(keys, values, human));
            format!("{span} by {by}: {name}")
        }
        SpanPart::Others { groups } => {
            let count = groups.map(|groups| format!("{groups} "));
            format!("{span} by {by}: {}other groups", count.unwrap_or_default())
        }
    }
}

/// The form of the numbers.
pub fn form(of: &MeasuredSubject) -> Form {
    match of {
        MeasuredSubject::Argument { form, .. } => form.clone(),
        MeasuredSubject::Spans(_) => Form::Time(1),
    }
}

/// Remarks about names of arguments that both the begin and the end of a span have.
pub fn ambiguities(all: &[Ambiguity], hints: HintWords) -> Vec<String> {
    let sentences = all.iter().map(|one| ambiguity(one, hints));
    let mut sentences: Vec<String> = sentences.collect();
    sentences.dedup();
    sentences
}

fn ambiguity(ambiguity: &Ambiguity, hints: HintWords) -> String {
    let Ambiguity { used_by, name, end } = ambiguity;
    let hint = match used_by {
        NameUse::GroupKeys => Hint::GroupKeys,
        NameUse::Filter => Hint::Filter,
    };
    let user = hints.between("", &hint, ": ");
    let event = short_name(end);
    let event = event.split_once(':').map_or(event, |(_, bare)| bare);
    format!(
        "{user}{name} is that of the event which begins the span; {event}.{name} is that of the one which ends it"
    )
}
