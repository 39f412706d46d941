//! The keys of spans for which the question gives no `--key`.

use usdtrec_format::spans::SpanSides;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

use crate::spans::agreement::agreements;
use crate::spans::key::SpanKey;
use crate::spans::pair::Pair;
use crate::stats::keys::key::Key;

/// The key of each pair, if the question gives none.
pub(crate) fn own_keys(pairs: &[Pair], session: &TraceSession, rows: &Rows) -> Vec<SpanKey> {
    let agreements = agreements(session, pairs);
    let both = pairs.iter().zip(agreements);
    both.map(|(pair, agreement)| {
        let known = known_key(pair, session, rows).map(SpanKey::InProcess);
        known.unwrap_or_else(|| match crosses(pair, session) {
            true => SpanKey::Crossing(agreement),
            false => SpanKey::Thread(agreement),
        })
    })
    .collect()
}

/// The argument that both are known to have in common.
fn known_key(pair: &Pair, session: &TraceSession, rows: &Rows) -> Option<Key> {
    let name = pair.key?;
    let has = |event: &Event| event.arguments.iter().any(|known| known.name == name);
    // Without a schema, arguments have no names.
    let all = pair.events(session).all(has);
    all.then(|| Key::parse(name, session, rows).ok())?
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
