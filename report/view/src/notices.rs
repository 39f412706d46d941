//! Faults of a trace, in sentences.

use usdtrec_format::escape::{escape, shown};
use usdtrec_trace::events::notices::{EmptyExport, Notices, SpanOverlap};
use usdtrec_trace::list::list;
use usdtrec_trace::session::event_name::short_name;
use usdtrec_trace::session::joined_files::PlacedDamage;
use usdtrec_trace::session::recorded_part::PausedProbe;

use crate::hints::{Hint, HintWords};
use crate::joined_files;
use crate::numbers::factor;
use crate::report::losses::recorded;
use crate::sentences::Sentences;

/// Places of damage that have a sentence each.
const MAX_DAMAGE: usize = 20;

impl Sentences for Notices {
    /// A sentence for each notice; of much damage, for the first places only.
    fn sentences(&self, hints: HintWords) -> Vec<String> {
        let disagreements = self.disagreements.iter();
        let mut sentences: Vec<String> = disagreements.map(ToString::to_string).collect();
        sentences.extend(self.shortfalls.iter().map(ToString::to_string));
        sentences.extend(joined_files::sentences(self));
        sentences.extend(self.paused.iter().map(paused));
        let first = self.placed_damage().take(MAX_DAMAGE);
        sentences.extend(first.map(|damage| damage.to_string()));
        let more = self.damage.len().saturating_sub(MAX_DAMAGE) as u64 + self.more_damage;
        if let (true, Some(last)) = (more > 0, self.placed_damage().last()) {
            let PlacedDamage { file, damage } = last;
            let of = file.map_or(String::new(), |file| format!(" of {}", shown(&file)));
            sentences.push(format!(
                "{more} more places are damaged, one of the last at offset {}{of}",
                damage.offset
            ));
        }
        if self.unknown > 0 {
            sentences.push(format!(
                "{} samples belong to no event of the trace or are cut short, and are left out",
                self.unknown
            ));
        }
        if self.disordered {
            sentences.push(
                "too many parts of the file overlap in time: events may follow later ones"
                    .to_owned(),
            );
        }
        if self.forgotten > 0 {
            sentences.push(format!(
                "{} spans are not counted: too many were open at once{}",
                self.forgotten,
                hints.between(", ", &Hint::FewerSpans, "")
            ));
        }
        sentences.extend(self.overlaps.iter().map(|SpanOverlap { span, argument }| {
            let key = format!("tid,{argument}");
            let hint = Hint::SpanKey { span, name: &key };
            format!(
                "spans of {} overlap on their threads: an end matched the newest begin, but an older one has the same {}{}",
                escape(span),
                escape(argument),
                hints.between(": ", &hint, "")
            )
        }));
        let (pids, s) = match self.reused_pids {
            1 => ("1 pid was".to_owned(), "its"),
            pids => (format!("{pids} pids were"), "their"),
        };
        if self.reused_pids > 0 {
            sentences.push(format!(
                "{pids} used by several processes of one name, one after the other: {s} events are added up"
            ));
        }
        if !self.without_column.is_empty() {
            let names = list(self.without_column.iter().map(String::as_str));
            sentences.push(format!(
                "probes that were added while recording have arguments without a column, which are not shown: {names}"
            ));
        }
        let empty = self.empty.map(|empty| match empty {
            EmptyExport::NoHits => "the export is empty: no event was selected",
            EmptyExport::NoSpans => {
                "the export is empty: the format has only spans, and no selected events begin and end one"
            }
        });
        sentences.extend(empty.map(str::to_owned));
        sentences
    }
}

/// That events of a probe are a part of its hits.
fn paused(PausedProbe { event, part }: &PausedProbe) -> String {
    let stands = match part.factor() {
        Some(times) => format!("each of its events stands for {}", factor(times)),
        None => "how many hits its events stand for is not known".to_owned(),
    };
    let event = escape(short_name(event));
    format!("{event}: {}: {stands}", recorded(part))
}
