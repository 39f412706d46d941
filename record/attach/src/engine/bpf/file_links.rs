//! Detaching the probes of one file from all processes, and attaching them again.

use std::io;
use std::sync::Arc;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_kernel::separate_process;

use super::BpfEngine;
use super::attach::unit_links::UnitLinks;
use super::processes::watched_files::WatchedFiles;

/// The links of a file.
#[derive(Debug)]
pub struct FileLinks {
    links: Arc<UnitLinks>,
    file: Arc<ObjectFile>,
}

impl FileLinks {
    /// Detaches, and waits until the kernel has removed the probes.
    pub fn detach(&self) {
        separate_process::close(self.links.take_file(&self.file));
    }

    /// Attaches again.
    ///
    /// # Errors
    /// The error of bpf(2): nothing is attached; `Interrupted` if the recording has ended.
    pub fn attach(&self) -> io::Result<()> {
        self.links.attach_file(&self.file).map_err(|not| {
            separate_process::close(not.created);
            not.error
        })
    }
}

impl BpfEngine {
    /// The links of the file of a probe; `None` if they are not in all processes of it, or are events.
    pub fn file_links(&self, probe: usize, file: &Arc<ObjectFile>) -> Option<FileLinks> {
        let parts = self.parts.iter().filter(|part| part.probes_before <= probe);
        let part = parts.max_by_key(|part| part.probes_before)?;
        let links = part.attachment.units.as_ref();
        Some(FileLinks {
            links: Arc::clone(links.filter(|links| links.is_everywhere())?),
            file: Arc::clone(file),
        })
    }

    /// Takes what watches files with probes in all processes; or why there is nothing.
    pub fn take_watched_files(&mut self) -> Option<io::Result<WatchedFiles>> {
        self.objects.watched_files.take()
    }
}
