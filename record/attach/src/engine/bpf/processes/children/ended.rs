//! Links of processes that have ended.

use std::mem::take;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::engine::release::{Descriptors, Release};

/// How long links accumulate before they are closed together: closing takes one or two processes, and a grace period.
const GATHER_TIME: Duration = Duration::from_millis(100);

/// Links to close, and links that are being closed.
#[derive(Debug, Default)]
pub(super) struct Ended {
    links: Vec<OwnedFd>,
    /// When the first of them was added.
    since: Option<Instant>,
    release: Option<Release>,
}

impl Ended {
    /// Adds links.
    pub(super) fn add(&mut self, links: Vec<OwnedFd>) {
        if !links.is_empty() {
            self.since.get_or_insert_with(Instant::now);
            self.links.extend(links);
        }
    }

    /// Number of links that are not closed yet.
    pub(super) fn len(&self) -> usize {
        self.links.len() + self.release.as_ref().map_or(0, Release::left)
    }

    /// Whether links are being closed.
    pub(super) const fn is_closing(&self) -> bool {
        self.release.is_some()
    }

    /// Time until the next step; `None` without links.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.release.is_some() {
            return Some(GATHER_TIME);
        }
        let since = self.since?;
        Some(GATHER_TIME.saturating_sub(since.elapsed()))
    }

    /// Starts closing the accumulated links, after the previous ones are closed.
    pub(super) fn go_on(&mut self) {
        if let Some(release) = &mut self.release {
            if !release.wait(Duration::ZERO) {
                return;
            }
            self.release = None;
        }
        if self.due().is_some_and(|due| due.is_zero()) {
            self.since = None;
            self.release = Some(close(take(&mut self.links)));
        }
    }

    /// Takes those that are not being closed.
    pub(super) fn take(&mut self) -> Vec<OwnedFd> {
        self.since = None;
        take(&mut self.links)
    }
}

/// Starts closing links.
pub(super) fn close(links: Vec<OwnedFd>) -> Release {
    Release::start(Descriptors {
        links,
        events: Vec::new(),
    })
}
