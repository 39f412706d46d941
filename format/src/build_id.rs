//! GNU build-ids, and other ids as hexadecimal digits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A GNU build-id: 1 to 64 bytes (`NT_GNU_BUILD_ID`; 20 for SHA-1, 16 for MD5 or UUID, 8 for xxhash, 32 for SHA-256).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    bytes: [u8; Self::MAX],
    len: u8,
}

/// Error of parsing a build-id.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BuildIdError {
    /// The length is outside 1 to 64 bytes.
    #[error("expected a build-id of 1 to 64 bytes, found {0}")]
    Length(usize),
    /// The text is not pairs of hexadecimal digits.
    #[error("expected a build-id of pairs of hexadecimal digits, found {0:?}")]
    Digits(String),
}

impl BuildId {
    /// Maximum length, bytes.
    pub const MAX: usize = 64;
    /// The name of the link of one byte.
    const NO_REST: &str = "_";
    /// Maximum length in perf's records, bytes.
    pub const MAX_IN_PERF: usize = 20;

    /// Creates a build-id from its bytes.
    ///
    /// # Errors
    /// [`BuildIdError::Length`] outside 1 to 64 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, BuildIdError> {
        if bytes.is_empty() || bytes.len() > Self::MAX {
            return Err(BuildIdError::Length(bytes.len()));
        }
        let mut id = Self {
            bytes: [0; Self::MAX],
            len: bytes.len() as u8,
        };
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(id)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The name of its link below `.build-id` in perf's cache: `xx/yyyy`. Of one byte it is `xx/_`: perf has none.
    #[must_use]
    pub fn link_name(&self) -> PathBuf {
        let text = self.to_string();
        let (first, rest) = text.split_at_checked(2).unwrap_or((&text, ""));
        Path::new(first).join(if rest.is_empty() { Self::NO_REST } else { rest })
    }

    /// The build-id whose link is called so.
    #[must_use]
    pub fn from_link_name(directory: &str, name: &str) -> Option<Self> {
        let rest = if name == Self::NO_REST { "" } else { name };
        let id = Self::from_str(&format!("{directory}{rest}")).ok()?;
        (directory.len() == 2).then_some(id)
    }

    /// The build-id in perf's records: as perf reads it from a file, the first [`MAX_IN_PERF`](Self::MAX_IN_PERF) bytes.
    #[must_use]
    pub fn in_perf(&self) -> Self {
        let len = self.len.min(Self::MAX_IN_PERF as u8);
        let mut bytes = [0; Self::MAX];
        bytes[..usize::from(len)].copy_from_slice(&self.bytes[..usize::from(len)]);
        Self { bytes, len }
    }
}

/// The first digits of a build-id, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdPrefix {
    /// Lower-case hexadecimal digits.
    digits: String,
}

impl BuildIdPrefix {
    /// Minimum number of digits.
    pub const MIN: usize = 8;

    /// Parses [`MIN`](Self::MIN) to 128 hexadecimal digits; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_long = (Self::MIN..=2 * BuildId::MAX).contains(&text.len());
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_long && is_hex).then(|| Self {
            digits: text.to_ascii_lowercase(),
        })
    }

    /// Whether a build-id begins with these digits.
    #[must_use]
    pub fn is_of(&self, id: BuildId) -> bool {
        id.to_string().starts_with(&self.digits)
    }

    /// Whether these are all digits of a build-id.
    #[must_use]
    pub fn is_whole(&self, id: BuildId) -> bool {
        id.to_string() == self.digits
    }
}

impl fmt::Display for BuildIdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digits)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

impl FromStr for BuildId {
    type Err = BuildIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = || BuildIdError::Digits(text.to_owned());
        if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(digits());
        }
        let bytes: Vec<u8> = (0..text.len() / 2)
            .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16))
            .collect::<Result<_, _>>()
            .map_err(|_| digits())?;
        Self::new(&bytes)
    }
}

impl serde::Serialize for BuildId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for BuildId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_round_trip() {
        let id: BuildId = "00ff7a".parse().unwrap();
        assert_eq!(id.as_bytes(), [0, 255, 0x7a]);
        assert_eq!(id.to_string(), "00ff7a");
    }

    #[test]
    fn perf_has_the_first_bytes_of_long_ones() {
        for len in 1..=BuildId::MAX {
            let bytes: Vec<u8> = (0..len as u8).collect();
            let id = BuildId::new(&bytes).unwrap();
            assert_eq!(id.as_bytes(), bytes);
            assert_eq!(id.in_perf().as_bytes(), &bytes[..len.min(20)]);
            assert_eq!(BuildId::new(id.in_perf().as_bytes()), Ok(id.in_perf()));
            let link = id.link_name();
            let (directory, name) = link.to_str().unwrap().split_once('/').unwrap();
            assert_eq!(BuildId::from_link_name(directory, name), Some(id));
        }
    }

    #[test]
    fn odd_long_and_foreign_text_is_refused() {
        for text in ["", "0", "0g", "é0", &"00".repeat(65), "+1"] {
            assert!(text.parse::<BuildId>().is_err(), "{text:?}");
        }
    }
}
