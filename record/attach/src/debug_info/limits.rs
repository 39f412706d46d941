//! Limits on what debugging information of others makes us do: anybody may map a file in which names, variables and locations have no end.

use std::time::{Duration, Instant};

/// Maximum number of variables and scopes at an instruction. Units that a linker has made one have some thousand variables.
pub(super) const MAX_VARIABLES: usize = 1 << 14;
/// Maximum length of a name that is kept, bytes.
pub(super) const MAX_NAME_BYTES: usize = 256;
/// Maximum number of address ranges of a scope, or locations of a variable, that are looked at. Those of interpreters' loops have some thousand.
pub(super) const MAX_RANGES: usize = 1 << 14;
/// How long variables are searched for in a file that the user named. Later arguments stay unnamed.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The same in a file that nobody named: anybody may map files in which this takes for ever.
pub(super) const FOUND_PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of the words of enumerations that are kept of a file, bytes.
pub(super) const MAX_WORD_BYTES: usize = 1 << 20;
/// Memory that a word needs besides its letters, bytes.
pub(super) const WORD_BYTES: usize = 64;

/// Whether the time for a file is over.
pub(super) fn is_late(until: Instant) -> bool {
    Instant::now() >= until
}
