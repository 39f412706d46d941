//! What was found of one thing that recording needs, and what to do about it.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;
use usdtrec_format::escape::{escape, escape_json};

/// What was found of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// What was looked at, in one or a few words.
    pub(super) check: String,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// What to do; `None` if nothing is to be done.
    pub(super) advice: Option<String>,
}

/// Whether a thing works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Works,
    /// Recording works without it, with what is said.
    Limited,
    Fails,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Works => "ok",
            Self::Limited => "limited",
            Self::Fails => "no",
        }
    }
}

impl Finding {
    /// Something that works.
    pub(super) fn works(check: &str, found: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            state: State::Works,
            found: found.into(),
            advice: None,
        }
    }

    /// Something without which recording works, and what to do about it.
    pub(super) fn limited(
        check: &str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Limited,
            advice: Some(advice.into()),
            ..Self::works(check, found)
        }
    }

    /// Something that fails, and what to do about it.
    pub(super) fn fails(check: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            state: State::Fails,
            ..Self::limited(check, found, advice)
        }
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let object: Value = json!({
            "check": self.check,
            "state": self.state.word(),
            "found": self.found,
            "advice": self.advice,
        });
        escape_json(&object.to_string()).into_owned()
    }
}

/// The lines of findings, their columns below each other unless a name is very long.
pub(super) fn lines(findings: &[Finding]) -> impl Iterator<Item = String> {
    const WIDTHS: std::ops::RangeInclusive<usize> = 23..=44;
    let widths = findings
        .iter()
        .map(|finding| escape(&finding.check).width());
    let widest = widths.filter(|width| WIDTHS.contains(width)).max();
    let width = widest.unwrap_or(*WIDTHS.start());
    findings.iter().map(move |finding| {
        let (state, check) = (finding.state.word(), escape(&finding.check));
        let blanks = " ".repeat(width.saturating_sub(check.width()));
        let found = escape(&finding.found);
        let advice = finding.advice.as_ref();
        let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
        format!("{state:<9}{check}{blanks} {found}{advice}")
    })
}
