//! Why a recorder stops processes.

use std::str::FromStr;

/// Why a recorder stops processes with `SIGSTOP`, and continues them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The ring was nearly full: they continue when it is drained.
    FullRing,
    /// They mapped a file that was not known: they continue when its probes are planted.
    NewFile,
}

impl StopReason {
    /// Both, with their words.
    const WORDS: [(Self, &'static str); 2] =
        [(Self::FullRing, "full-ring"), (Self::NewFile, "new-file")];

    /// Its word on the command line of the process that continues them after the recorder.
    #[must_use]
    pub fn word(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        let found = words.find(|(reason, _)| *reason == self);
        found.map_or("", |(_, word)| word)
    }
}

impl FromStr for StopReason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        let mut words = Self::WORDS.iter();
        let found = words.find(|(_, word)| *word == text);
        found.map(|(reason, _)| *reason).ok_or(UnknownReason)
    }
}

/// A word that is none of [`StopReason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected full-ring or new-file")]
pub struct UnknownReason;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_word() {
        for reason in [StopReason::FullRing, StopReason::NewFile] {
            assert_eq!(reason.word().parse(), Ok(reason));
        }
        assert_eq!("".parse::<StopReason>(), Err(UnknownReason));
    }
}
