//! How much may be planted in files that nobody named: any user can map any number of files with any probes.
//!
//! What the user of the recorder names (`@PATH`, `-p`, the command) has no limit here. Of other files, at the start and while recording,
//! each *takes* places for its sites, for the account of a process that maps it, and gives them back when its probes are detached
//! ([`Place`]). Events and arguments stay in the trace for ever, and so are never given back.
//!
//! An account never has more than what is left for all others together. So two, or five, who take all that they can leave room for the next one,
//! whatever the number of their files.

mod account;
mod need;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::account::Account;
pub use self::need::PlaceCount;

/// Maximum of one file: a file with more is refused, whoever maps it. Programs with the most have some thousand sites (QEMU).
pub const OF_FILE: PlaceCount = PlaceCount {
    files: 1,
    sites: 8192,
    events: 8192,
    forms: 1024,
    arguments: 1 << 15,
};
/// Maximum of an account.
const OF_ACCOUNT: PlaceCount = PlaceCount {
    files: 256,
    sites: 8192,
    events: 16_384,
    forms: 2048,
    arguments: 1 << 15,
};
/// Maximum of a recording. A trace has ids for 55,534 events, and readers take definitions with 262,144 arguments.
const OF_RECORDING: PlaceCount = PlaceCount {
    files: 1024,
    sites: 32_768,
    events: 48_000,
    forms: 8192,
    arguments: 100_000,
};
/// Maximum number of probes at one instruction in a file that nobody named. Each hit is as many events. Functions with the same code that the
/// linker has made one (ICF) have a few.
pub const AT_INSTRUCTION: usize = 16;

/// Number of descriptors that a planted file needs: itself, the links, programs and words of its part, and copies while they are handed over.
const DESCRIPTORS_OF_FILE: u64 = 6;
/// Number of descriptors that are kept for everything else.
const DESCRIPTORS_KEPT: u64 = 320;

/// What was planted in files that nobody named. Clones are handles of the same.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    accounts: HashMap<Account, PlaceCount>,
    all: PlaceCount,
}

/// The places of a file. Dropping it gives them back.
pub struct Place {
    of: Places,
    account: Account,
    need: PlaceCount,
}

/// A maximum that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    account: Account,
    what: &'static str,
    /// Number that it has, and the most that it can have.
    has: usize,
    most: usize,
    /// Whether only that is left which others may need.
    is_reserve: bool,
}

impl Places {
    /// Takes places for a file of one of these accounts: that which has the least.
    ///
    /// # Errors
    /// [`Exceeded`]: nothing is taken.
    pub fn take(&self, accounts: &[Account], need: PlaceCount) -> Result<Place, Exceeded> {
        let mut taken = self.taken();
        let mut known: Vec<(usize, Account)> = accounts
            .iter()
            .map(|account| (taken.of(*account).files, *account))
            .collect();
        known.sort_unstable();
        let mut outcome = Err(Exceeded {
            account: Account::default(),
            what: "files",
            has: 0,
            most: 0,
            is_reserve: false,
        });
        for (_, account) in known {
            outcome = taken.take(account, need, most_files());
            if outcome.is_ok() {
                break;
            }
        }
        outcome.map(|account| Place {
            of: self.clone(),
            account,
            need,
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of files for which this process can have descriptors.
fn most_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let files = limit.map_or(u64::MAX, |limit| {
        limit.saturating_sub(DESCRIPTORS_KEPT) / DESCRIPTORS_OF_FILE
    });
    usize::try_from(files).map_or(OF_RECORDING.files, |files| files.min(OF_RECORDING.files))
}

impl Taken {
    fn of(&self, account: Account) -> PlaceCount {
        self.accounts.get(&account).copied().unwrap_or_default()
    }

    fn take(
        &mut self,
        account: Account,
        need: PlaceCount,
        files: usize,
    ) -> Result<Account, Exceeded> {
        let of_all = PlaceCount {
            files,
            ..OF_RECORDING
        };
        let own = self.of(account);
        let own = own.plus(need);
        let all = self.all.plus(need);
        let parts = own.parts().into_iter().zip(all.parts());
        let limits = OF_ACCOUNT.parts().into_iter().zip(of_all.parts());
        for (((what, own), (_, all)), ((_, most), (_, most_of_all))) in parts.zip(limits) {
            let needs = need.parts().iter().any(|(name, n)| *name == what && *n > 0);
            let is_reserve = own > most_of_all.saturating_sub(all);
            if needs && (own > most || is_reserve) {
                return Err(Exceeded {
                    account,
                    what,
                    has: own,
                    most,
                    is_reserve: own <= most,
                });
            }
        }
        self.accounts.insert(account, own);
        self.all = all;
        Ok(account)
    }

    fn give_back(&mut self, account: Account, need: PlaceCount) {
        let given = need.given_back();
        self.all = self.all.minus(given);
        if let Some(own) = self.accounts.get_mut(&account) {
            *own = own.minus(given);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.taken().give_back(self.account, self.need);
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Places").field(&self.taken().all).finish()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.need).finish()
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            account: Account { user, namespace },
            what,
            has,
            most,
            is_reserve,
        } = self;
        match is_reserve {
            false => write!(
                f,
                "with this file, processes of user {user} would have {has} {what} (expected at most {most})"
            )?,
            true => write!(
                f,
                "with this file, processes of user {user} would have {has} {what}, more than is left for all others"
            )?,
        }
        match namespace {
            0 => Ok(()),
            inode => write!(f, ", in the namespace {inode}"),
        }
    }
}

#[cfg(test)]
mod tests;
