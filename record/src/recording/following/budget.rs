//! How much may be planted while recording: any user can map files with any probes.

use std::collections::HashMap;
use std::fmt;

/// Maximum numbers of files and sites that are planted while recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    files: usize,
    sites: usize,
}

/// For the processes of one user. A site has at most one link.
const OF_USER: Use = Use {
    files: 256,
    sites: 4096,
};
/// For all users.
const OF_RECORDING: Use = Use {
    files: 512,
    sites: 16_384,
};
/// Maximum number of users.
const MAX_USERS: usize = 4096;

/// What was planted while recording.
#[derive(Debug, Default)]
pub(super) struct Budget {
    users: HashMap<u32, Use>,
    all: Use,
}

/// A maximum that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// Of the processes of a user.
    OfUser(u32),
    /// Of the recording.
    OfRecording,
}

impl Use {
    fn with(self, sites: usize) -> Self {
        Self {
            files: self.files + 1,
            sites: self.sites.saturating_add(sites),
        }
    }

    const fn is_within(self, most: Self) -> bool {
        self.files <= most.files && self.sites <= most.sites
    }
}

impl Budget {
    /// Adds a file with this number of sites that a process of a user maps.
    ///
    /// # Errors
    /// [`Exceeded`]: it would be too many, and is not added.
    pub(super) fn add(&mut self, user: u32, sites: usize) -> Result<(), Exceeded> {
        let all = self.all.with(sites);
        let of_user = self.users.get(&user).copied().unwrap_or_default();
        let of_user = of_user.with(sites);
        if !of_user.is_within(OF_USER) {
            return Err(Exceeded::OfUser(user));
        }
        if !all.is_within(OF_RECORDING) || self.users.len() >= MAX_USERS {
            return Err(Exceeded::OfRecording);
        }
        self.users.insert(user, of_user);
        self.all = all;
        Ok(())
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Use { files, sites } = match self {
            Self::OfUser(_) => OF_USER,
            Self::OfRecording => OF_RECORDING,
        };
        write!(
            f,
            "while recording, at most {files} files and {sites} sites are planted "
        )?;
        match self {
            Self::OfUser(user) => write!(f, "for processes of one user (user {user})"),
            Self::OfRecording => f.write_str("in one recording"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_leaves_room_for_others() {
        let mut budget = Budget::default();
        for _ in 0..OF_USER.files {
            assert_eq!(budget.add(1000, 1), Ok(()));
        }
        assert_eq!(budget.add(1000, 1), Err(Exceeded::OfUser(1000)));
        assert_eq!(budget.add(0, OF_USER.sites + 1), Err(Exceeded::OfUser(0)));
        for user in 0..3 {
            assert_eq!(budget.add(user, OF_USER.sites), Ok(()));
        }
        assert_eq!(budget.add(3, OF_USER.sites), Err(Exceeded::OfRecording));
        assert_eq!(
            budget.add(1000, 1).unwrap_err().to_string(),
            "while recording, at most 256 files and 4096 sites are planted for processes of one user (user 1000)"
        );
    }
}
