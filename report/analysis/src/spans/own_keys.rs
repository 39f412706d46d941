//! The keys of spans for which the question gives no `--key`: the thread, and the arguments in which begin and end agree.
//!
//! An end takes the newest open begin of its thread with which it agrees. Strings and numbers that names call ids must agree where they do at the
//! beginning of the trace ([`agreements`]), and one integer of any name, if it behaves as an id ([`CommonIntegers`]). Who matches all spans need not
//! read the trace once more for that ([`EarlyKeys`]).

use usdtrec_format::spans::SpanSides;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

use crate::spans::agreement::agreements;
use crate::spans::common_integers::{CommonIntegers, Extent};
use crate::spans::durations::PairStats;
use crate::spans::id_evidence::MIN_EQUAL;
use crate::spans::key::SpanKey;
use crate::spans::nesting::is_of_calls;
use crate::spans::pair::Pair;
use crate::spans::walk::Spans;
use crate::stats::keys::key::Key;

/// What the rest of the trace may say of the spans of a pair, by what its beginning says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Later {
    /// Nothing else.
    Same,
    /// They nest by the key, and may cross.
    MayCross,
    /// They have no id, and may have one.
    MayHaveId,
}

/// The keys of pairs as the beginning of the trace says: spans that nest there may cross later.
#[derive(Debug, Default)]
pub(crate) struct EarlyKeys {
    /// The key of each pair.
    pub(crate) keys: Vec<SpanKey>,
    later: Vec<Later>,
}

impl EarlyKeys {
    /// Those of pairs whose spans are to be matched as a filter says, if the question gives none.
    pub(crate) fn find(
        pairs: &[Pair],
        session: &TraceSession,
        filter: &SampleFilter,
        rows: &Rows,
    ) -> Self {
        // Otherwise not all hits of the pairs are matched.
        let extent = match session.is_whole() && filter.is_simple() {
            true => Extent::Beginning,
            false => Extent::Whole,
        };
        let mut integers = integers_of(pairs, session, extent);
        if integers.iter().any(CommonIntegers::may_have_crossed) {
            integers = own_integers(pairs, session);
        }
        Self {
            keys: own_keys_with(pairs, session, rows, &integers),
            later: integers.iter().map(Later::of).collect(),
        }
    }

    /// Keys that are given.
    pub(crate) const fn given(keys: Vec<SpanKey>) -> Self {
        let later = Vec::new();
        Self { keys, later }
    }

    /// Whether the spans that were matched by them cross nowhere in the trace.
    pub(crate) fn hold(&self, spans: &Spans) -> bool {
        let is_in_order = |(later, stats): (&Later, &PairStats)| match later {
            Later::Same => true,
            _ if stats.counts.is_out_of_order || spans.forgotten > 0 => false,
            Later::MayCross => true,
            Later::MayHaveId => stats.counts.nesting.ended() < MIN_EQUAL,
        };
        self.later.iter().zip(&spans.pair_stats).all(is_in_order)
    }
}

impl Later {
    fn of(integers: &CommonIntegers) -> Self {
        match (integers.may_cross_later, integers.id()) {
            (false, _) => Self::Same,
            (true, Some(_)) => Self::MayCross,
            (true, None) => Self::MayHaveId,
        }
    }
}

/// The key of each pair, if the question gives none.
pub(crate) fn own_keys(pairs: &[Pair], session: &TraceSession, rows: &Rows) -> Vec<SpanKey> {
    let integers = own_integers(pairs, session);
    own_keys_with(pairs, session, rows, &integers)
}

/// The integers of pairs that may be their ids, with what the trace says of them.
pub(crate) fn own_integers(pairs: &[Pair], session: &TraceSession) -> Vec<CommonIntegers> {
    integers_of(pairs, session, Extent::Whole)
}

fn integers_of(pairs: &[Pair], session: &TraceSession, extent: Extent) -> Vec<CommonIntegers> {
    let has_no_key = |pair: &Pair| known_key(pair, session).is_none();
    CommonIntegers::survey(session, pairs, extent, has_no_key)
}

/// The key of each pair, given its integers.
pub(crate) fn own_keys_with(
    pairs: &[Pair],
    session: &TraceSession,
    rows: &Rows,
    integers: &[CommonIntegers],
) -> Vec<SpanKey> {
    let agreements = agreements(session, pairs);
    let all = pairs.iter().zip(agreements).zip(integers);
    all.map(|((pair, mut agreement), integers)| {
        let known = known_key(pair, session);
        let known = known.and_then(|name| Key::parse(name, session, rows).ok());
        if let Some(key) = known {
            return SpanKey::InProcess(key);
        }
        let is_lock = crosses(pair, session);
        let Some(id) = integers.id() else {
            return match is_lock {
                true => SpanKey::Crossing(agreement),
                false => SpanKey::Thread(agreement),
            };
        };
        let is_known = agreement.names.contains(&id.name);
        let should_nest = is_known || is_of_calls(pair, session);
        agreement.add_id(&id.name, &id.places);
        if is_lock {
            return SpanKey::Crossing(agreement);
        }
        if !id.evidence.crosses(should_nest) {
            return SpanKey::Thread(agreement);
        }
        agreement.keep_id();
        SpanKey::Crossing(agreement)
    })
    .collect()
}

/// The argument that both are known to have in common.
fn known_key(pair: &Pair, session: &TraceSession) -> Option<&'static str> {
    let name = pair.key?;
    let has = |event: &Event| event.arguments.iter().any(|known| known.name == name);
    // Without a schema, arguments have no names.
    pair.events(session).all(has).then_some(name)
}

/// Whether its spans need not nest: what is locked first may be unlocked first.
pub(crate) fn crosses(pair: &Pair, session: &TraceSession) -> bool {
    let names = |events: &[usize]| -> Vec<&str> {
        let events = events.iter();
        let events = events.filter_map(|&event| session.events().events.get(event));
        events.map(|event| &*event.name).collect()
    };
    let sides = SpanSides {
        starts: &names(&pair.starts),
        dones: &names(&pair.dones),
    };
    sides.cross()
}
