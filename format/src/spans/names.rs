//! Which probes begin and end spans, by their names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::known::known_spans;

/// Words in names of probes that begin something, each with those that end it. Of several sets, with `|` between, the first counts of which the
/// trace has any.
const WORDS: [(&str, &str); 20] = [
    (
        "start",
        "done end finish finished stop complete completed return exit commit abort",
    ),
    ("begin", "end done finish complete commit abort"),
    ("startup", "shutdown"),
    ("entry", "return exit"),
    ("enter", "entered|exit leave return"),
    ("acquire", "acquired|release"),
    ("acquired", "release released"),
    ("lock", "unlock"),
    ("wait", "waited"),
    ("request", "response done"),
    ("send", "reply|done"),
    ("before", "after"),
    ("pre", "post"),
    ("began", "finished"),
    ("connect", "disconnect"),
    ("issue", "complete"),
    ("init", "fini"),
    ("prepare", "finish"),
    ("create", "destroy"),
    ("suspend", "resume"),
];

/// The same for the probes of one provider: in other programs, what is sent is not what is received.
const WORDS_OF: [(&str, &str, &str); 1] = [("sssd", "send", "recv")];

/// Words that, after the whole name of a probe, make the name of its end.
const END_WORDS: [&str; 3] = ["end", "done", "return"];

/// Words that say what lasts, too: they stay in the span's name.
const KEPT_WORDS: [&str; 2] = ["wait", "request"];

/// Events that begin a span, and those that end it, by their places in the list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPair {
    /// Its name: `postgresql:query`.
    pub name: String,
    /// The events that begin the span.
    pub starts: Vec<usize>,
    /// The events that end the span.
    pub dones: Vec<usize>,
    /// The argument, of the same process, that begin and end have in common; `None` for the thread.
    pub key: Option<&'static str>,
}

/// Names of the events that begin a span, and of those that end it.
#[derive(Clone, Copy, Debug)]
pub struct SpanSides<'a> {
    /// The words that begin a span.
    pub starts: &'a [&'a str],
    /// The words that end a span.
    pub dones: &'a [&'a str],
}

impl SpanSides<'_> {
    /// Whether spans need not nest: what is locked first may be unlocked first.
    #[must_use]
    pub fn cross(self) -> bool {
        let all = |events: &[&str], wanted: &[&str]| {
            let mut events = events.iter();
            events.all(|event| {
                let mut words = event.split(|c: char| !c.is_ascii_alphanumeric());
                words.any(|word| wanted.contains(&word))
            })
        };
        all(self.starts, &LOCKING) && all(self.dones, &UNLOCKING)
    }
}

/// Words of probes at which something is locked.
const LOCKING: [&str; 5] = ["acquire", "condacquire", "lock", "acquired", "locked"];
/// Words of probes at which it is unlocked.
const UNLOCKING: [&str; 4] = ["release", "unlock", "released", "unlocked"];

/// Words of probes at which calls begin, which may be within each other at any depth.
const CALLS: [&str; 3] = ["entry", "enter", "call"];

/// Whether an event begins calls, by its name.
#[must_use]
pub fn begins_call(event: &str) -> bool {
    let mut words = event.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| CALLS.contains(&word))
}

/// A probe's name without perf's `sdt_`: `postgresql:query__start`.
#[must_use]
pub fn short_name(event: &str) -> &str {
    event.strip_prefix("sdt_").unwrap_or(event)
}

/// All pairs that are found by names. A name may occur several times.
#[must_use]
pub fn pairs(names: &[&str]) -> Vec<NamedPair> {
    let places = Places::new(names);
    let mut pairs = known(names);
    let begins: HashSet<usize> = pairs.iter().flat_map(|pair| pair.starts.clone()).collect();
    let mut taken: HashSet<String> = pairs.iter().map(|pair| pair.name.clone()).collect();
    let mut ends: HashMap<&str, Option<(String, Vec<usize>)>> = HashMap::new();
    // Indices of pairs by names and ends. Sites with other operands are events of the same name.
    let mut same: HashMap<(String, Vec<usize>), usize> = HashMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        let key = (pair.name.clone(), pair.dones.clone());
        same.entry(key).or_insert(index);
    }
    // The pair of the last event with a name.
    let mut of_name: HashMap<&str, usize> = HashMap::new();
    for (at, event) in names.iter().enumerate() {
        if begins.contains(&at) {
            continue;
        }
        if let Some(pair) = of_name.get(event).and_then(|&pair| pairs.get_mut(pair)) {
            pair.starts.push(at);
            continue;
        }
        let found = ends.entry(event);
        let Some(key) = found.or_insert_with(|| ends_of(&places, event)).clone() else {
            continue;
        };
        if let Some(&index) = same.get(&key) {
            of_name.insert(event, index);
            if let Some(pair) = pairs.get_mut(index) {
                pair.starts.push(at);
            }
            continue;
        }
        let (name, dones) = key;
        let name = match taken.contains(&name) {
            true => short_name(event).to_owned(),
            false => name,
        };
        taken.insert(name.clone());
        same.entry((name.clone(), dones.clone()))
            .or_insert(pairs.len());
        of_name.insert(event, pairs.len());
        pairs.push(NamedPair {
            name,
            starts: vec![at],
            dones,
            key: None,
        });
    }
    add_ends_of_whole_names(names, &places, &mut pairs);
    pairs.sort_by_key(|pair| pair.starts.first().copied());
    pairs
}

/// Places of names in their list: there may be very many.
struct Places<'a>(HashMap<&'a str, Vec<usize>>);

impl<'a> Places<'a> {
    fn new(names: &[&'a str]) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            places.entry(name).or_default().push(at);
        }
        Self(places)
    }

    fn of(&self, name: &str) -> &[usize] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Adds pairs of a probe and one with its whole name and a word for the end: `signal__emit`, `signal__emit__end`.
fn add_ends_of_whole_names(names: &[&str], places: &Places<'_>, pairs: &mut Vec<NamedPair>) {
    let mut ends: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, name) in names.iter().enumerate() {
        for event in begins_of(name).filter(|event| !places.of(event).is_empty()) {
            ends.entry(event).or_default().push(at);
        }
    }
    let mut used: HashSet<usize> = HashSet::new();
    for pair in &*pairs {
        used.extend(&pair.dones);
    }
    let starts: HashSet<usize> = pairs.iter().flat_map(|pair| pair.starts.clone()).collect();
    let mut added: HashMap<&str, usize> = HashMap::new();
    for (at, event) in names.iter().enumerate() {
        let Some(dones) = ends.get(event) else {
            continue;
        };
        // Sites with other operands are events of the same name.
        if let Some(pair) = added.get(event).and_then(|&pair| pairs.get_mut(pair)) {
            pair.starts.push(at);
        } else if !starts.contains(&at) && !dones.iter().any(|done| used.contains(done)) {
            used.extend(dones);
            added.insert(event, pairs.len());
            pairs.push(NamedPair {
                name: short_name(event).to_owned(),
                starts: vec![at],
                dones: dones.clone(),
                key: None,
            });
        }
    }
}

/// The names that a name is the end of by its last word. Of very many `_` between them, the last few may be of the beginning.
fn begins_of(name: &str) -> impl Iterator<Item = &str> {
    const JOINS: usize = 8;
    let words = END_WORDS.iter();
    let rests = words.filter_map(move |word| name.strip_suffix(word));
    rests.flat_map(|rest| {
        // At least one character joins the word; after the first one there are only `_`.
        let joins = rest.len() - rest.trim_end_matches('_').len();
        let of_underscores = (1..=joins.min(JOINS)).map(move |joins| rest.len() - joins);
        let before = &rest[..rest.len() - joins];
        let of_dash = before.strip_suffix('-').map(str::len);
        of_underscores.chain(of_dash).map(move |len| &rest[..len])
    })
}

/// The pairs of well-known programs.
fn known(names: &[&str]) -> Vec<NamedPair> {
    let places = |provider: &str, wanted: &[&str]| -> Vec<usize> {
        let is = |name: &str| {
            let name = short_name(name).split_once(':');
            name.is_some_and(|(of, name)| of == provider && wanted.contains(&name))
        };
        let events = names.iter().enumerate().filter(|(_, name)| is(name));
        events.map(|(at, _)| at).collect()
    };
    let pairs = known_spans().map(|known| NamedPair {
        name: known.name.to_owned(),
        starts: places(known.provider, &known.starts),
        dones: places(known.provider, &known.dones),
        key: known.key,
    });
    pairs
        .filter(|pair| !pair.starts.is_empty() && !pair.dones.is_empty())
        .collect()
}

/// The name of the span that an event may begin, and the events that end it, if there are any.
fn ends_of(places: &Places<'_>, event: &str) -> Option<(String, Vec<usize>)> {
    let words = words(event);
    // The last word that begins something: `lwlock__wait__start` is a wait.
    for (range, word) in words.iter().rev() {
        let own = WORDS_OF.iter().filter(|(provider, begin, _)| {
            let of = short_name(event).split_once(':');
            begin == word && of.is_some_and(|(of, _)| of == *provider)
        });
        let own = own.map(|(.., ends)| *ends);
        let sets = WORDS.iter().filter(|(begin, _)| begin == word);
        for ends in own.chain(sets.flat_map(|(_, sets)| sets.split('|'))) {
            let with = |end: &str| [&event[..range.start], end, &event[range.end..]].concat();
            let wanted: BTreeSet<String> = ends.split(' ').map(with).collect();
            let dones = wanted.iter().flat_map(|name| places.of(name));
            let mut dones: Vec<usize> = dones.copied().collect();
            dones.sort_unstable();
            if dones.is_empty() {
                continue;
            }
            let name = if KEPT_WORDS.contains(word) {
                short_name(event).to_owned()
            } else {
                name_without(event, range.clone())
            };
            return Some((name, dones));
        }
    }
    None
}

/// The words of a probe's name after its provider, with their places.
fn words(event: &str) -> Vec<(Range<usize>, &str)> {
    let from = event.find(':').map_or(0, |colon| colon + 1);
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let mut words = Vec::new();
    let mut rest = &event[from..];
    while let Some(start) = rest.find(is_letter) {
        rest = &rest[start..];
        let (word, after) = rest.split_at(rest.find(|c| !is_letter(c)).unwrap_or(rest.len()));
        let at = event.len() - rest.len();
        words.push((at..at + word.len(), word));
        rest = after;
    }
    words
}

/// The name without one of its words and what joined that to the others: `postgresql:query`.
fn name_without(event: &str, word: Range<usize>) -> String {
    let joins = |c: char| !c.is_ascii_alphanumeric() && c != ':';
    let before = event[..word.start].trim_end_matches(joins);
    let after = event[word.end..].trim_start_matches(joins);
    let name = match (before.ends_with(':') || before.is_empty(), after.is_empty()) {
        (true, true) => event.to_owned(),
        (true, false) => format!("{before}{after}"),
        (false, true) => before.to_owned(),
        (false, false) => format!("{before}__{after}"),
    };
    short_name(&name).to_owned()
}

#[cfg(feature = "schemas")]
#[cfg(test)]
mod tests {
    use crate::schema::bundled;

    use super::*;

    #[test]
    fn words_and_names() {
        let event = "sdt_postgresql:lwlock__wait__start";
        let words = words(event);
        let texts: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
        assert_eq!(texts, ["lwlock", "wait", "start"]);
        let named = |event: &str, word: &str| {
            let (range, _) = super::words(event)
                .into_iter()
                .find(|(_, known)| *known == word)
                .unwrap();
            name_without(event, range)
        };
        assert_eq!(named(event, "start"), "postgresql:lwlock__wait");
        assert_eq!(named("sdt_hs:gc-begin", "begin"), "hs:gc");
        assert_eq!(named("sdt_hs:begin__gc", "begin"), "hs:gc");
        assert_eq!(named("sdt_a:start", "start"), "a:start");
        assert_eq!(named("sdt_a:x__entry__slow", "entry"), "a:x__slow");
    }

    fn named(names: &[&str]) -> Vec<String> {
        let of = |places: &[usize]| {
            let names: Vec<&str> = places.iter().map(|&at| names[at]).collect();
            names.join("|")
        };
        let pairs = pairs(names).into_iter();
        pairs
            .map(|pair| format!("{}: {}..{}", pair.name, of(&pair.starts), of(&pair.dones)))
            .collect()
    }

    #[test]
    fn the_first_set_of_ends_that_is_there_counts() {
        let (enter, entered, exit) = ("a:x__enter", "a:x__entered", "a:x__exit");
        assert_eq!(named(&[enter, exit]), ["a:x: a:x__enter..a:x__exit"]);
        assert_eq!(
            named(&[enter, entered, exit]),
            ["a:x: a:x__enter..a:x__entered"]
        );
        let (acquire, acquired, release) = ("a:l__acquire", "a:l__acquired", "a:l__release");
        assert_eq!(
            named(&[acquire, release]),
            ["a:l: a:l__acquire..a:l__release"]
        );
        assert_eq!(
            named(&[acquire, acquired, release]),
            [
                "a:l: a:l__acquire..a:l__acquired",
                "a:l__acquired: a:l__acquired..a:l__release"
            ]
        );
        let two = ["a:x__start", "a:x__begin", "a:x__return", "a:x__end"];
        let pair = "a:x: a:x__start..a:x__return|a:x__end";
        assert_eq!(named(&two), [pair, "a:x__begin: a:x__begin..a:x__end"]);
        assert_eq!(named(&["a:x__start", "b:x__done"]), [""; 0]);
    }

    /// Two builds of a program have each probe twice.
    #[test]
    fn probes_of_several_files_are_one_pair() {
        let once = ["w:l__acquire", "w:l__acquired", "w:l__release"];
        let expected = [
            "w:l: w:l__acquire|w:l__acquire..w:l__acquired|w:l__acquired",
            "w:l__acquired: w:l__acquired|w:l__acquired..w:l__release|w:l__release",
        ];
        assert_eq!(named(&[once, once].concat()), expected);
        let by_probe = once.map(|name| [name, name]);
        assert_eq!(named(&by_probe.concat()), expected);
    }

    #[test]
    fn ends_of_whole_names() {
        let names = [
            "g:signal__emit",
            "g:signal__emit__end",
            "s:parse",
            "s:parse_done",
            "s:parse_entry",
        ];
        assert_eq!(
            named(&names),
            [
                "g:signal__emit: g:signal__emit..g:signal__emit__end",
                "s:parse: s:parse..s:parse_done"
            ]
        );
        // An end that is known already is no other begin's.
        let names = ["a:query", "a:query__start", "a:query__done"];
        assert_eq!(named(&names), ["a:query: a:query__start..a:query__done"]);
    }

    /// Any file can have very many probes.
    #[test]
    fn very_many_names_are_looked_up() {
        const MANY: usize = 60_000;
        let names = (0..MANY).flat_map(|at| {
            // Some are there very often.
            let name = if at % 3 == 0 { 0 } else { at };
            [
                format!("a:x{name}__start"),
                format!("a:x{name}__done"),
                format!("a:y{name}"),
                format!("a:y{name}__end"),
            ]
        });
        let names: Vec<String> = names.collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let pairs = pairs(&names);
        assert_eq!(pairs.len(), 2 * (1 + MANY / 3 * 2));
        assert_eq!(pairs[0].starts.len(), MANY / 3);
        assert_eq!(pairs[0].dones.len(), MANY / 3);
    }

    #[test]
    fn words_of_one_provider() {
        let names = ["sssd:req_send", "sssd:req_recv", "x:req_send", "x:req_recv"];
        assert_eq!(named(&names), ["sssd:req: sssd:req_send..sssd:req_recv"]);
        let names = [
            "glib:main__before_check",
            "glib:main__after_check",
            "m:began_frame",
            "m:finished_frame",
        ];
        assert_eq!(
            named(&names),
            [
                "glib:main__check: glib:main__before_check..glib:main__after_check",
                "m:frame: m:began_frame..m:finished_frame"
            ]
        );
    }

    #[test]
    fn known_pairs_need_both_sides_and_go_before_words() {
        let lwlock = "postgresql:lwlock: postgresql:lwlock__acquire|postgresql:lwlock__condacquire..postgresql:lwlock__release";
        let names = [
            "postgresql:lwlock__acquire",
            "postgresql:lwlock__condacquire",
            "postgresql:lwlock__release",
        ];
        assert_eq!(named(&names), [lwlock]);
        assert_eq!(named(&["libstdcxx:throw"]), [""; 0]);
    }

    /// The spans of all probes with known arguments, by their names without the provider.
    #[test]
    fn spans_of_well_known_programs() {
        let spans = [
            "hotspot: class__initialization gc mem__pool__gc method method__compile monitor__contended monitor__wait thread \
             thread__park thread__sleep vm__init vmops",
            "hs_private: cms__initmark cms__remark safepoint",
            "libc: mutex mutex_lock pthread_join rdlock wrlock",
            "libpthread: mutex mutex_lock pthread_join rdlock wrlock",
            "libstdcxx: throw",
            "libvirt: rpc_keepalive",
            "mysql: command connection delete delete__row filesort handler__rdlock handler__unlock handler__wrlock \
             index__read__row insert insert__row insert__select keycache__read keycache__write multi__delete \
             multi__update net__read net__write query query__exec query__parse read__row select update update__row",
            "node: gc http__client__request http__server__request net__server__connection",
            "php: compile__file exception execute function request",
            "postgresql: buffer__checkpoint buffer__checkpoint__sync buffer__extend buffer__flush buffer__read \
             buffer__sync buffer__write__dirty checkpoint clog__checkpoint lock__wait lwlock lwlock__wait \
             multixact__checkpoint query query__execute query__parse query__plan query__rewrite smgr__md__read \
             smgr__md__write sort subtrans__checkpoint transaction twophase__checkpoint wal__buffer__write__dirty",
            "python: function gc import__find__load",
            "qemu:",
            "rtld: init map reloc unmap",
            "ruby: cmethod find__require gc__mark gc__sweep load method parse require",
            "usdtrec: gc request",
        ];
        let names: Vec<String> = bundled::all()
            .map(|probe| format!("sdt_{}:{}", probe.provider, probe.name))
            .collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let pairs = pairs(&names);
        for line in spans {
            let (provider, expected) = line.split_once(':').unwrap();
            let of = |pair: &NamedPair| {
                let (of, name) = pair.name.split_once(':').unwrap();
                (of == provider).then(|| name.to_owned())
            };
            let mut found: Vec<String> = pairs.iter().filter_map(of).collect();
            found.sort();
            let expected: Vec<&str> = expected.split_whitespace().collect();
            assert_eq!(found, expected, "{provider}");
        }
        // Every function of JNI returns, but for the one that ends the program.
        let of_jni = |name: &&&str| name.starts_with("sdt_hotspot_jni:");
        let entries = names
            .iter()
            .filter(of_jni)
            .filter(|name| name.ends_with("__entry"));
        let jni = pairs
            .iter()
            .filter(|pair| pair.name.starts_with("hotspot_jni:"));
        assert_eq!(jni.count() + 1, entries.count());
    }
}
