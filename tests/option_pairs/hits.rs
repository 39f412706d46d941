//! Hits of testdata/targets/pairs.c by what they have in common.

/// Hits of testdata/targets/pairs.c that have something in common.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Small,
    First,
    LastCpu,
    Child,
    Thread,
    Strange,
    Far,
    Forced,
}

impl Kind {
    /// The first number.
    pub(super) const fn first(self) -> u32 {
        match self {
            Self::Small => 700_000_007,
            Self::First => 710_000_007,
            Self::LastCpu => 720_000_007,
            Self::Strange => 730_000_007,
            Self::Child => 740_000_007,
            Self::Far => 750_000_007,
            Self::Forced => 760_000_007,
            Self::Thread => 770_000_007,
        }
    }

    /// How many there are: a bit of its own in the sum of those of pairs:go.
    pub(super) const fn count(self) -> u64 {
        match self {
            Self::Small => 4,
            Self::First | Self::Far | Self::Forced => 8,
            Self::LastCpu => 16,
            Self::Child => 32,
            Self::Thread => 64,
            Self::Strange => 128,
        }
    }
}
