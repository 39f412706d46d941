//! How long answers were waited for lately. A file system whose waits a SIGKILL ends (NFS), or that answers at the last moment, leaves no helper behind by
//! which it could be known.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::file_mapping::DeviceNumber;

/// How long an answer may take without being counted. Those of honest file systems of other hosts do.
pub(super) const FREE_TIME: Duration = Duration::from_millis(100);
/// What is counted of a wait without an answer.
pub(super) const SILENCE: Duration = Duration::from_secs(5);
/// How much may be counted of a file system for an account, and of the files of an account that is limited. It is less than of as many waits without an answer
/// as there may be stuck helpers; a file system that is slow and answers has more.
const OF_FILE_SYSTEM: Duration = Duration::from_secs(8);
const OF_ACCOUNT: Duration = Duration::from_secs(18);
/// The share of all time that is forgotten: a file system that never answers is asked again each 10 s.
const SHARE: u32 = 2;

/// The times, by account, and by account and file system.
#[derive(Debug)]
pub(super) struct SpentTimes(BTreeMap<Key, SpentTime>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    account: Account,
    /// `None` for all of the account.
    device: Option<DeviceNumber>,
}

#[derive(Clone, Copy, Debug)]
struct SpentTime {
    time: Duration,
    since: Instant,
}

/// For whom a file system is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) account: Account,
    /// `None` if it is not known.
    pub(super) device: Option<DeviceNumber>,
    /// Whether the account is limited as a whole.
    pub(super) is_limited: bool,
}

impl SpentTime {
    /// What is not forgotten yet.
    fn left(&self, now: Instant) -> Duration {
        let forgotten = now.saturating_duration_since(self.since) / SHARE;
        self.time.saturating_sub(forgotten)
    }
}

impl SpentTimes {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Counts a wait.
    pub(super) fn add(&mut self, asker: Asker, time: Duration, now: Instant) {
        if time.is_zero() {
            return;
        }
        // So there are never more than were waited for in the time that is remembered.
        self.0.retain(|_, spent| !spent.left(now).is_zero());
        let account = asker.account;
        let whole = Key {
            account,
            device: None,
        };
        let of_device = asker.device.map(|device| Key {
            account,
            device: Some(device),
        });
        let of_account = asker.is_limited.then_some(whole);
        for key in of_device.into_iter().chain(of_account) {
            let spent = self.0.entry(key).or_insert(SpentTime {
                time: Duration::ZERO,
                since: now,
            });
            *spent = SpentTime {
                time: spent.left(now) + time,
                since: now,
            };
        }
    }

    /// Whether so much was waited that nothing is asked now.
    pub(super) fn is_used_up(&self, asker: Asker, now: Instant) -> bool {
        let left = |device| {
            let account = asker.account;
            let spent = self.0.get(&Key { account, device });
            spent.map_or(Duration::ZERO, |spent| spent.left(now))
        };
        asker.is_limited && left(None) >= OF_ACCOUNT
            || asker.device.is_some() && left(asker.device) >= OF_FILE_SYSTEM
    }

    /// Number of file systems that are not asked now.
    pub(super) fn used_up(&self, now: Instant) -> usize {
        let of_devices = self.0.iter().filter(|(key, _)| key.device.is_some());
        let used_up = of_devices.filter(|(_, spent)| spent.left(now) >= OF_FILE_SYSTEM);
        used_up.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(user: u32, minor: u32) -> Asker {
        Asker {
            account: Account::of_user(user),
            device: Some(DeviceNumber { major: 0, minor }),
            is_limited: user != 0,
        }
    }

    /// Waits as long as it may, at one moment. Returns the number of waits.
    fn waits(spent: &mut SpentTimes, asker: Asker, time: Duration, now: Instant) -> usize {
        let mut number = 0;
        while !spent.is_used_up(asker, now) {
            spent.add(asker, time, now);
            number += 1;
        }
        number
    }

    #[test]
    fn few_waits_are_made_for_a_file_system_and_for_an_account() {
        let mut spent = SpentTimes::new();
        let now = Instant::now();
        assert_eq!(waits(&mut spent, asker(7, 1), SILENCE, now), 2);
        // Others of it, and the same one for others.
        assert_eq!(waits(&mut spent, asker(7, 2), SILENCE, now), 2);
        assert_eq!(waits(&mut spent, asker(7, 3), SILENCE, now), 0);
        assert_eq!(waits(&mut spent, asker(8, 1), SILENCE, now), 2);
        // Answers just in time.
        let late = Duration::from_millis(800);
        assert_eq!(waits(&mut spent, asker(9, 1), late, now), 10);
        for minor in 1..5 {
            assert_eq!(waits(&mut spent, asker(0, minor), SILENCE, now), 2);
        }
        assert_eq!(spent.used_up(now), 8);
        let later = now + Duration::from_secs(6);
        assert_eq!(waits(&mut spent, asker(8, 1), SILENCE, later), 1);
        let much_later = now + Duration::from_secs(60);
        spent.add(asker(1, 1), SILENCE, much_later);
        assert_eq!(spent.0.len(), 2, "others are forgotten");
    }
}
