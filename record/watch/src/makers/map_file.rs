//! A perf map: a file that its process may be trusted to have written.

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use usdtrec_buildid_cache::served::{Contents, Handle};

/// How much the time at which a file was changed may be before that of the change, ns: a tick of the slowest kernels.
const TICK: u64 = 10_000_000;
/// The same for file systems that keep seconds, or every other one.
const SECONDS: u64 = 2_000_000_000;

/// Whose map is looked for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The number of the process in its own pid namespace.
    pub(super) number: i32,
    /// Its user, if it is known.
    pub(super) owner: Option<u32>,
    /// When it ran, ns of the time of day as it was set when recording began, after each time it was set, and as it is now. A map that was last changed at another time is that of
    /// another process with its number.
    pub(super) times: Vec<RangeInclusive<u64>>,
}

impl Wanted {
    /// Opens the map in a directory. `None` if there is none, or it is not one that perf would read: a regular file of root, of this user, or of the user of the process.
    ///
    /// # Errors
    /// `TimedOut` if the file system does not answer.
    pub(super) fn open(&self, tmp: &Handle) -> io::Result<Option<Contents>> {
        // Neither a link nor a pipe in place of the map may lead elsewhere, or block.
        let map = match tmp.below(Path::new(&format!("perf-{}.map", self.number))) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            found => found.ok().and_then(|map| map.open().ok()),
        };
        Ok(map.filter(|map| self.is(map)))
    }

    /// Whether an open file is the map.
    pub(super) fn is(&self, map: &Contents) -> bool {
        let Ok(found) = map.stat() else {
            return false;
        };
        let [seconds, nanoseconds] = found.modified;
        let own = rustix::process::geteuid().as_raw();
        let owners = [Some(0), Some(own), self.owner];
        found.is_file()
            && owners.contains(&Some(found.user))
            && self.was_changed(seconds, nanoseconds)
    }

    /// Whether the process ran when the file was last changed.
    fn was_changed(&self, seconds: i64, nanoseconds: i64) -> bool {
        let early = if nanoseconds == 0 { SECONDS } else { TICK };
        let changed = u64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds));
        changed.is_ok_and(|changed| {
            let was = |times: &RangeInclusive<u64>| {
                changed.saturating_add(early) >= *times.start() && changed <= *times.end()
            };
            self.times.iter().any(was)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_was_changed_while_its_process_ran() {
        let (begun, ended) = (100 * 1_000_000_000, 200 * 1_000_000_000);
        let wanted = Wanted {
            number: 7,
            owner: None,
            times: vec![begun..=ended],
        };
        for (seconds, nanoseconds, expected) in [
            (99, 995_000_000, true),
            (99, 980_000_000, false),
            (98, 0, true),
            (97, 0, false),
            (150, 1, true),
            (200, 0, true),
            (200, 1, false),
            (-1, 0, false),
            (i64::MAX, 0, false),
        ] {
            let changed = wanted.was_changed(seconds, nanoseconds);
            assert_eq!(changed, expected, "{seconds} {nanoseconds}");
        }
    }

    #[test]
    fn the_clock_may_have_been_set_while_recording() {
        const SECOND: u64 = 1_000_000_000;
        let wanted = Wanted {
            number: 7,
            owner: None,
            times: vec![100 * SECOND..=110 * SECOND, 4000 * SECOND..=4010 * SECOND],
        };
        for (seconds, expected) in [(99, false), (105, true), (2000, false), (4005, true)] {
            assert_eq!(wanted.was_changed(seconds, 1), expected, "{seconds}");
        }
    }
}
