//! The helper process that reads files of others.

use std::fs::File;
use std::io;

use usdtrec_buildid_cache::MappedInode;
use usdtrec_buildid_cache::served::{self, PageTools};

use super::identity::MapIdentity;
use super::shared_inode::same_frame;
use crate::host::page_reading::cache_page;

/// Serves files to the recorder that started this process (see [`served`]).
///
/// # Errors
/// Standard input is no socket of a recorder.
pub fn serve_files() -> io::Result<()> {
    // What the recorder inherited from its caller is not this process's. Before Linux 5.9 it stays open.
    // SAFETY: close_range(2) takes integers, and this process has opened nothing yet.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    served::serve(PageTools {
        compare: same_frame,
        cache: cache_page,
        identify,
    })
}

fn identify(file: &File) -> Option<MappedInode> {
    let MapIdentity { device, inode } = MapIdentity::of_open(file)?;
    Some(MappedInode { device, inode })
}
