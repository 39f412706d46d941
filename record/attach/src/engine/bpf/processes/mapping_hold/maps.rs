//! The maps of programs on new mappings.

use std::os::fd::{AsFd, BorrowedFd};

use usdtrec_kernel::bpf::insn::Map;

use crate::engine::bpf::control::Control;

/// The maps that programs on new mappings use.
#[derive(Clone, Copy)]
pub(super) struct MappingMaps<'a> {
    pub(super) control: &'a Control,
    /// The recorded processes.
    pub(super) tracked: BorrowedFd<'a>,
    /// The ring of the records.
    pub(super) mappings: BorrowedFd<'a>,
    /// The known files.
    pub(super) known: BorrowedFd<'a>,
}

impl<'a> MappingMaps<'a> {
    pub(super) fn descriptor(self, map: Map) -> BorrowedFd<'a> {
        match map {
            Map::Calls => self.mappings,
            Map::KnownFiles => self.known,
            Map::Control => self.control.as_fd(),
            _ => self.tracked,
        }
    }
}
