//! How many stacks are cut, by event.

use std::collections::BTreeMap;

/// The stacks of an event of which some are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutStacks {
    /// Event name.
    pub event: String,
    /// Number of those that are cut.
    pub cut: u64,
    /// Number of stacks.
    pub stacks: u64,
    /// Why.
    pub cause: CutCause,
}

/// Why stacks are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CutCause {
    /// More of the stack was needed than so many bytes, as many as were asked for.
    AskedFor(u32),
    /// More was needed than so many bytes, as many as were copied of stacks of the site, or as the rings had room for; the most of those that are
    /// cut.
    Chosen(u32),
}

impl CutStacks {
    /// One for each event name that has some, the most first.
    pub fn by_event(all: impl Iterator<Item = Self>) -> Vec<Self> {
        // There may be tens of thousands.
        let mut by_event: BTreeMap<String, Self> = BTreeMap::new();
        for stacks in all {
            match by_event.get_mut(&stacks.event) {
                Some(known) => {
                    known.cut += stacks.cut;
                    known.stacks += stacks.stacks;
                    known.cause = known.cause.max(stacks.cause);
                }
                None => _ = by_event.insert(stacks.event.clone(), stacks),
            }
        }
        let mut by_event: Vec<Self> = by_event.into_values().collect();
        by_event.retain(|stacks| stacks.cut > 0);
        by_event.sort_by_key(|stacks| std::cmp::Reverse(stacks.cut));
        by_event
    }
}

#[cfg(test)]
mod tests {
    use super::{CutCause, CutStacks};

    #[test]
    fn events_of_one_name_are_together() {
        let of = |event: &str, cut, stacks, cause| CutStacks {
            event: event.to_owned(),
            cut,
            stacks,
            cause,
        };
        let all = [
            of("a", 1, 2, CutCause::Chosen(512)),
            of("b", 2, 2, CutCause::AskedFor(2048)),
            of("c", 0, 9, CutCause::AskedFor(2048)),
            of("a", 2, 3, CutCause::Chosen(1024)),
        ];
        assert_eq!(
            CutStacks::by_event(all.into_iter()),
            [
                of("a", 3, 5, CutCause::Chosen(1024)),
                of("b", 2, 2, CutCause::AskedFor(2048))
            ]
        );
    }

    #[test]
    fn very_many_events_are_joined_by_name() {
        let number = 50_000;
        let stacks = |at: u64| CutStacks {
            event: format!("sdt_a:event{}", at % number),
            cut: at / number,
            stacks: 1,
            cause: CutCause::Chosen(1),
        };
        let all = CutStacks::by_event((0..2 * number).map(stacks));
        assert_eq!(all.len() as u64, number);
        assert!(all.iter().all(|of| (of.cut, of.stacks) == (1, 2)));
        assert!(CutStacks::by_event((0..number).map(stacks)).is_empty());
    }
}
