//! What must be told besides the output itself: damage, losses, disorder.

use usdtrec_format::trace::Damage;

use crate::events::outcome::Outcome;
use crate::trace::session::Session;

/// Places of damage that are told one by one.
const MOST_TOLD: usize = 20;
/// Places of damage that are kept of a stream, which may never end.
const MOST_KEPT: usize = 4096;

/// What was found wrong with a trace and with what was made of it.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// What is wrong in the file, in the order of the file.
    pub damage: Vec<Damage>,
    /// Places in a stream where more is wrong, beyond those kept.
    pub untold: u64,
    /// Samples that belong to no event of the trace or are shorter than their event says.
    pub unknown: u64,
    /// Whether samples may stand behind later ones: too many blocks overlap to wait for all of them.
    pub disordered: bool,
    /// Beginnings of spans that were not matched, because too many were open at once.
    pub forgotten: u64,
    /// Pids that several processes of one name had, one after the other, where processes are grouped by pid.
    pub reused_pids: u64,
    /// Where schemas that were given do not agree with the trace, in sentences.
    pub disagreements: Vec<String>,
}

impl Notices {
    pub(crate) fn new(session: &Session) -> Self {
        Self {
            damage: session.damage().to_vec(),
            disagreements: session
                .events()
                .disagreements
                .iter()
                .map(ToString::to_string)
                .collect(),
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

    /// Adds what came of one of several walks over the same.
    pub(crate) fn add_once(&mut self, outcome: Outcome) {
        let unknown = self.unknown.max(outcome.unknown);
        self.add(outcome);
        self.unknown = unknown;
    }

    /// Adds beginnings of spans that were not matched.
    pub(crate) fn tell_forgotten(&mut self, spans: u64) {
        self.forgotten += spans;
    }

    /// Adds what was found wrong in a stream.
    pub(crate) fn add_damage(&mut self, damage: Vec<Damage>) {
        let room = MOST_KEPT.saturating_sub(self.damage.len());
        self.untold += damage.len().saturating_sub(room) as u64;
        self.damage.extend(damage.into_iter().take(room));
    }

    /// Each in a sentence, the damage with its place in the file; of very much damage, the first places.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = self.disagreements.clone();
        let told = self.damage.iter().take(MOST_TOLD);
        sentences.extend(told.map(ToString::to_string));
        let more = self.damage.len().saturating_sub(MOST_TOLD) as u64 + self.untold;
        if let (true, Some(last)) = (more > 0, self.damage.last()) {
            sentences.push(format!(
                "{more} more places are damaged, one of the last at offset {}",
                last.offset
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
                "too many parts of the file overlap in time: events may stand behind later ones"
                    .to_owned(),
            );
        }
        if self.forgotten > 0 {
            sentences.push(format!(
                "{} spans are not counted: too many were open at once, choose fewer events with -e or --span",
                self.forgotten
            ));
        }
        let (pids, s) = match self.reused_pids {
            1 => ("1 pid was".to_owned(), "its"),
            pids => (format!("{pids} pids were"), "their"),
        };
        if self.reused_pids > 0 {
            sentences.push(format!(
                "{pids} used by several processes of one name, one after the other: {s} events are added up"
            ));
        }
        sentences
    }
}
