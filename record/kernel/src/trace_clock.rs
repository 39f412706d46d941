//! The trace's clock: `CLOCK_MONOTONIC` outside of time namespaces, which is what the kernel puts into records.
//!
//! In a time namespace the recorder's own clock is shifted against that of the kernel's records. The shift is
//! subtracted.

use std::fs;
use std::sync::OnceLock;

use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: i128 = 1_000_000_000;

/// The trace's clock now, ns.
pub fn now() -> u64 {
    let own = nanoseconds(clock_gettime(ClockId::Monotonic));
    u64::try_from(own - shift()).unwrap_or(0)
}

/// `CLOCK_REALTIME`, ns since 1970.
pub fn wall() -> u64 {
    u64::try_from(nanoseconds(clock_gettime(ClockId::Realtime))).unwrap_or(0)
}

/// A time in nanoseconds.
pub fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * SECOND + i128::from(time.tv_nsec)
}

/// Nanoseconds by which the monotonic clock of this process's time namespace is ahead of the kernel's.
fn shift() -> i128 {
    static SHIFT: OnceLock<i128> = OnceLock::new();
    *SHIFT.get_or_init(|| {
        let link = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok();
        // The file has the offsets of the namespace that children get.
        if link("time") != link("time_for_children") {
            return 0;
        }
        let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        offset(&offsets, ["monotonic", "1"]).unwrap_or(0)
    })
}

/// The offset of a clock in `timens_offsets`; the clock is a number up to Linux 5.6.
fn offset(offsets: &str, names: [&str; 2]) -> Option<i128> {
    offsets.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let clock = words.next()?;
        if !names.contains(&clock) {
            return None;
        }
        let seconds: i64 = words.next()?.parse().ok()?;
        let rest: i64 = words.next()?.parse().ok()?;
        Some(i128::from(seconds) * SECOND + i128::from(rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_a_namespace() {
        let offsets = "monotonic         -10 500000000\nboottime            7         0\n";
        let (monotonic, boot) = (["monotonic", "1"], ["boottime", "7"]);
        assert_eq!(offset(offsets, monotonic), Some(-9_500_000_000));
        assert_eq!(offset(offsets, boot), Some(7_000_000_000));
        assert_eq!(offset("1 3 4\n7 0 0\n", monotonic), Some(3_000_000_004));
        assert_eq!(offset("", monotonic), None);
    }
}
