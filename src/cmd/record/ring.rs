//! Conversion of the options about triggers, and the files that they write.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use usdtrec_format::Pattern;
use usdtrec_format::escape::shown;
use usdtrec_format::expr::Expr;
use usdtrec_record::{
    NewWindowFile, Trigger, TriggerCommand, TriggerOptions, TriggerSubject, WindowFileTime,
    WindowFiles, WindowLimits,
};

use super::switch_output::{KEEP, NumberedFiles};
use crate::cli::RecordArgs;
use crate::mutex::locked;
use crate::old_file::{unused, with_suffix};
use crate::output;
use crate::terminal::{Usage, say};
use crate::unfinished_file::UnfinishedFile;
use crate::units::{parse_duration, parse_duration_or_zero, parse_size};

/// Memory of a window, bytes, also named in the help.
const BYTES: u64 = 256 << 20;
/// Least memory, bytes: a flush is up to a megabyte before compression.
const MIN_BYTES: u64 = 1 << 20;
/// How long a trigger writes no further file, also named in the help.
const COOLDOWN: Duration = Duration::from_secs(30);

/// The triggers.
pub(super) fn triggers(record: &RecordArgs) -> Result<TriggerOptions, Usage> {
    refuse(record)?;
    let args = &record.ring;
    let triggers = args.trigger.iter();
    let triggers = triggers.map(|text| trigger("--trigger", text, false));
    let ends = args.until.iter().map(|text| trigger("--until", text, true));
    let time = |option, text: &Option<String>, usual| match text.as_deref() {
        None => Ok(usual),
        Some(text) => parse_duration_or_zero(option, text),
    };
    Ok(TriggerOptions {
        triggers: triggers.chain(ends).collect::<Result<_, _>>()?,
        after: time("--after", &args.after, Duration::ZERO)?,
        cooldown: time("--cooldown", &args.cooldown, COOLDOWN)?,
    })
}

/// Refuses options without effect.
fn refuse(record: &RecordArgs) -> Result<(), Usage> {
    let args = &record.ring;
    let has_trigger = !args.trigger.is_empty();
    let of_triggers = [
        ("--trigger", has_trigger),
        ("--cooldown", args.cooldown.is_some()),
        ("--keep", args.keep.is_some()),
    ];
    let removes_files = record.switch_output.is_some() && record.switch_max_files.is_some();
    let given = |options: &[(&'static str, bool)]| {
        let mut given = options.iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(option, _)| *option)
    };
    if args.ring.is_none() {
        if let Some(option) = given(&of_triggers).filter(|_| !removes_files) {
            return Err(Usage(format!(
                "{option} needs --ring TIME, or --switch-output with --switch-max-files: other recordings keep all hits"
            )));
        }
        if let Some(option) = given(&of_triggers[1..]).filter(|_| !has_trigger) {
            return Err(Usage(format!(
                "{option} needs --trigger: without one, no file is kept for it"
            )));
        }
    }
    Usage::ensure(
        args.after.is_none() || args.ring.is_some() || has_trigger || !args.until.is_empty(),
        "--after needs --ring, --trigger or --until: there is no trigger to record after",
    )
}

/// Refuses options that cannot be used with a window.
pub(super) fn refuse_others(args: &RecordArgs) -> Result<(), Usage> {
    let reason = match &args.ring.ring {
        None => return Ok(()),
        Some(_) if args.output.as_os_str() == "-" => {
            "--ring needs files: standard output (-o -) holds a single trace"
        }
        Some(_) if !is_name_of_files(&args.output) => {
            "--ring needs files: -o names a device, a FIFO or a directory"
        }
        Some(text) => {
            limits(text)?;
            return command(args)?.map_or(Ok(()), |command| {
                let wrong = |error| {
                    let program = command
                        .words
                        .first()
                        .map(Path::new)
                        .unwrap_or(Path::new(""));
                    Usage(format!(
                        "--trigger-cmd: {} cannot be started: {error}",
                        shown(program)
                    ))
                };
                command.check().map_err(wrong)
            });
        }
    };
    Err(Usage(reason.to_owned()))
}

/// Whether files may be called so.
fn is_name_of_files(path: &Path) -> bool {
    path.metadata().map_or(true, |found| {
        let kind = found.file_type();
        !(kind.is_dir() || kind.is_fifo() || kind.is_char_device() || kind.is_block_device())
    })
}

/// `--ring`: a time, and perhaps a size.
pub(super) fn limits(text: &str) -> Result<WindowLimits, Usage> {
    let expected = || {
        Usage(format!(
            "--ring: expected a time, or a time and a size of at least 1M, like 60s or 60s,100M, found {text:?}"
        ))
    };
    let (time, bytes) = match text.split_once(',') {
        Some((time, bytes)) => {
            let bytes = parse_size("--ring", bytes, 1).map_err(|_| expected())?;
            (time, bytes)
        }
        None => (text, BYTES),
    };
    let time = parse_duration("--ring", time).map_err(|_| expected())?;
    let bytes = usize::try_from(bytes).ok();
    let bytes = bytes.filter(|bytes| *bytes as u64 >= MIN_BYTES);
    Ok(WindowLimits::new(time, bytes.ok_or_else(expected)?))
}

/// `--trigger`, `--until`: `span:NAME > TIME`, `PATTERN` or `PATTERN: FILTER`.
fn trigger(option: &str, text: &str, ends: bool) -> Result<Trigger, Usage> {
    let wrong = |error: &dyn std::fmt::Display| Usage(format!("{option} {text:?}: {error}"));
    let subject = if let Some(span) = text.strip_prefix("span:") {
        let expected = || wrong(&"expected a span and its least duration, like span:query > 100ms");
        let (span, least) = span.split_once('>').ok_or_else(expected)?;
        let (least, is_more) = match least.strip_prefix('=') {
            Some(least) => (least, 0),
            None => (least, 1),
        };
        let least = parse_duration(option, least.trim()).map_err(|_| expected())?;
        let least = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX);
        TriggerSubject::Span {
            span: span.trim().to_owned(),
            least: least.saturating_add(is_more),
        }
    } else {
        let (pattern, filter) = match text.split_once(": ") {
            Some((pattern, filter)) => (pattern, Some(filter)),
            None => (text, None),
        };
        let pattern = Pattern::parse(pattern.trim()).map_err(|error| wrong(&error))?;
        if pattern.path().is_some() {
            return Err(wrong(
                &"expected the name of a recorded probe: -e says of which file",
            ));
        }
        let filter = filter.map(Expr::parse).transpose();
        TriggerSubject::Hit {
            pattern: Box::new(pattern),
            filter: filter.map_err(|error| wrong(&error))?,
        }
    };
    Ok(Trigger {
        text: text.to_owned(),
        subject,
        ends,
    })
}

/// `--trigger-cmd`.
fn command(args: &RecordArgs) -> Result<Option<TriggerCommand>, Usage> {
    let words = args.ring.trigger_cmd.as_deref().map(words).transpose()?;
    Ok(words.map(|words| TriggerCommand { words }))
}

/// `--trigger-cmd`: words, in quotes if they have blanks.
fn words(text: &str) -> Result<Vec<OsString>, Usage> {
    let mut words: Vec<OsString> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in text.chars() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, char) if char.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (_, char) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word.map(OsString::from));
    let is_whole = quote.is_none() && words.first().is_some_and(|first| !first.is_empty());
    match is_whole {
        true => Ok(words),
        false => Err(Usage(format!(
            "--trigger-cmd: expected a program and its arguments, found {text:?}"
        ))),
    }
}

/// The files of a window. Creates one at once, so that errors are found before recording.
pub(super) fn files(args: &RecordArgs, named: &NumberedFiles) -> anyhow::Result<WindowFiles> {
    let command = command(args)?;
    let path = std::path::absolute(&args.output)?;
    drop(create(&path)?);
    let kept = Arc::new(Mutex::new(KeptFiles {
        keep: args.ring.keep.unwrap_or(KEEP),
        files: VecDeque::new(),
    }));
    let named = named.clone();
    Ok(WindowFiles::new(
        move |time: WindowFileTime| {
            let file: Box<dyn NewWindowFile> = Box::new(NewFile {
                file: create(&path)?,
                path: match time.ends {
                    true => path.clone(),
                    false => with_suffix(&path, &stamp(time.wall_ns)),
                },
                is_last: time.ends,
                named: named.clone(),
                kept: Arc::clone(&kept),
            });
            Ok(file)
        },
        command,
    ))
}

/// `20261123T120000.123Z`, as a part of a file's name.
fn stamp(wall_ns: i64) -> String {
    Timestamp::from_nanosecond(i128::from(wall_ns)).map_or_else(
        |_| wall_ns.to_string(),
        |date| date.strftime("%Y%m%dT%H%M%S%.3fZ").to_string(),
    )
}

fn create(path: &Path) -> io::Result<UnfinishedFile> {
    UnfinishedFile::create_trace(path).map_err(|error| output::named(path, &error))
}

/// A file that gets its name when it is complete.
struct NewFile {
    file: UnfinishedFile,
    path: PathBuf,
    /// Whether the recording ends with it.
    is_last: bool,
    named: NumberedFiles,
    kept: Arc<Mutex<KeptFiles>>,
}

impl NewWindowFile for NewFile {
    fn handle(&mut self) -> io::Result<File> {
        self.file.file().try_clone()
    }

    fn finish(mut self: Box<Self>) -> io::Result<PathBuf> {
        let found = self.file.file().metadata()?;
        if self.is_last {
            let path = self.path;
            let finished = self.file.finish_and_keep_old(&path);
            finished.map_err(|error| output::named(&path, &error))?;
            self.named.add(path.clone());
            return Ok(path);
        }
        let path = unused(self.path);
        let finished = self.file.finish(&path);
        finished.map_err(|error| output::named(&path, &error))?;
        self.named.add(path.clone());
        let old = locked(&self.kept).add(KeptFile {
            path: path.clone(),
            device: found.dev(),
            inode: found.ino(),
        });
        if let Some(old) = old {
            self.named.forget(&old.path);
            old.remove();
        }
        Ok(path)
    }
}

/// The newest files, as `--keep` says.
#[derive(Debug)]
struct KeptFiles {
    keep: u64,
    files: VecDeque<KeptFile>,
}

/// A file that was written.
#[derive(Debug)]
struct KeptFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl KeptFiles {
    /// Adds a file. Returns the oldest if that is one too many.
    fn add(&mut self, file: KeptFile) -> Option<KeptFile> {
        self.files.push_back(file);
        let is_full = self.files.len() as u64 > self.keep;
        is_full.then(|| self.files.pop_front()).flatten()
    }
}

impl KeptFile {
    /// Removes it, unless somebody has renamed it or has put another one in its place.
    fn remove(&self) {
        let found = fs::symlink_metadata(&self.path);
        let is_ours =
            found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if !is_ours {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            let path = shown(&self.path);
            say(format_args!("usdtrec: {path}: not removed: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> TriggerSubject {
        trigger("--trigger", text, false)
            .expect("a trigger")
            .subject
    }

    #[test]
    fn triggers_are_spans_hits_and_filters() {
        for (text, name, shortest) in [
            ("span:query > 100ms", "query", 100_000_001),
            ("span:db:query>=1s", "db:query", 1_000_000_000),
            (
                "span:a:b__start..a:b__done > 5us",
                "a:b__start..a:b__done",
                5001,
            ),
        ] {
            let TriggerSubject::Span { span, least } = subject(text) else {
                panic!("{text} is a span");
            };
            assert_eq!((&*span, least), (name, shortest), "{text}");
        }
        for (text, has_filter) in [
            ("sdt_x:error", false),
            ("x:*", false),
            ("query__start: arg0 > 5", true),
            ("x:query__start: arg0 > 5 && text == \"a: b\"", true),
        ] {
            let TriggerSubject::Hit { filter, .. } = subject(text) else {
                panic!("{text} is a hit");
            };
            assert_eq!(filter.is_some(), has_filter, "{text}");
        }
        for wrong in [
            "",
            "span:query",
            "span:query > ",
            "span:query > soon",
            "x:y@/bin/app",
            "x:y: arg0 >",
        ] {
            assert!(trigger("--trigger", wrong, false).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn windows_have_a_time_and_a_size() {
        for (text, time, bytes) in [
            ("60s", Duration::from_secs(60), 256 << 20),
            ("500ms,10M", Duration::from_millis(500), 10 << 20),
        ] {
            let found = limits(text).expect("a window");
            assert_eq!(found, WindowLimits::new(time, bytes), "{text}");
        }
        for wrong in ["", "60s,", "10M", "60s,1K", "0s", "60s,10M,5"] {
            assert!(limits(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn names_have_the_millisecond() {
        for (time, expected) in [
            ("2026-11-23T12:00:00Z", "20261123T120000.000Z"),
            ("2026-11-23T12:00:00.1239Z", "20261123T120000.123Z"),
        ] {
            let time: Timestamp = time.parse().expect("a date");
            let wall_ns = i64::try_from(time.as_nanosecond()).expect("a time");
            assert_eq!(stamp(wall_ns), expected);
        }
    }

    #[test]
    fn commands_are_words() {
        let all = |text: &str| words(text).expect("words");
        assert_eq!(all("a  b\tc"), ["a", "b", "c"]);
        assert_eq!(
            all("a 'b  c' \"d'e\" '' $x;y"),
            ["a", "b  c", "d'e", "", "$x;y"]
        );
        for wrong in ["", "  ", "'a", "'' b"] {
            assert!(words(wrong).is_err(), "{wrong:?}");
        }
    }

    /// Only what this recording has written is removed.
    #[test]
    fn the_oldest_files_are_removed_unless_they_are_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = KeptFiles {
            keep: 2,
            files: VecDeque::new(),
        };
        let mut add = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, name).expect("a file");
            let found = path.metadata().expect("it");
            let old = kept.add(KeptFile {
                path,
                device: found.dev(),
                inode: found.ino(),
            });
            old.iter().for_each(KeptFile::remove);
        };
        add("a");
        add("b");
        let replaced = folder.path().join("other");
        fs::write(&replaced, "other").expect("a file");
        fs::rename(&replaced, folder.path().join("b")).expect("a name");
        add("c");
        add("d");
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .expect("the folder")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["b", "c", "d"]);
    }
}
