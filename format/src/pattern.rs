//! Patterns that select probes: `[sdt_]PROVIDER:NAME[@FILE]` with the globs `*`, `?` and `[…]`. FILE is a path, in which `\,` is a comma and
//! `\\` a backslash, because lists of patterns are separated by commas; or `build-id:HEX`, the first digits of a build-id (a file of such a
//! name is `./build-id:HEX`).

use std::fmt;
use std::path::{Path, PathBuf};

use crate::build_id::{BuildId, BuildIdPrefix};

/// What a build-id in the place of a path begins with.
const BUILD_ID: &str = "build-id:";

/// A pattern that selects probes by provider and name.
///
/// `sdt_` in front is optional. A hyphen and two underscores in a probe's name are the same (DTrace
/// writes `gc-start`, the note mostly has `gc__start`). A pattern without a colon selects every probe whose
/// provider or name it matches.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    provider: Option<Glob>,
    name: Glob,
    file: Option<NamedFile>,
}

/// The file of a pattern.
#[derive(Clone, Debug)]
enum NamedFile {
    Path(PathBuf),
    Build(BuildIdPrefix),
}

/// Error of parsing a pattern.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Provider, name or path is empty.
    #[error("{text:?}: {part} is missing; expected [sdt_]PROVIDER:NAME[@PATH|@build-id:HEX]")]
    Missing {
        /// The pattern.
        text: String,
        /// The empty part.
        part: &'static str,
    },
    /// What follows `@build-id:` is no build-id.
    #[error(
        "{text:?}: expected {} to {} hexadecimal digits after @build-id:, found {found:?} (a file of this name is @./build-id:…)",
        BuildIdPrefix::MIN,
        2 * BuildId::MAX
    )]
    BuildId {
        /// The pattern.
        text: String,
        /// What follows.
        found: String,
    },
    /// The pattern is written as bpftrace's: `usdt:PATH:PROVIDER:NAME`.
    #[error("{text:?} is bpftrace's way to write {ours:?}")]
    Bpftrace {
        /// The pattern.
        text: String,
        /// The same pattern in the syntax of this program.
        ours: String,
    },
    /// A bracket of a glob is not closed, or is no range of characters.
    #[error("{text:?}: at byte {position}: {reason}")]
    Glob {
        /// The pattern.
        text: String,
        /// The opening bracket: bytes from the start of the pattern.
        position: usize,
        /// Reason, of the crate `glob`.
        reason: &'static str,
    },
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if let Some(ours) = of_bpftrace(text) {
            return Err(PatternError::Bpftrace {
                text: text.to_owned(),
                ours,
            });
        }
        let missing = |part| PatternError::Missing {
            text: text.to_owned(),
            part,
        };
        let (provider, rest) = match text.split_once(':') {
            Some((provider, rest)) => (Some(provider), rest),
            None => (None, text),
        };
        let (name, file) = match rest.split_once('@') {
            Some((_, "")) => return Err(missing("the path after @")),
            Some((name, file)) => (name, Some(NamedFile::parse(text, file)?)),
            None => (rest, None),
        };
        if name.is_empty() {
            return Err(missing("the probe's name"));
        }
        let glob = |part: &str| {
            Glob::new(part).map_err(|error| PatternError::Glob {
                text: text.to_owned(),
                position: part.as_ptr().addr() - text.as_ptr().addr() + error.position,
                reason: error.reason,
            })
        };
        let provider = match provider.map(without_prefix) {
            Some("") => return Err(missing("the provider")),
            Some(part) => Some(glob(part)?),
            None => None,
        };
        let name = if provider.is_none() {
            without_prefix(name)
        } else {
            name
        };
        Ok(Self {
            text: text.to_owned(),
            provider,
            name: glob(name)?,
            file,
        })
    }

    /// Whether the pattern matches a probe, ignoring its file.
    #[must_use]
    pub fn matches(&self, provider: &str, name: &str) -> bool {
        match &self.provider {
            Some(glob) => glob.matches(provider) && self.name.matches_probe(name),
            None => self.name.matches(provider) || self.name.matches_probe(name),
        }
    }

    /// Whether the pattern names a provider, and this is one that it matches.
    #[must_use]
    pub fn matches_provider(&self, provider: &str) -> bool {
        let named = self.provider.as_ref();
        named.is_some_and(|glob| glob.matches(provider))
    }

    /// Whether the pattern matches an event name (`sdt_PROVIDER:NAME`).
    #[must_use]
    pub fn matches_event(&self, event: &str) -> bool {
        let event = event.strip_prefix("sdt_").unwrap_or(event);
        event
            .split_once(':')
            .is_some_and(|(provider, name)| self.matches(provider, name))
    }

    /// The path of the file that the probe must be in, as written after `@`.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.file {
            Some(NamedFile::Path(path)) => Some(path),
            _ => None,
        }
    }

    /// The build-id of the file that the probe must be in, as written after `@build-id:`.
    #[must_use]
    pub const fn build(&self) -> Option<&BuildIdPrefix> {
        match &self.file {
            Some(NamedFile::Build(build)) => Some(build),
            _ => None,
        }
    }

    /// Whether a file with this build-id can be that of the pattern: it names no build-id, or this one.
    #[must_use]
    pub fn fits_build(&self, id: Option<BuildId>) -> bool {
        let is_of = |build: &BuildIdPrefix| id.is_some_and(|id| build.is_of(id));
        self.build().is_none_or(is_of)
    }

    /// Whether the pattern has no globs, so that it matches one provider and name only.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.provider.as_ref().is_some_and(Glob::is_exact) && self.name.is_exact()
    }

    /// Whether the pattern says nothing about provider, probe and file, as `*:*`.
    #[must_use]
    pub fn is_any(&self) -> bool {
        let mut letters = self.text.chars();
        self.file.is_none() && self.text.contains('*') && letters.all(|c| "*:".contains(c))
    }

    /// The pattern as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl NamedFile {
    /// Parses what follows `@` in the pattern `text`.
    fn parse(text: &str, file: &str) -> Result<Self, PatternError> {
        let Some(digits) = file.strip_prefix(BUILD_ID) else {
            return Ok(Self::Path(PathBuf::from(unescaped(file))));
        };
        let build = BuildIdPrefix::parse(digits).ok_or_else(|| PatternError::BuildId {
            text: text.to_owned(),
            found: digits.to_owned(),
        });
        build.map(Self::Build)
    }
}

/// Splits a list of patterns, which may have argument lists, at commas outside brackets. In a path, a comma with a
/// backslash before it does not separate. Empty parts are omitted.
#[must_use]
pub fn split_patterns(list: &str) -> Vec<&str> {
    let (mut depth, mut in_path, mut escaped) = (0_u32, false, false);
    list.split(move |letter| {
        let was_escaped = std::mem::take(&mut escaped);
        match letter {
            '\\' if in_path => escaped = !was_escaped,
            ',' if depth == 0 && !was_escaped => {
                in_path = false;
                return true;
            }
            '@' if depth == 0 => in_path = true,
            '[' | '(' if !in_path => depth += 1,
            ']' | ')' if !in_path => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    })
    .filter(|part| !part.is_empty())
    .collect()
}

/// Removes the backslashes before commas and backslashes from a path.
fn unescaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut letters = path.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(&next @ (',' | '\\'))) => {
                out.push(next);
                letters.next();
            }
            _ => out.push(letter),
        }
    }
    out
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What `usdt:PATH:PROVIDER:NAME` or `usdt:PATH:NAME` is here. Names of probes do not begin like a path.
fn of_bpftrace(text: &str) -> Option<String> {
    let rest = text.strip_prefix("usdt:")?;
    let (path, probe) = rest
        .split_once(':')
        .filter(|(path, probe)| path.starts_with(['/', '.']) && !probe.is_empty())?;
    Some(format!("{probe}@{path}"))
}

/// Removes perf's prefix `sdt_` from a provider; of a glob that begins with `sdt*`, the `*` is kept.
fn without_prefix(part: &str) -> &str {
    match part.strip_prefix("sdt_") {
        Some(rest) => rest,
        None if part.starts_with("sdt*") => &part[3..],
        None => part,
    }
}

/// A glob, or plain text without wildcards.
#[derive(Clone, Debug)]
enum Glob {
    Exact(String),
    Globs {
        as_written: glob::Pattern,
        normal: glob::Pattern,
    },
}

/// Why a part of a pattern is no glob.
struct GlobError {
    /// Bytes from the start of the part.
    position: usize,
    reason: &'static str,
}

impl GlobError {
    /// The error of a part, of which the crate got `parsed`: with `*` in place of `**`.
    fn new(part: &str, parsed: &str, error: &glob::PatternError) -> Self {
        // Only a bracket can be wrong, and there are as many of them in both.
        let brackets = parsed.chars().take(error.pos).filter(|char| *char == '[');
        let bracket = part.match_indices('[').nth(brackets.count());
        Self {
            position: bracket.map_or(0, |(at, _)| at),
            reason: error.msg,
        }
    }
}

impl Glob {
    fn new(part: &str) -> Result<Self, GlobError> {
        if !part.contains(['*', '?', '[']) {
            return Ok(Self::Exact(part.to_owned()));
        }
        // Names have no directories, so `**` means the same as `*`.
        let mut short = part.to_owned();
        while short.contains("**") {
            short = short.replace("**", "*");
        }
        let parse = |text: &str| {
            glob::Pattern::new(text).map_err(|error| GlobError::new(part, text, &error))
        };
        Ok(Self::Globs {
            as_written: parse(&short)?,
            normal: parse(&normal_glob(&short))?,
        })
    }

    const fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(part) => part == text,
            Self::Globs { as_written, .. } => as_written.matches(text),
        }
    }

    /// As [`matches`](Self::matches), treating a hyphen and two underscores as equal.
    fn matches_probe(&self, name: &str) -> bool {
        self.matches(name)
            || match self {
                Self::Exact(part) => normal(part) == normal(name),
                Self::Globs { normal: glob, .. } => glob.matches(&normal(name)),
            }
    }
}

fn normal(name: &str) -> String {
    name.replace('-', "__")
}

/// Replaces hyphens by two underscores, except in brackets, where they are ranges.
fn normal_glob(part: &str) -> String {
    let mut out = String::with_capacity(part.len() + 4);
    let mut in_brackets = false;
    for c in part.chars() {
        match c {
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            '-' if !in_brackets => {
                out.push_str("__");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(pattern: &str, provider: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(provider, name)
    }

    #[test]
    fn the_prefix_is_optional() {
        for pattern in [
            "sdt_postgresql:query__start",
            "postgresql:query__start",
            "sdt_postgresql:query__*",
            "*:query__start",
            "sdt_*:query__start",
            "sdt*:query__start",
            "postgresql:quer?__[r-t]tart",
            "query__start",
            "sdt_postgresql",
        ] {
            assert!(selects(pattern, "postgresql", "query__start"), "{pattern}");
            assert!(!selects(pattern, "ruby", "gc__start"), "{pattern}");
        }
        assert!(
            !selects("s*:x", "tick", "x"),
            "the prefix is not the provider's"
        );
    }

    #[test]
    fn hyphen_and_two_underscores_are_the_same() {
        for pattern in ["node:gc-start", "node:gc__start", "node:gc-*", "node:gc__*"] {
            assert!(selects(pattern, "node", "gc__start"), "{pattern}");
            assert!(selects(pattern, "node", "gc-start"), "{pattern}");
            assert!(!selects(pattern, "node", "gc_start"), "{pattern}");
        }
        assert!(selects("node:mixed_name-here", "node", "mixed_name__here"));
        assert!(!selects("a-b:x", "a__b", "x"), "providers are as written");
    }

    #[test]
    fn odd_names_are_plain_text() {
        for name in ["a-b'\"c", "it's", "x.y", "{a,b}", "größe", "a b"] {
            assert!(selects(&format!("tick.x:{name}"), "tick.x", name), "{name}");
            assert!(selects("tick.x:*", "tick.x", name), "{name}");
        }
        assert!(!selects("p:{a,b}*", "p", "a"));
        assert!(selects("p:{a,b}*", "p", "{a,b}c"));
        assert!(selects("p:[*]x", "p", "*x"));
        assert!(!selects("p:[*]x", "p", "yx"));
        assert!(selects("p:gr??e", "p", "größe"), "a character, not a byte");
        assert!(selects("p:a*****b**", "p", "a/b"));
    }

    #[test]
    fn a_path_chooses_a_file() {
        let pattern = Pattern::parse("sdt_app:req*@/opt/a@b/app").unwrap();
        assert_eq!(pattern.path(), Some(Path::new("/opt/a@b/app")));
        assert!(pattern.matches("app", "request"));
        assert!(!pattern.is_exact());
        assert!(Pattern::parse("app:x@./a").unwrap().is_exact());
        assert!(pattern.matches_provider("app") && !pattern.matches_provider("a"));
        assert!(!Pattern::parse("app").unwrap().matches_provider("app"));
    }

    #[test]
    fn a_build_id_chooses_a_file() {
        let id = |text: &str| Some(text.parse().unwrap());
        let pattern = Pattern::parse("app:x@build-id:3F2a0011").unwrap();
        assert_eq!(pattern.path(), None);
        assert!(pattern.fits_build(id("3f2a001177")));
        assert!(!pattern.fits_build(id("3f2a0012")));
        assert!(!pattern.fits_build(None));
        assert!(pattern.is_exact() && !pattern.is_any());
        assert!(!Pattern::parse("*:*@build-id:3f2a00117").unwrap().is_any());
        assert!(!Pattern::parse("?:?").unwrap().is_any());
        assert!(Pattern::parse("*:*").unwrap().is_any());
        let other = Pattern::parse("app:x@./build-id:3f2a0011").unwrap();
        assert_eq!(other.path(), Some(Path::new("./build-id:3f2a0011")));
        assert!(other.fits_build(None));
        for digits in ["", "3f2a001", "3f2a001g", &"0".repeat(129), "3f2a0011 "] {
            let text = format!("app:x@build-id:{digits}");
            let error = Pattern::parse(&text).unwrap_err().to_string();
            assert!(error.contains("8 to 128 hexadecimal digits"), "{error}");
        }
        let list = "a:b@build-id:3f2a0011,c:d";
        assert_eq!(split_patterns(list), ["a:b@build-id:3f2a0011", "c:d"]);
    }

    #[test]
    fn commas_in_paths_are_escaped() {
        for (list, parts) in [
            ("a:b,c:d", &["a:b", "c:d"][..]),
            ("a:[b,c]*,d", &["a:[b,c]*", "d"]),
            (
                "a:b(x=arg1, y=arg2)@/p,c:d",
                &["a:b(x=arg1, y=arg2)@/p", "c:d"],
            ),
            (r"a:b@/x\,y,c:d", &[r"a:b@/x\,y", "c:d"]),
            (r"a:b@/x\\,c:d", &[r"a:b@/x\\", "c:d"]),
            ("a:b@/x(1,c:d", &["a:b@/x(1", "c:d"]),
            (",,a:b,", &["a:b"]),
        ] {
            assert_eq!(split_patterns(list), parts, "{list}");
        }
        for (text, path) in [
            (r"a:b@/x\,y", "/x,y"),
            (r"a:b@/x\\y", r"/x\y"),
            (r"a:b@/x\y\", r"/x\y\"),
        ] {
            let pattern = Pattern::parse(text).unwrap();
            assert_eq!(pattern.path(), Some(Path::new(path)), "{text}");
        }
    }

    #[test]
    fn a_bracket_that_is_not_closed_is_found() {
        for (text, rest) in [
            ("app:x[ab", "[ab"),
            ("sdt_größe[:x", "[:x"),
            ("a**p:**[a]-b**[c", "[c"),
            ("a:[[]b-[]", "[]"),
        ] {
            let Err(PatternError::Glob { position, .. }) = Pattern::parse(text) else {
                panic!("{text} is accepted");
            };
            assert_eq!(&text[position..], rest, "{text}");
        }
    }

    #[test]
    fn events_are_matched_by_their_whole_name() {
        let pattern = Pattern::parse("tick:loop1").unwrap();
        assert!(pattern.matches_event("sdt_tick:loop1"));
        assert!(pattern.matches_event("tick:loop1"));
        assert!(!pattern.matches_event("sdt_tick:loop10"));
        assert!(!pattern.matches_event("cycles"));
    }

    #[test]
    fn bpftrace_writes_patterns_otherwise() {
        for (theirs, ours) in [
            ("usdt:/bin/app:shop:order", "shop:order@/bin/app"),
            ("usdt:./app:order", "order@./app"),
        ] {
            let error = Pattern::parse(theirs).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("{theirs:?} is bpftrace's way to write {ours:?}")
            );
            assert_eq!(Pattern::parse(ours).unwrap().text(), ours);
        }
        assert!(Pattern::parse("usdt:order").is_ok());
    }

    #[test]
    fn what_is_missing_is_said() {
        for text in ["", ":", "sdt_:x", "a:", ":b", "a:b@", "a:@/x", "p:[x"] {
            let error = Pattern::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
