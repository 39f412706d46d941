//! `usdtrec buildid-cache --scan DIR`.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use usdtrec_buildid_cache::elf::{ObjectFile, ProbeScan};
use usdtrec_buildid_cache::{AddedFile, Cache, CacheError, WalkEvent, walk};
use usdtrec_format::counted;
use usdtrec_format::escape::shown;

use crate::mutex::locked;
use crate::terminal::{self, inform, say};

/// Adds all files with probes below the directories.
pub(super) fn run(cache: &Cache, dirs: &[PathBuf], verbose: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    let run = Run::new(cache, verbose);
    for dir in dirs {
        walk(dir, &|step| run.take(step)).with_context(|| shown(dir).to_string())?;
    }
    run.progress.finish_and_clear();
    let failure = locked(&run.failure).take();
    if let Some(error) = failure {
        return Err(error);
    }
    run.print_summary(start.elapsed());
    Ok(())
}

struct Run<'a> {
    cache: &'a Cache,
    verbose: bool,
    progress: ProgressBar,
    files: AtomicUsize,
    added: AtomicUsize,
    probes: AtomicUsize,
    unreadable: AtomicUsize,
    without_id: AtomicUsize,
    /// The first fatal error: the cache cannot be written, or standard output is closed.
    failure: Mutex<Option<anyhow::Error>>,
}

impl<'a> Run<'a> {
    fn new(cache: &'a Cache, verbose: bool) -> Self {
        // Hidden unless stderr is a terminal.
        let progress = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            progress.set_style(style);
        }
        progress.enable_steady_tick(Duration::from_millis(250));
        Self {
            cache,
            verbose,
            progress,
            files: AtomicUsize::new(0),
            added: AtomicUsize::new(0),
            probes: AtomicUsize::new(0),
            unreadable: AtomicUsize::new(0),
            without_id: AtomicUsize::new(0),
            failure: Mutex::new(None),
        }
    }

    fn take(&self, step: WalkEvent) {
        match step {
            WalkEvent::File => {
                let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
                if files.is_multiple_of(64) {
                    let added = self.added.load(Ordering::Relaxed);
                    self.progress
                        .set_message(format!("{files} files, {added} with probes"));
                }
            }
            WalkEvent::Probes(scan, file) => self.add(scan, &file),
            WalkEvent::Unreadable(path, error) => {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
                if self.verbose {
                    self.progress.suspend(|| terminal::warn(&path, &error));
                }
            }
        }
    }

    fn add(&self, scan: ProbeScan, file: &ObjectFile) {
        match self.cache.add_scan(scan, file) {
            Ok(added) => self.print_added(&added),
            Err(error @ CacheError::NoBuildId(_)) => {
                self.without_id.fetch_add(1, Ordering::Relaxed);
                self.progress
                    .suspend(|| say(format_args!("usdtrec: {error}")));
            }
            Err(error) => {
                locked(&self.failure).get_or_insert(error.into());
            }
        }
    }

    fn print_added(&self, added: &AddedFile) {
        self.added.fetch_add(1, Ordering::Relaxed);
        self.probes.fetch_add(added.probes, Ordering::Relaxed);
        // The lock keeps lines of several threads apart.
        let mut failure = locked(&self.failure);
        if let Err(error) = self.progress.suspend(|| print_added(added)) {
            failure.get_or_insert(error);
        }
    }

    fn print_summary(&self, elapsed: Duration) {
        let get = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let unreadable = match get(&self.unreadable) {
            0 => String::new(),
            count if self.verbose => format!(", {count} unreadable"),
            count => format!(", {count} unreadable (-v names them)"),
        };
        let without_id = match get(&self.without_id) {
            0 => String::new(),
            count => format!(", skipped {count} without a build-id"),
        };
        inform(format_args!(
            "[ usdtrec buildid-cache: scanned {} in {:.1} s, indexed {} with {}{without_id}{unreadable} ]",
            counted(get(&self.files), "file"),
            elapsed.as_secs_f64(),
            counted(get(&self.added), "file"),
            counted(get(&self.probes), "probe"),
        ));
    }
}

/// Prints an added file: `/usr/bin/php8.2: 14 probes at 31 sites (build-id …)`.
pub(super) fn print_added(added: &AddedFile) -> anyhow::Result<()> {
    for error in &added.damaged {
        terminal::warn(&added.path, error);
    }
    let content = if added.probes == 0 {
        "no probes".to_owned()
    } else {
        format!(
            "{} at {}",
            counted(added.probes, "probe"),
            counted(added.sites, "site")
        )
    };
    let known = if added.known { ", known already" } else { "" };
    print(format_args!(
        "{}: {content} (build-id {}{known})",
        shown(&added.path),
        added.build_id
    ))
}

/// Prints a line on standard output.
pub(super) fn print(line: impl fmt::Display) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}
