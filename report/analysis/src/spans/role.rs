//! Which spans an event begins and ends.

use crate::spans::pair::Pair;

/// Whether an event begins or ends the spans of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    /// Number of the pair.
    pub(crate) pair: u32,
    /// Whether it begins the span; else it ends it.
    pub(crate) begins: bool,
}

impl Role {
    /// The roles of each event.
    pub(crate) fn from_pairs(pairs: &[Pair], events: usize) -> Vec<Vec<Self>> {
        let mut roles = vec![Vec::new(); events];
        for (number, pair) in pairs.iter().enumerate() {
            // Where one event both ends a span and begins the next, the end is first.
            for (events, begins) in [(&pair.dones, false), (&pair.starts, true)] {
                for &event in events {
                    if let Some(roles) = roles.get_mut(event) {
                        roles.push(Self {
                            pair: number as u32,
                            begins,
                        });
                    }
                }
            }
        }
        roles
    }
}
