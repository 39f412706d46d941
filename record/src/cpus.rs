//! CPU lists: `0-3,6`, as sysfs and perf's `-C` write them.

use std::fs;

use crate::RecordError;

/// Parses a CPU list; the result is sorted and without repeats.
///
/// # Errors
/// [`RecordError::Usage`] names the part that is no CPU number or range, or a range of more than 65,536 CPUs.
pub fn parse(list: &str) -> Result<Vec<u32>, RecordError> {
    let wrong = |part: &str| {
        RecordError::Usage(format!(
            "expected a CPU number or a range like 0-3, found {part:?} in {list:?}"
        ))
    };
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| wrong(part))?;
        let last: u32 = last.trim().parse().map_err(|_| wrong(part))?;
        if last < first || last - first >= 65_536 {
            return Err(wrong(part));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// The CPUs that are on line.
///
/// # Errors
/// [`RecordError::Host`] if sysfs does not say.
pub(crate) fn online() -> Result<Vec<u32>, RecordError> {
    parse(&read("/sys/devices/system/cpu/online")?)
}

/// The highest CPU number that can ever be present, plus 1.
///
/// # Errors
/// [`RecordError::Host`] if sysfs does not say.
pub(crate) fn available() -> Result<u32, RecordError> {
    let present = parse(&read("/sys/devices/system/cpu/present")?)?;
    Ok(present.last().map_or(1, |last| last + 1))
}

fn read(path: &'static str) -> Result<String, RecordError> {
    fs::read_to_string(path).map_err(|source| RecordError::Host {
        what: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ranges_and_repeats() {
        assert_eq!(parse("0-2,6,1\n").unwrap(), [0, 1, 2, 6]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for list in ["", "a", "3-1", "0-", "-1", "0-4294967295", "1,,2"] {
            assert!(parse(list).is_err(), "{list:?}");
        }
    }
}
