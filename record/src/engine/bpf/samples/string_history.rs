//! What an argument that nothing declares points to, as the hits of its site show: whether short strings are believed.
//!
//! The number 33 in memory looks like the string `!`. So bytes that are shorter than [`SURE_STRING`] are a string only if other hits say so: the
//! argument has pointed to strings and hardly to anything else; or there was a string at the same address. Until then they are kept as
//! [`StringStatus::Short`](usdtrec_format::StringStatus::Short), and readers are told once it is known ([`News`]).
//!
//! Notes do not say which arguments are strings. Without a schema, every unsigned argument of pointer size is tried as
//! a string. Empty, cut, unreadable and "not a string" are four different states in the sample. A short string needs
//! evidence, which may come after it: the sample has its bytes with a state of its own. Readers read the record about
//! it before they decode, so all hits of a site are decoded alike, in any part of the time, and without reading the
//! trace twice. A string that was only guessed is printed with its number.

use usdtrec_format::raw::{SURE_STRING, is_sure_string};

/// Minimum ratio of strings to other contents.
const RATIO: u32 = 16;
/// Number of addresses that are remembered of an argument: buffers are used again.
const REMEMBERED: usize = 4;
/// Maximum number of addresses of which readers are told.
const MAX_TOLD_ADDRESSES: u8 = 64;

/// What readers have to be told about an argument, because it holds for earlier hits, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) enum News {
    /// Whether all short strings of the site are believed.
    All(bool),
    /// The short strings at this address are.
    At(u64),
}

/// What an argument has pointed to so far.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine::bpf) struct StringHistory {
    strings: u32,
    others: u32,
    /// Addresses at which strings were, the last ones; 0 for none.
    addresses: [u64; REMEMBERED],
    /// Those at which short strings were that are not believed.
    doubtful: [u64; REMEMBERED],
    /// Number of these.
    doubted: u32,
    /// A short string of three letters.
    word: Option<[u8; 3]>,
    /// Whether there were different ones. Numbers whose three bytes are all letters are rare; two of them and no other number are no
    /// coincidence.
    has_words: bool,
    /// Whether readers were told that all are strings.
    is_told: bool,
    /// Number of addresses of which they were told.
    told: u8,
}

impl StringHistory {
    /// Notes that there is something else at an address than a string.
    pub(in crate::engine::bpf) fn note_other(&mut self, address: u64) -> Option<News> {
        self.others = self.others.saturating_add(1);
        let mut known = self.addresses.iter_mut();
        if let Some(known) = known.find(|known| **known == address) {
            *known = 0;
        }
        self.all()
    }

    /// Whether bytes that look like a string are taken for one, and what follows for earlier hits. An empty string says nothing.
    pub(in crate::engine::bpf) fn believes(
        &mut self,
        bytes: &[u8],
        cut: bool,
        address: u64,
    ) -> (bool, Option<News>) {
        if bytes.is_empty() {
            return (true, None);
        }
        if bytes.len() >= SURE_STRING || is_sure_string(bytes, cut, address) {
            self.strings = self.strings.saturating_add(1);
            let at = self.note_string_at(address);
            let all = self.all();
            return (true, all.or(at.filter(|_| !self.is_told)));
        }
        self.note_word(bytes);
        let all = self.all();
        let is_believed = self.is_string() || address != 0 && self.addresses.contains(&address);
        if !is_believed && !self.doubtful.contains(&address) {
            self.doubtful[self.doubted as usize % REMEMBERED] = address;
            self.doubted = self.doubted.wrapping_add(1);
        }
        (is_believed, all)
    }

    /// Takes over that another site of the probe has strings there, if this one has shown nothing else.
    pub(in crate::engine::bpf) fn adopt(&mut self) -> Option<News> {
        (self.others == 0 && !self.is_told).then(|| {
            self.is_told = true;
            News::All(true)
        })
    }

    /// Whether readers were told that all are strings.
    pub(in crate::engine::bpf) const fn is_told(&self) -> bool {
        self.is_told
    }

    fn note_string_at(&mut self, address: u64) -> Option<News> {
        if !self.addresses.contains(&address) {
            self.addresses[self.strings as usize % REMEMBERED] = address;
        }
        let mut doubtful = self.doubtful.iter_mut();
        let doubtful = doubtful.find(|doubtful| **doubtful == address && address != 0)?;
        *doubtful = 0;
        self.told = self.told.saturating_add(1);
        (self.told <= MAX_TOLD_ADDRESSES).then_some(News::At(address))
    }

    fn note_word(&mut self, bytes: &[u8]) {
        if let Ok(word) = <[u8; 3]>::try_from(bytes)
            && word.iter().all(u8::is_ascii_alphabetic)
        {
            self.has_words |= *self.word.get_or_insert(word) != word;
        }
    }

    /// Whether the hits so far say that all are strings.
    const fn is_string(&self) -> bool {
        match self.others {
            0 => self.strings > 0 || self.has_words || self.is_told,
            others => self.strings >= others.saturating_mul(RATIO),
        }
    }

    /// What readers have to be told, if that has changed.
    fn all(&mut self) -> Option<News> {
        let is_string = self.is_string();
        let has_changed = is_string != self.is_told;
        self.is_told = is_string;
        has_changed.then_some(News::All(is_string))
    }
}

#[cfg(test)]
mod tests {
    use super::{News, StringHistory};

    const STRING: (bool, Option<News>) = (true, None);
    const DOUBTED: (bool, Option<News>) = (false, None);

    fn believes(history: &mut StringHistory, string: &str, address: u64) -> (bool, Option<News>) {
        history.believes(string.as_bytes(), false, address)
    }

    #[test]
    fn an_argument_that_had_a_string_has_short_ones_too() {
        let mut history = StringHistory::default();
        assert_eq!(believes(&mut history, "GET", 0x1000), DOUBTED);
        assert_eq!(believes(&mut history, "", 0x1000), STRING);
        let news = Some(News::All(true));
        assert_eq!(believes(&mut history, "DELETE", 0x1000), (true, news));
        assert_eq!(believes(&mut history, "/", 0x2000), STRING);
    }

    #[test]
    fn numbers_are_no_strings() {
        let mut history = StringHistory::default();
        for number in ["!", "AR", "!", "a1b", "a1c"] {
            assert_eq!(believes(&mut history, number, 0x1000), DOUBTED, "{number}");
        }
    }

    #[test]
    fn different_words_are_strings() {
        let mut history = StringHistory::default();
        assert_eq!(believes(&mut history, "GET", 0x1000), DOUBTED);
        assert_eq!(believes(&mut history, "GET", 0x1000), DOUBTED);
        let news = Some(News::All(true));
        assert_eq!(believes(&mut history, "PUT", 0x1000), (true, news));
    }

    #[test]
    fn what_is_not_always_a_string_is_one_where_one_was() {
        let mut history = StringHistory::default();
        assert_eq!(history.note_other(0x3000), None);
        assert_eq!(believes(&mut history, "GET", 0x1000), DOUBTED);
        assert_eq!(believes(&mut history, "GET", 0x2000), DOUBTED);
        let news = Some(News::At(0x1000));
        assert_eq!(believes(&mut history, "PATCH", 0x1000), (true, news));
        assert_eq!(believes(&mut history, "GET", 0x1000), STRING);
        assert_eq!(believes(&mut history, "GET", 0x2000), DOUBTED);
        assert_eq!(history.note_other(0x1000), None);
        assert_eq!(believes(&mut history, "GET", 0x1000), DOUBTED);
    }

    #[test]
    fn readers_are_told_when_it_does_not_hold_any_more() {
        let mut history = StringHistory::default();
        let told = |is_string| Some(News::All(is_string));
        assert_eq!(believes(&mut history, "PATCH", 0x1000), (true, told(true)));
        assert_eq!(history.note_other(0x2000), told(false));
        for _ in 0..14 {
            assert_eq!(believes(&mut history, "PATCH", 0x1000), STRING);
        }
        assert_eq!(believes(&mut history, "PATCH", 0x1000), (true, told(true)));
    }

    #[test]
    fn sites_of_a_probe_take_over_what_others_have_shown() {
        let mut history = StringHistory::default();
        assert_eq!(history.adopt(), Some(News::All(true)));
        assert_eq!(history.adopt(), None);
        assert_eq!(believes(&mut history, "GET", 0x1000), STRING);
        assert_eq!(history.note_other(0x1000), Some(News::All(false)));
        assert_eq!(history.adopt(), None);
    }
}
