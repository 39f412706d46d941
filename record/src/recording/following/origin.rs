//! Where a file with selected probes comes from.

use std::path::PathBuf;

use usdtrec_attach::places::Account;
use usdtrec_format::BuildId;

use crate::recording::build_ids::NewFile;

/// Where a file with selected probes comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// The first process that mapped it.
    pub(super) pid: i32,
    /// Its thread; 0 if that is not known.
    pub(super) tid: i32,
    /// When it was mapped, ns of the trace's clock; 0 if that is not known.
    pub(super) mapped_at: u64,
    /// Number of programs that mapped it before and ended before it was read.
    pub(super) ended: usize,
    pub(super) path: PathBuf,
    pub(super) build_id: Option<BuildId>,
    /// The user who owns the file.
    pub(super) owner: u32,
}

/// The user who owns a file.
pub(super) const fn owner(file: &NewFile) -> u32 {
    file.object.owner()
}

/// The account of the process that mapped a file; if it has ended, of the file's owner.
pub(super) fn account_of(file: &NewFile) -> Account {
    let of_process = file.account;
    of_process.unwrap_or_else(|| Account::of_user(owner(file)))
}
