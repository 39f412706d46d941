//! The files whose semaphores are counted: a list that grows while other threads read it.

use std::iter;
use std::sync::OnceLock;

use super::file::CountedFile;

/// Files by their indexes, which stay as they are.
#[derive(Debug)]
pub(super) struct CountedFiles {
    files: Vec<CountedFile>,
    /// The files that were added.
    more: OnceLock<Box<Self>>,
}

impl CountedFiles {
    pub(super) const fn new(files: Vec<CountedFile>) -> Self {
        Self {
            files,
            more: OnceLock::new(),
        }
    }

    /// Adds files.
    pub(super) fn add(&self, files: Vec<CountedFile>) {
        let mut last = self;
        let mut new = Box::new(Self::new(files));
        while let Err(not_set) = last.more.set(new) {
            let Some(more) = last.more.get() else { return };
            (last, new) = (more, not_set);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &CountedFile> {
        let lists = iter::successors(Some(self), |list| list.more.get().map(AsRef::as_ref));
        lists.flat_map(|list| &list.files)
    }

    pub(super) fn get(&self, index: usize) -> Option<&CountedFile> {
        self.iter().nth(index)
    }

    /// Number of files.
    pub(super) fn len(&self) -> usize {
        self.iter().count()
    }
}
