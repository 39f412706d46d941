//! Frames without a name, by file, and what to do.

use std::fmt::Write as _;
use std::path::Path;

use usdtrec_analysis::stacks::unnamed_frames::{UnnamedFrames, UnnamedReason};
use usdtrec_format::escape::escape_bytes;
use usdtrec_trace::symbols::inlined::LIMIT;

use crate::answer_style::AnswerStyle;
use crate::columns::folded_from;
use crate::hints::{Hint, HintWords};
use crate::numbers::percent;
use crate::theme::Theme;

/// Files that are listed.
const MAX_FILES: usize = 10;

/// Appends which files have frames without a name, if there are any, and of which files no inlined functions are known.
pub(crate) fn put(unnamed: &UnnamedFrames, style: AnswerStyle, out: &mut String) {
    put_unnamed(unnamed, style, out);
    let limit = LIMIT >> 20;
    let long = format!(
        "Frames of inlined functions are missing: debugging information of more than {limit} MiB is not read"
    );
    put_files(&long, &unnamed.too_long, style.theme, out);
    let long = "Frames of inlined functions or lines are missing: debugging information has tables that are too long to be read";
    put_files(long, &unnamed.long_tables, style.theme, out);
}

/// Appends a sentence and the files that it is about, if there are any.
fn put_files(sentence: &str, files: &[Box<Path>], theme: Theme, out: &mut String) {
    if files.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{sentence}");
    for file in files.iter().take(MAX_FILES) {
        let file = escape_bytes(file.as_os_str().as_encoded_bytes());
        folded_from("  ", &file, "         ", theme, out);
    }
    put_more(files.len(), out);
}

fn put_unnamed(unnamed: &UnnamedFrames, style: AnswerStyle, out: &mut String) {
    let Some(all) = unnamed
        .files
        .iter()
        .map(|file| file.frames)
        .reduce(u64::saturating_add)
    else {
        return;
    };
    let share = percent(all, unnamed.all);
    let _ = writeln!(out, "\nFrames without a name: {share} of all frames");
    for file in unnamed.files.iter().take(MAX_FILES) {
        let line = format!(
            "{}  {}",
            percent(file.frames, unnamed.all),
            words(&file.reason, style.hints)
        );
        folded_from("  ", &line, "         ", style.theme, out);
    }
    put_more(unnamed.files.len(), out);
}

/// Appends how many of so many files are not listed.
fn put_more(files: usize, out: &mut String) {
    if let Some(more) = files.checked_sub(MAX_FILES).filter(|more| *more > 0) {
        let _ = writeln!(out, "  and {more} more files");
    }
}

/// Why frames have no names, and what to do.
fn words(reason: &UnnamedReason, hints: HintWords) -> String {
    let with = |file: &Path, why: &str, hint: Option<Hint<'_>>| {
        let hint = hint.map(|hint| hints.between("; ", &hint, ""));
        let file = escape_bytes(file.as_os_str().as_encoded_bytes());
        format!("{file}: {why}{}", hint.unwrap_or_default())
    };
    match reason {
        UnnamedReason::Stripped(file) => with(
            file,
            "it has no symbols for its own functions",
            Some(Hint::Symbols),
        ),
        UnnamedReason::NotRead(file) => with(
            file,
            "it is not there, not the recorded file, or not readable",
            Some(Hint::RecordedFile),
        ),
        UnnamedReason::NoSymbol(file) => with(file, "its symbols do not cover this code", None),
        UnnamedReason::NoFile(file) => with(
            file,
            "code that was made at run time, whose names are not known",
            Some(Hint::RuntimeCode),
        ),
        UnnamedReason::Unmapped => {
            "no file is known to be mapped there: the stack is wrong, as without frame pointers, or the mapping was not recorded".to_owned()
        }
    }
}
