//! A file with semaphores that the kernel counts wrong.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use usdtrec_attach::engine::Counted;
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_buildid_cache::MappedInode;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::Arch;
use usdtrec_kernel::host::identity;

use crate::left_breakpoints::{FileSite, NotedSite};

/// A file, with those of its recorded semaphores that the kernel counts wrong.
#[derive(Debug)]
pub(super) struct CountedFile {
    pub(super) object: Arc<ObjectFile>,
    pub(super) path: PathBuf,
    pub(super) identity: MappedInode,
    /// At least one.
    pub(super) semaphores: Vec<Semaphore>,
}

/// A semaphore.
#[derive(Clone, Copy, Debug)]
pub(super) struct Semaphore {
    /// Link-time address.
    pub(super) address: u64,
    /// File offset.
    pub(super) offset: u64,
    /// Whether the kernel increments another mapping in processes that execute or load the file later.
    pub(super) is_misplaced: bool,
    /// File offset of a place that nobody executes; `None` if the file has too few: then the semaphore is incremented by hand only.
    pub(super) place: Option<u64>,
}

impl Semaphore {
    /// Its address in a process with this load bias.
    pub(super) const fn at(&self, bias: u64) -> u64 {
        bias.wrapping_add(self.address)
    }
}

impl CountedFile {
    /// The files of probes that have such semaphores.
    pub(super) fn of_probes(probes: &[impl Borrow<PlannedProbe>]) -> Vec<Self> {
        let page = rustix::param::page_size() as u64;
        let mut files: Vec<Self> = Vec::new();
        for probe in probes {
            let probe: &PlannedProbe = probe.borrow();
            for site in &probe.sites {
                let site = &site.site;
                let Some(fault) = probe.file().semaphore_fault(site, page) else {
                    continue;
                };
                let Some(offset) = site.semaphore_offset else {
                    continue;
                };
                let known = files.iter().position(|file| file.object == *probe.file());
                let at = match known {
                    Some(at) => at,
                    None => {
                        let Some(identity) = identity::of_file(probe.file()) else {
                            continue;
                        };
                        files.push(Self {
                            object: Arc::clone(probe.file()),
                            path: probe.path.clone(),
                            identity,
                            semaphores: Vec::new(),
                        });
                        files.len() - 1
                    }
                };
                let semaphores = &mut files[at].semaphores;
                if semaphores.iter().all(|known| known.offset != offset) {
                    semaphores.push(Semaphore {
                        address: site.semaphore,
                        offset,
                        is_misplaced: fault.is_misplaced,
                        place: None,
                    });
                }
            }
        }
        for file in &mut files {
            file.find_places();
        }
        files
    }

    /// Gives each semaphore its place: the same one in all recordings, because a place has one semaphore.
    fn find_places(&mut self) {
        let mut all: BTreeSet<u64> = BTreeSet::new();
        let read = self.object.for_each_note(None, |note| {
            all.extend(note.ok().and_then(|(_, site)| site.semaphore_offset));
        });
        if read.is_err() {
            return;
        }
        let places = self.object.unused_bytes(all.len());
        let placed: Vec<(u64, u64)> = all.into_iter().zip(places).collect();
        for semaphore in &mut self.semaphores {
            let found = placed
                .iter()
                .find(|(offset, _)| *offset == semaphore.offset);
            semaphore.place = found.map(|(_, place)| *place);
        }
    }

    /// The places of the semaphores, which have no instructions.
    pub(super) fn places(&self) -> impl Iterator<Item = NotedSite> {
        let breakpoint = self.object.arch().and_then(Arch::breakpoint);
        let length = breakpoint.map_or(0, <[u8]>::len);
        self.semaphores.iter().filter_map(move |semaphore| {
            Some(NotedSite {
                site: FileSite {
                    file: self.object.id(),
                    offset: semaphore.place?,
                },
                original: vec![0; length],
                semaphore_offset: semaphore.offset,
            })
        })
    }

    /// The semaphores that the kernel can count, with their places.
    pub(super) fn counted(&self) -> Vec<Counted> {
        let counted = self.semaphores.iter().filter_map(|semaphore| {
            Some(Counted {
                place: semaphore.place?,
                semaphore: semaphore.offset,
            })
        });
        counted.collect()
    }
}
