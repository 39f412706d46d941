//! What is counted of spans besides their groups.

/// What was counted of the spans of one name since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanHits {
    /// Name of the span.
    pub name: String,
    /// What was counted.
    pub counts: SpanHitCounts,
    /// Begins and ends that are not counted, as they were lost.
    pub lost: u64,
}

/// What became of begins and ends. Each hit is one of `begun`, `deep`, `full`, `unkeyed`, `ended`, `unmatched`, and the end of a begin among `deep`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanHitCounts {
    /// Begins that were kept.
    pub begun: u64,
    /// Spans that ended.
    pub ended: u64,
    /// Of these, those whose group has no room.
    pub ungrouped: u64,
    /// Of those that ended, those that were shorter than what is asked for. They are in no group.
    pub short: u64,
    /// Begins whose span had not ended when one around it did.
    pub unfinished: u64,
    /// Ends without a begin.
    pub unmatched: u64,
    /// Hits whose key could not be read.
    pub unkeyed: u64,
    /// Begins that were not kept, because 16 of their key were open.
    pub deep: u64,
    /// Begins that were not kept, because more were open than there is room for, or another program had their key.
    pub full: u64,
    /// Of those that ended, ends that are equal to an older begin of their thread than the one that they took.
    pub older: u64,
}

impl SpanHitCounts {
    /// Begins without an end so far, without those that are unfinished.
    #[must_use]
    pub const fn open(&self) -> u64 {
        let over = self.ended.saturating_add(self.unfinished);
        self.begun.saturating_sub(over)
    }

    /// The sums of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            begun: self.begun + other.begun,
            ended: self.ended + other.ended,
            ungrouped: self.ungrouped + other.ungrouped,
            short: self.short + other.short,
            unfinished: self.unfinished + other.unfinished,
            unmatched: self.unmatched + other.unmatched,
            unkeyed: self.unkeyed + other.unkeyed,
            deep: self.deep + other.deep,
            full: self.full + other.full,
            older: self.older + other.older,
        }
    }
}
