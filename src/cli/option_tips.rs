//! Messages about options that do not exist. clap calls options similar that share a few letters, such as `--order` and `--force`, and shows them in the
//! usage.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Similarity from which on a name is taken for a slip of another one, 0 to 1: one wrong letter in three.
const SIMILAR: f64 = 0.65;

/// Removes the tip about an option that is not similar, and says which verbs have the one that was given.
pub(super) fn with_true_tips(
    mut error: clap::Error,
    whole: impl FnOnce() -> clap::Command,
    words: impl Iterator<Item = OsString>,
) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let Some(given) = given.strip_prefix("--").map(str::to_owned) else {
        return error;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let name = given.split('=').next().unwrap_or_default();
    let mut whole = whole();
    let verbs = verbs_with(&whole, name);
    if let Some(ContextValue::String(tip)) = error.get(ContextKind::SuggestedArg)
        && is_slip(name, tip.trim_start_matches('-'), !verbs.is_empty())
    {
        return error;
    }
    error.remove(ContextKind::SuggestedArg);
    if let Some(usage) = usage(&mut whole, words) {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    if !verbs.is_empty() {
        let verbs = verbs.join(", ");
        let tip = StyledStr::from(format!("'--{name}' is an option of: {verbs}"));
        let mut tips = match error.remove(ContextKind::Suggested) {
            Some(ContextValue::StyledStrs(tips)) => tips,
            _ => Vec::new(),
        };
        tips.push(tip);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Whether a name may be a slip of a known one. That of another verb's option is no slip of one that only has a few letters in common with it.
fn is_slip(name: &str, known: &str, is_of_other_verb: bool) -> bool {
    let is_part = known.starts_with(name) || name.starts_with(known);
    is_part || !is_of_other_verb && strsim::normalized_damerau_levenshtein(name, known) >= SIMILAR
}

/// The verbs that have an option.
fn verbs_with(whole: &clap::Command, option: &str) -> Vec<String> {
    let has = |verb: &&clap::Command| {
        let mut options = verb.get_arguments();
        options.any(|known| known.get_long() == Some(option) && !known.is_hide_set())
    };
    let verbs = whole.get_subcommands().filter(has);
    verbs.map(|verb| verb.get_name().to_owned()).collect()
}

/// The usage of the verb among the words.
fn usage(whole: &mut clap::Command, words: impl Iterator<Item = OsString>) -> Option<StyledStr> {
    whole.build();
    let mut words = words.filter_map(|word| word.into_string().ok());
    let verb = words.find(|word| whole.find_subcommand(word).is_some())?;
    Some(whole.find_subcommand_mut(&verb)?.render_usage())
}
