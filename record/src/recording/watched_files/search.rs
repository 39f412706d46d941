//! Which processes map files, as `/proc/PID/maps` has it.

use std::collections::HashMap;
use std::fs;

use usdtrec_buildid_cache::FileMapping;
use usdtrec_buildid_cache::served::{Patience, read_maps};
use usdtrec_kernel::host::identity::MapIdentity;

use super::file::ProbedFile;

/// Who maps files.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// A process that executes each file, by its place.
    pub(super) executing: HashMap<usize, i32>,
    /// Processes that map sites of a file and do not execute it.
    pub(super) reading: Vec<(usize, i32)>,
}

/// How a process maps a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) executes: bool,
    pub(super) reads: bool,
}

/// Looks among the mappings of all processes.
pub(super) fn search(files: &[ProbedFile]) -> Found {
    let identities = files.iter().enumerate();
    let identities = identities.filter_map(|(at, file)| Some((file.identity?, at)));
    let identities: HashMap<MapIdentity, usize> = identities.collect();
    let own = std::process::id().cast_signed();
    let mut found = Found::default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in pids.filter(|pid| *pid != own) {
        for (at, mapped) in mapped_of(pid, files, |identity| identities.get(identity).copied()) {
            if mapped.executes {
                found.executing.insert(at, pid);
            } else if mapped.reads {
                found.reading.push((at, pid));
            }
        }
    }
    found
}

/// How a process maps some of the files: those at these places. Its mappings are read once.
pub(super) fn mapped_by(
    pid: i32,
    files: &[ProbedFile],
    places: &[usize],
) -> HashMap<usize, Mapped> {
    let identities = places.iter().map(|at| (files.get(*at), *at));
    let identities = identities.filter_map(|(file, at)| Some((file?.identity?, at)));
    let identities: HashMap<MapIdentity, usize> = identities.collect();
    mapped_of(pid, files, |identity| identities.get(identity).copied())
}

/// How a process maps files, by their places; nothing if it has ended or cannot be read.
fn mapped_of(
    pid: i32,
    files: &[ProbedFile],
    place: impl Fn(&MapIdentity) -> Option<usize>,
) -> HashMap<usize, Mapped> {
    let mut all: HashMap<usize, Mapped> = HashMap::new();
    let Ok(maps) = read_maps(pid.cast_unsigned(), Patience::Short) else {
        return all;
    };
    for map in FileMapping::parse_all(&maps) {
        let identity = MapIdentity {
            device: map.device,
            inode: map.inode,
        };
        let at = place(&identity);
        let Some((at, file)) = at.and_then(|at| Some((at, files.get(at)?))) else {
            continue;
        };
        let [_, is_writable, is_executable] = map.permissions;
        let length = map.range.end.saturating_sub(map.range.start);
        let offsets = map.offset..map.offset.saturating_add(length);
        let mapped = all.entry(at).or_default();
        mapped.executes |= is_executable;
        mapped.reads |= map.is_private && !is_writable && file.has_site(&offsets);
    }
    all
}
