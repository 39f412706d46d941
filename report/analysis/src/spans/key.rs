//! What the beginning and the end of a span have in common.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use usdtrec_format::perf::Sample;
use usdtrec_format::spans::Marks;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::marks::Agreement;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::keys::key::{Key, KeyWords};

/// What the beginning and the end of a span have in common.
#[derive(Clone, Debug)]
pub(crate) enum SpanKey {
    /// The thread. An end belongs to its newest begin with the same values of these arguments.
    Thread(Agreement),
    /// The thread and these arguments, in any order: what is locked first may be released first, and a thread may serve several requests at once.
    Crossing(Agreement),
    /// Values, of any thread.
    Values(Vec<Key>, RandomState),
    /// A value that means something within its process.
    InProcess(Key),
}

/// The key of a hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HitKey {
    pub(crate) words: KeyWords,
    pub(crate) marks: Marks,
}

impl Default for SpanKey {
    fn default() -> Self {
        Self::Thread(Agreement::default())
    }
}

impl SpanKey {
    /// Values, of any thread.
    pub(crate) fn values(keys: Vec<Key>) -> Self {
        Self::Values(keys, RandomState::default())
    }

    /// Hashes as the key that the pair had before: begins of spans that are open are compared with ends to come.
    pub(crate) fn continue_from(&mut self, former: &Self) {
        match (self, former) {
            (
                Self::Thread(agreement) | Self::Crossing(agreement),
                Self::Thread(former) | Self::Crossing(former),
            ) => agreement.state = former.state.clone(),
            (Self::Values(_, state), Self::Values(_, former)) => *state = former.clone(),
            _ => {}
        }
    }

    /// Its name for `--key`.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Thread(_) | Self::Crossing(_) => "tid".to_owned(),
            Self::Values(keys, _) => keys.iter().map(Key::name).collect::<Vec<_>>().join(","),
            Self::InProcess(key) => key.name().to_owned(),
        }
    }

    /// The arguments that begin and end have in common beside the key.
    pub(crate) fn agreed(&self) -> &[String] {
        match self {
            Self::Thread(agreement) | Self::Crossing(agreement) => &agreement.names,
            _ => &[],
        }
    }

    /// Whether begin and end have the same value of an argument of this name.
    pub(crate) fn is_same(&self, name: &str) -> bool {
        let is = |key: &Key| matches!(key, Key::Argument(known, ..) if known == name);
        match self {
            Self::Thread(agreement) | Self::Crossing(agreement) => {
                agreement.names.iter().any(|known| known == name)
            }
            Self::Values(keys, _) => keys.iter().any(is),
            Self::InProcess(key) => is(key),
        }
    }

    /// Whether most samples have the same key as the sample before.
    pub(crate) fn is_coarse(&self) -> bool {
        match self {
            Self::Thread(_) => true,
            Self::Values(keys, _) => keys.iter().all(|key| matches!(key, Key::Pid | Key::Tid)),
            _ => false,
        }
    }

    /// The words of a thread; `None` if its hits have others.
    pub(crate) fn words_of_thread(&self, tid: i32) -> Option<KeyWords> {
        let thread = KeyWords::new(0, u64::from(tid.cast_unsigned()));
        match self {
            Self::Thread(_) => Some(thread),
            Self::Values(keys, _) if matches!(keys[..], [Key::Tid]) => Some(thread.by_number()),
            _ => None,
        }
    }

    /// The key of a hit; `None` if a value is missing.
    // Inlined, the key of most, which is the thread alone, stays in registers.
    #[inline(always)]
    pub(crate) fn hit_key(
        &self,
        rows: &Rows,
        resolver: &mut Resolver<'_>,
        hit: Hit<'_>,
        dictionary: &Dictionary,
    ) -> Option<HitKey> {
        match self {
            Self::Thread(agreement) if agreement.is_empty() => Some(HitKey {
                words: KeyWords::new(0, u64::from(hit.sample.tid.cast_unsigned())),
                marks: Marks::default(),
            }),
            _ => self.key_of_values(rows, resolver, hit, dictionary),
        }
    }

    /// The same where it takes values of arguments, or other fields.
    fn key_of_values(
        &self,
        rows: &Rows,
        resolver: &mut Resolver<'_>,
        Hit { target, sample }: Hit<'_>,
        dictionary: &Dictionary,
    ) -> Option<HitKey> {
        let tid = u64::from(sample.tid.cast_unsigned());
        let words = match self {
            Self::Thread(agreement) => {
                return Some(HitKey {
                    words: KeyWords::new(0, tid),
                    marks: agreement.marks(resolver, target, sample),
                });
            }
            Self::Crossing(agreement) => {
                agreement.crossing_words(agreement.marks(resolver, target, sample), tid)?
            }
            Self::Values(keys, state) => {
                let mut words = keys.iter().map(|key| {
                    let words = key.words(rows, resolver, target, sample, dictionary);
                    with_string(key, words, sample, resolver, state)
                });
                let first = words.next().filter(|words| words.is_distinct())?;
                let mut all = first;
                for more in words {
                    // Without a value, or with a string that was not stored, it could be of any span.
                    if !more.is_distinct() {
                        return None;
                    }
                    all = KeyWords {
                        kind: state.hash_one((all, more)),
                        word: state.hash_one((more, all, 1_u8)),
                    };
                }
                all
            }
            Self::InProcess(key) => {
                let words = key.words(rows, resolver, target, sample, dictionary);
                if !words.is_distinct() {
                    return None;
                }
                KeyWords {
                    kind: words.kind | u64::from(sample.pid.cast_unsigned()) << 32,
                    ..words
                }
            }
        };
        Some(HitKey {
            words,
            marks: Marks::default(),
        })
    }
}

/// The words of a value. Names may become known, and change, between the begin and the end of a span: a process is its number. Of a stream, whose
/// names get other numbers when some are forgotten, a thread's name is its hash.
fn with_string(
    key: &Key,
    words: KeyWords,
    sample: &Sample<'_>,
    resolver: &mut Resolver<'_>,
    state: &RandomState,
) -> KeyWords {
    let processes = resolver.session().processes();
    match key {
        Key::Pid => return words.by_number(),
        Key::Comm if processes.renumbers_names() => {}
        _ => return words,
    }
    let name = resolver.name(sample.tid, sample.time);
    let Some(name) = name.and_then(|name| processes.name(name)) else {
        return words;
    };
    KeyWords {
        word: state.hash_one(name.unescaped()),
        ..words
    }
}
