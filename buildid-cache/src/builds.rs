//! The build that a pattern names by the first digits of its build-id.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use usdtrec_format::escape::shown;
use usdtrec_format::{Binary, BuildId, Pattern};

/// Maximum number of builds that a message names: any user can make any number of files.
const MAX_BUILDS: usize = 6;

/// A build of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// Build-id; `None` if the file has none.
    pub build_id: Option<BuildId>,
    /// A file that has it.
    pub path: PathBuf,
}

/// The build-id of a pattern is not that of one build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    /// The pattern.
    pub pattern: String,
    /// Whether several builds have the digits; else none has.
    pub is_ambiguous: bool,
    /// The builds that have them, or if none has, those whose probes the pattern matches otherwise.
    pub builds: Vec<Build>,
}

/// The build-id that a pattern names, among binaries whose probes it matches. `None` if it names none, or matches no probe of any binary.
///
/// # Errors
/// [`BuildError`] if no build has the digits, or several have. Where the digits are the whole build-id of one of these, that is chosen: any
/// user can make a file whose build-id begins with that of another.
pub fn chosen_build<'a>(
    pattern: &Pattern,
    binaries: impl Iterator<Item = &'a Binary>,
) -> Result<Option<BuildId>, BuildError> {
    let Some(digits) = pattern.build() else {
        return Ok(None);
    };
    let mut builds: BTreeMap<Option<BuildId>, &Binary> = BTreeMap::new();
    let has_probe = |binary: &&Binary| {
        let mut probes = binary.probes.iter();
        probes.any(|probe| pattern.matches(&probe.provider, &probe.name))
    };
    for binary in binaries.filter(has_probe) {
        builds.entry(binary.build_id).or_insert(binary);
    }
    let ids = builds.keys().copied().flatten();
    let mut fitting: Vec<BuildId> = ids.filter(|id| digits.is_of(*id)).collect();
    if let Some(whole) = fitting.iter().find(|id| digits.is_whole(**id)) {
        fitting = vec![*whole];
    }
    if let [chosen] = fitting.as_slice() {
        return Ok(Some(*chosen));
    }
    if builds.is_empty() {
        return Ok(None);
    }
    let is_ambiguous = !fitting.is_empty();
    builds.retain(|id, _| !is_ambiguous || id.is_some_and(|id| fitting.contains(&id)));
    let builds = builds.into_iter().map(|(build_id, binary)| Build {
        build_id,
        path: binary.path.clone(),
    });
    Err(BuildError {
        pattern: pattern.text().to_owned(),
        is_ambiguous,
        builds: builds.collect(),
    })
}

impl std::error::Error for BuildError {}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.pattern)?;
        f.write_str(match self.is_ambiguous {
            true => "several build-ids begin with these digits:",
            false => "no file with such a probe has this build-id; there are:",
        })?;
        for Build { build_id, path } in self.builds.iter().take(MAX_BUILDS) {
            match build_id {
                Some(id) => write!(f, "\n  {id} {}", shown(path))?,
                None => write!(f, "\n  no build-id: {}", shown(path))?,
            }
        }
        match self.builds.len().saturating_sub(MAX_BUILDS) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::{Probe, Site};

    use super::*;

    fn binary(build_id: Option<&str>, path: &str) -> Binary {
        let site = Site {
            pc: 1,
            base: 0,
            semaphore: 0,
            offset: None,
            semaphore_offset: None,
            args: String::new(),
        };
        Binary {
            path: path.into(),
            build_id: build_id.map(|id| id.parse().unwrap()),
            arch: None,
            probes: vec![Probe {
                provider: "app".to_owned(),
                name: "hit".to_owned(),
                sites: vec![site],
            }],
        }
    }

    #[test]
    fn one_build_is_chosen_or_all_are_named() {
        let binaries = [
            binary(Some("3f2a00112233"), "/a"),
            binary(Some("3f2a00112244"), "/b"),
            binary(Some("3f2a0011"), "/whole"),
            binary(Some("3f2a00112233"), "/copy of a"),
            binary(None, "/none"),
        ];
        let chosen = |text: &str| {
            let pattern = Pattern::parse(text).unwrap();
            let chosen = chosen_build(&pattern, binaries.iter());
            chosen.map(|id| id.map(|id| id.to_string()))
        };
        let is = |id: &str| Ok(Some(id.to_owned()));
        assert_eq!(chosen("app:hit"), Ok(None));
        assert_eq!(chosen("other:hit@build-id:3f2a0011"), Ok(None));
        assert_eq!(chosen("app:hit@build-id:3f2a00112233"), is("3f2a00112233"));
        assert_eq!(chosen("app:hit@build-id:3f2a0011"), is("3f2a0011"));
        let error = chosen("app:hit@build-id:3f2a001122").unwrap_err();
        assert_eq!(
            error.to_string(),
            "app:hit@build-id:3f2a001122: several build-ids begin with these digits:\n  3f2a00112233 /a\n  3f2a00112244 /b"
        );
        let error = chosen("app:hit@build-id:00000000").unwrap_err();
        assert!(!error.is_ambiguous);
        assert!(error.to_string().contains("no build-id: /none"));
        assert_eq!(error.builds.len(), 4);
    }
}
