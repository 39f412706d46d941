//! What became of the begins and ends of spans.

/// What became of the begins and ends of the spans of a name, besides those that are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanFates {
    /// Begins without an end now, but for unfinished ones.
    pub open: u64,
    /// Begins whose span had not ended when one around it did.
    pub unfinished: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// Begins and ends whose key could not be read.
    pub unkeyed: u64,
    /// Spans that were shorter than what is asked for.
    pub short: u64,
    /// Begins that were not kept, because too many were open.
    pub unkept: u64,
}

impl SpanFates {
    /// What was added since an earlier moment. Open spans are those of now.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            open: self.open,
            unfinished: self.unfinished.saturating_sub(earlier.unfinished),
            unmatched: self.unmatched.saturating_sub(earlier.unmatched),
            unkeyed: self.unkeyed.saturating_sub(earlier.unkeyed),
            short: self.short.saturating_sub(earlier.short),
            unkept: self.unkept.saturating_sub(earlier.unkept),
        }
    }

    /// The counts with their names in JSON and CSV, in the order of CSV. As in reports, unfinished spans are among the open ones.
    pub(super) const fn named(self) -> [FateCount; 6] {
        Self {
            open: self.open.saturating_add(self.unfinished),
            ..self
        }
        .parts()
    }

    /// The counts with their names, each begin in one of them.
    pub(super) const fn parts(self) -> [FateCount; 6] {
        const fn named(name: &'static str, count: u64) -> FateCount {
            FateCount { name, count }
        }
        [
            named("open", self.open),
            named("unfinished", self.unfinished),
            named("unmatched", self.unmatched),
            named("unkeyed", self.unkeyed),
            named("short", self.short),
            named("unkept", self.unkept),
        ]
    }

    /// The counts that are not 0, except those of open spans, named as by `report --span`.
    pub(super) fn remarks(self) -> impl Iterator<Item = FateCount> {
        const SAID: [&str; 6] = [
            "",
            "begins without an end",
            "ends without a beginning",
            "hits without a key, which are left out",
            "shorter ones, which are not added up",
            "begins that were not kept, because 16 of their key or too many in all were open",
        ];
        let said = self.parts().into_iter().zip(SAID).skip(1);
        let said = said.map(|(FateCount { count, .. }, name)| FateCount { name, count });
        said.filter(|fate| fate.count > 0)
    }
}

/// A count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FateCount {
    pub(super) name: &'static str,
    pub(super) count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_spans_are_those_of_now() {
        let earlier = SpanFates {
            open: 5,
            unfinished: 1,
            unmatched: 2,
            ..SpanFates::default()
        };
        let now = SpanFates {
            open: 3,
            unfinished: 4,
            unmatched: 2,
            ..SpanFates::default()
        };
        let since = now.since(earlier);
        assert_eq!((since.open, since.unfinished, since.unmatched), (3, 3, 0));
        let said: Vec<FateCount> = since.remarks().collect();
        assert_eq!(said.len(), 1, "open ones have a column");
        assert_eq!((said[0].name, said[0].count), ("begins without an end", 3));
    }
}
