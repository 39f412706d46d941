//! What must be told besides the output itself: damage, losses, disorder.

use usdtrec_format::trace::Damage;

use crate::order::Outcome;
use crate::session::Session;

/// What was found wrong with a trace and with what was made of it.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// What is wrong in the file, in the order of the file.
    pub damage: Vec<Damage>,
    /// Samples that belong to no event of the trace or are shorter than their event says.
    pub unknown: u64,
    /// Whether samples may stand behind later ones: too many blocks overlap to wait for all of them.
    pub disordered: bool,
}

impl Notices {
    pub(crate) fn new(session: &Session) -> Self {
        Self {
            damage: session.damage().to_vec(),
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.damage.extend(outcome.damage);
        self.damage.sort_by_key(|damage| damage.offset);
        self.damage.dedup();
        self.unknown += outcome.unknown;
        self.disordered |= outcome.forced;
    }

    /// Adds what was found wrong in a stream.
    pub(crate) fn add_damage(&mut self, damage: Vec<Damage>) {
        self.damage.extend(damage);
    }

    /// Each in a sentence, the damage with its place in the file.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self
            .damage
            .iter()
            .map(|damage| format!("offset {}: {}", damage.offset, damage.message))
            .collect();
        if self.unknown > 0 {
            sentences.push(format!(
                "{} samples belong to no event of the trace or are cut short, and are left out",
                self.unknown
            ));
        }
        if self.disordered {
            sentences.push(
                "too many parts of the file overlap in time: events may stand behind later ones"
                    .to_owned(),
            );
        }
        sentences
    }
}
