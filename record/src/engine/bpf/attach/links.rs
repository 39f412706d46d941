//! Links of sites to the loaded programs, for one process or for all.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use usdtrec_buildid_cache::elf::ObjectFile;

use super::super::sys::{self, Uprobes};
use crate::engine::separate_process::planting;

/// One link for each program and file.
#[derive(Debug)]
pub(in crate::engine::bpf) struct Links {
    links: Vec<Link>,
    programs: Arc<Vec<OwnedFd>>,
}

#[derive(Debug)]
struct Link {
    /// Index of its program.
    program: usize,
    /// Keeps `path` valid.
    _file: Arc<ObjectFile>,
    path: CString,
    uprobes: Uprobes,
}

/// The links that were created.
#[derive(Debug, Default)]
pub(in crate::engine::bpf) struct Planted {
    pub(in crate::engine::bpf) links: Vec<OwnedFd>,
    /// The last refusal.
    pub(in crate::engine::bpf) error: Option<io::Error>,
}

impl Links {
    /// Without links, for these programs.
    pub(in crate::engine::bpf) const fn new(programs: Arc<Vec<OwnedFd>>) -> Self {
        Self {
            links: Vec::new(),
            programs,
        }
    }

    /// Adds a link for a program, by its index, and the sites of one file.
    pub(in crate::engine::bpf) fn add(
        &mut self,
        program: usize,
        file: &Arc<ObjectFile>,
        uprobes: Uprobes,
    ) {
        self.links.push(Link {
            program,
            path: file.kernel_path(),
            _file: Arc::clone(file),
            uprobes,
        });
    }

    /// Number of links.
    pub(in crate::engine::bpf) fn len(&self) -> usize {
        self.links.len()
    }

    /// Attaches to a process: creates all links, or those before the first one that the kernel refuses.
    pub(in crate::engine::bpf) fn plant_in(&self, pid: u32) -> Planted {
        let mut links = Vec::with_capacity(self.links.len());
        // Nothing is allocated here: the process that does it may be killed. Then it is done once more, to no effect.
        let planted = planting(|| {
            links.clear();
            for link in &self.links {
                links.push(self.link(link, pid)?);
            }
            Ok(())
        });
        Planted {
            links,
            error: planted.err(),
        }
    }

    /// Attaches to all processes. Links that the kernel refuses are left out.
    pub(in crate::engine::bpf) fn plant_everywhere(&self) -> Planted {
        let mut planted = Planted::default();
        for link in &self.links {
            match planting(|| self.link(link, 0)) {
                Ok(link) => planted.links.push(link),
                Err(error) => planted.error = Some(error),
            }
        }
        planted
    }

    fn link(&self, link: &Link, pid: u32) -> io::Result<OwnedFd> {
        let program = self.programs.get(link.program).map(AsFd::as_fd);
        let program = program.ok_or(io::ErrorKind::NotFound)?;
        sys::link_uprobes(program, &link.path, &link.uprobes, pid)
    }
}
