//! Split DWARF: the entries of a unit that are in a `.dwo` file, or in the package of a program's `.dwo` files (`.dwp`), of which the program
//! has a skeleton with the addresses.

use std::cell::{Cell, OnceCell};

use usdtrec_format::split_debug_files;

use super::files::{Files, PackageSections, Sections};

/// Maximum number of `.dwo` files that are opened for a program.
const MAX_FILES: usize = 256;

/// The files with split units of a program, each opened when it is needed.
pub(super) struct SplitFiles<'f> {
    files: &'f Files,
    package: OnceCell<Option<PackageSections>>,
    loaded: Chain<Sections>,
    opened: Cell<usize>,
}

impl<'f> SplitFiles<'f> {
    pub(super) fn new(files: &'f Files) -> Self {
        Self {
            files,
            package: OnceCell::new(),
            loaded: Chain::default(),
            opened: Cell::new(0),
        }
    }

    /// The package; `None` if there is none.
    pub(super) fn package(&self) -> Option<&PackageSections> {
        let package = self.package.get_or_init(|| self.files.package());
        package.as_ref()
    }

    /// The sections of a `.dwo` file with the name that a skeleton has, compiled in `directory`.
    pub(super) fn file(&self, name: &[u8], directory: &[u8]) -> Option<&Sections> {
        self.opened.set(self.opened.get() + 1);
        if self.opened.get() > MAX_FILES {
            return None;
        }
        let candidates = split_debug_files(self.files.binary.path(), name, directory);
        let sections = self.files.split(&candidates)?;
        Some(self.loaded.push(sections))
    }
}

/// Values that live as long as the chain.
pub(super) struct Chain<T>(OnceCell<Box<Link<T>>>);

struct Link<T> {
    value: T,
    next: Chain<T>,
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T> Chain<T> {
    /// Adds a value.
    pub(super) fn push(&self, value: T) -> &T {
        let mut end = self;
        while let Some(link) = end.0.get() {
            end = &link.next;
        }
        let next = Self::default();
        &end.0.get_or_init(|| Box::new(Link { value, next })).value
    }

    /// The first value that fits.
    pub(super) fn find(&self, fits: impl Fn(&T) -> bool) -> Option<&T> {
        let mut at = self.0.get();
        while let Some(link) = at {
            if fits(&link.value) {
                return Some(&link.value);
            }
            at = link.next.0.get();
        }
        None
    }
}
