//! Hints: parts of texts in the words of the program that shows them, such as its options.

use std::fmt;

use usdtrec_analysis::summary::next_questions::NextQuestion;

/// A part of a text that only the program that shows it can word: an option, or a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint<'a> {
    /// How to see more groups, as words in brackets.
    MoreGroups,
    /// What groups spans, as the first word of a remark about its keys.
    GroupKeys,
    /// How to match begins and ends of spans by an argument, as a clause of its own.
    SpanKey {
        /// The name of the spans.
        span: &'a str,
        /// The argument.
        name: &'a str,
    },
    /// The filter, as the first word of a remark about its names.
    Filter,
    /// How to have fewer spans open at once, as the end of a sentence.
    FewerSpans,
    /// How to see changes that are smaller than [`DiffOptions::min`](crate::diff::DiffOptions::min), in brackets.
    SmallChanges,
    /// How to see all figures of a comparison, in brackets.
    AllFigures,
    /// How to see why something is not compared, in brackets.
    NotCompared {
        /// Whether text shows all figures already.
        all: bool,
    },
    /// How functions of a file without symbols get names, as a clause of its own.
    Symbols,
    /// How the symbols of a recorded file are found where the file itself is not, as a clause of its own.
    RecordedFile,
    /// How functions that were made at run time get names, as a clause of its own.
    RuntimeCode,
    /// How to record processes, as a clause of its own.
    Record {
        /// The first of the processes.
        pids: &'a [i32],
    },
    /// The command line of a question that leads on.
    Next {
        /// The question.
        question: &'a NextQuestion,
        /// The words that name the trace.
        trace: &'a str,
    },
}

/// The words for hints. By default, there are none, and views leave them out.
#[derive(Clone, Copy)]
pub struct HintWords(pub fn(&Hint<'_>) -> String);

impl Default for HintWords {
    fn default() -> Self {
        Self(|_| String::new())
    }
}

impl fmt::Debug for HintWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HintWords")
    }
}

impl HintWords {
    /// The words; may be empty.
    pub(crate) fn words(self, hint: &Hint<'_>) -> String {
        (self.0)(hint)
    }

    /// The words after `before`, and before `after`; empty without words.
    pub(crate) fn between(self, before: &str, hint: &Hint<'_>, after: &str) -> String {
        match self.words(hint) {
            words if words.is_empty() => words,
            words => format!("{before}{words}{after}"),
        }
    }

    /// The words in brackets, after a space.
    pub(crate) fn in_brackets(self, hint: &Hint<'_>) -> String {
        self.between(" (", hint, ")")
    }
}

/// The name of the groups that are not shown; `None` if their number is unknown.
pub fn more_groups(groups: Option<usize>, hints: HintWords) -> String {
    let how = hints.in_brackets(&Hint::MoreGroups);
    match groups {
        Some(1) => format!("1 more group{how}"),
        Some(groups) => format!("{groups} more groups{how}"),
        None => "all other groups".to_owned(),
    }
}
