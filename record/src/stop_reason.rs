//! Why a recorder stops processes.

/// Why a recorder stops processes with `SIGSTOP`, and continues them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The ring was nearly full: they continue when it is drained.
    FullRing,
    /// They mapped a file that was not known: they continue when its probes are planted.
    NewFile,
}

impl StopReason {
    /// Its word on the command line of the process that continues them after the recorder.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FullRing => "full-ring",
            Self::NewFile => "new-file",
        }
    }

    /// The reason of a word; `None` for other words.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let mut all = [Self::FullRing, Self::NewFile].into_iter();
        all.find(|reason| reason.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_word() {
        for reason in [StopReason::FullRing, StopReason::NewFile] {
            assert_eq!(StopReason::of_word(reason.word()), Some(reason));
        }
        assert_eq!(StopReason::of_word(""), None);
    }
}
