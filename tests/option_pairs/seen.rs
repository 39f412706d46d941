//! What is seen of a recorder, while it records and afterwards.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::hits::Kind;
use super::run::Run;
use crate::common::{Finished, Lab};

/// What was seen of a recorder.
pub(super) struct Seen<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) lab: &'a Lab,
    /// What `record` has stored, what `trace` printed, the tables of `top`.
    pub(super) text: String,
    pub(super) ended: Finished,
    /// Ended before it was asked to.
    pub(super) by_itself: bool,
    /// From the beginning of the recording to its end.
    pub(super) took: Duration,
    pub(super) looked: Looked,
}

impl Seen<'_> {
    /// Whether hits of this kind are there; `top` and `stat` count them.
    pub(super) fn hits(&self, kind: Kind) -> bool {
        match self.run.verb {
            "top" => return self.total() & kind.count() != 0,
            "stat" => return self.counted("pairs:go") & kind.count() != 0,
            _ => {}
        }
        self.text.contains(&kind.first().to_string())
    }

    /// What `top` counted of `pairs:go`, in all tables.
    pub(super) fn total(&self) -> u64 {
        // The key is before the number.
        let place = 1 + usize::from(self.run.has("--by comm"));
        let rows = self.text.lines();
        let rows = rows.filter(|line| line.starts_with("pairs:go "));
        let counts = rows.filter_map(|row| row.split_whitespace().nth(place)?.parse::<u64>().ok());
        counts.sum()
    }

    /// What `stat` counted of a probe, in all intervals.
    pub(super) fn counted(&self, probe: &str) -> u64 {
        let mut heading = Vec::new();
        let mut is_own_line = false;
        let count = |line: &str| {
            if line.starts_with('{') {
                let line: Value = serde_json::from_str(line).expect("JSON");
                let is_of = line["event"].as_str()?.ends_with(probe);
                return line["count"].as_u64().filter(|_| is_of);
            }
            let is_csv = line.contains(",sdt_") || line.starts_with("elapsed_ns,");
            let mut cells: Vec<&str> = match is_csv {
                true => line.split(',').collect(),
                false => line.split_whitespace().collect(),
            };
            if cells.contains(&"Events") || cells.contains(&"elapsed_ns") {
                heading = cells.into_iter().map(str::to_owned).collect();
                return None;
            }
            // In a wide table, a long name has a line of its own.
            if std::mem::replace(&mut is_own_line, line == probe) {
                cells.insert(0, probe);
            }
            // Bars follow the table.
            let is_row = cells.len() == heading.len();
            let is_of = |cell: &&&str| cell.strip_prefix("sdt_").unwrap_or(cell) == probe;
            cells.iter().find(|cell| is_row && is_of(cell))?;
            let is_count = |name: &String| name == "Events" || name == "count";
            let place = heading.iter().position(is_count)?;
            cells.get(place)?.parse().ok()
        };
        self.text.lines().filter_map(count).sum()
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.lab.file(name).exists()
    }

    /// The files that `record` wrote.
    pub(super) fn traces(&self) -> Vec<PathBuf> {
        let base = self.run.output();
        let names = (1..20).map(|number| format!("{base}.{number}"));
        let names = names.chain([base.to_owned()]);
        let files = names.map(|name| self.lab.file(&name));
        files.filter(|file| file.exists()).collect()
    }

    pub(super) fn says(&self, text: &str) -> bool {
        self.ended.stderr.contains(text)
    }
}

impl Seen<'_> {
    /// What was captured, as text.
    pub(super) fn read(&self) -> String {
        if self.run.verb == "record" {
            let script = |file: &PathBuf| {
                let file = file.to_str().expect("a path");
                self.lab.usdtrec(["script", "-i", file]).success().stdout
            };
            return self.traces().iter().map(script).collect();
        }
        if self.run.has("-o out") {
            return fs::read_to_string(self.lab.file("out")).unwrap_or_default();
        }
        self.ended.stdout.clone()
    }
}

/// What can be seen of a recorder from outside while it records.
#[derive(Default)]
pub(super) struct Looked {
    /// Lengths of what it maps of the kernel, bytes.
    pub(super) rings: Vec<u64>,
    /// Command lines of its children.
    pub(super) children: String,
    /// What its descriptors are.
    pub(super) descriptors: String,
}

impl Looked {
    pub(super) fn at(pid: u32) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let maps = read(&format!("/proc/{pid}/maps"));
        let ring = |line: &str| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let address = |text| u64::from_str_radix(text, 16).ok();
            let length = address(end)? - address(start)?;
            rest.contains("anon_inode:").then_some(length)
        };
        let children = read(&format!("/proc/{pid}/task/{pid}/children"));
        let children = children.split_whitespace();
        let children = children.map(|child| read(&format!("/proc/{child}/cmdline")));
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let descriptors = descriptors
            .flatten()
            .flat_map(|fd| fs::read_link(fd.path()));
        Self {
            rings: maps.lines().filter_map(ring).collect(),
            children: children.collect(),
            descriptors: descriptors.map(|path| path.display().to_string()).collect(),
        }
    }
}
