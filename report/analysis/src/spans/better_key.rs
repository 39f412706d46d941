//! Which argument matches begins and ends that the thread does not match: they are on different threads.

use foldhash::HashMap;
use foldhash::quality::RandomState;
use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::spans::{argument_place as place, mark};
use usdtrec_format::trace::BlockReader;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::ParsedHit;
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::agreement::in_common;
use crate::spans::pair::Pair;

/// Blocks from the beginning of the trace that are looked at, at most.
const BLOCKS: usize = 8;
/// Hits that are looked at, at most.
const HITS: usize = 4096;
/// Begins without which nothing is said.
const MIN_SPANS: u64 = 3;

/// A begin or an end.
struct Moment {
    time: u64,
    begins: bool,
    /// The mark of each argument.
    marks: Vec<u64>,
}

/// The name of the first argument by which nearly all begins at the beginning of the trace have an end of their own.
pub(crate) fn better_key(session: &TraceSession, pair: &Pair) -> Option<String> {
    let common = in_common(session, pair).into_iter();
    let mut names = common.map(|shared| shared.argument.name.as_str());
    let all: Vec<&str> = names.by_ref().collect();
    let mut moments = moments(session, pair, &all);
    moments.sort_by_key(|moment| moment.time);
    let found = (0..all.len()).find(|&at| matches_most(&moments, at))?;
    all.get(found).map(|name| (*name).to_owned())
}

/// The first begins and ends of a pair.
fn moments(session: &TraceSession, pair: &Pair, names: &[&str]) -> Vec<Moment> {
    let mut moments = Vec::new();
    if names.is_empty() {
        return moments;
    }
    let state = RandomState::default();
    let mut resolver = Resolver::new(session);
    let mut reader = BlockReader::new();
    for block in session.blocks().iter().take(BLOCKS) {
        let Ok(records) = reader.read(session.trace(), &block.block) else {
            continue;
        };
        let samples = Records::new(records).filter(|record| record.kind == RecordType::SAMPLE);
        for record in samples {
            let Some(ParsedHit { target, sample }) = session.sample(record.body) else {
                continue;
            };
            let event = target.event as usize;
            let begins = pair.starts.contains(&event);
            if begins == pair.dones.contains(&event) {
                continue;
            }
            let Some(site) = session.site_of(target, &sample) else {
                continue;
            };
            let Some(event) = session.events().events.get(event) else {
                continue;
            };
            let marks = names.iter().map(|name| {
                let place = place(&event.arguments, name)?;
                let value = resolver.value(site, place, &sample)?;
                Some(mark(value, true, &state))
            });
            let marks = marks.map(Option::unwrap_or_default).collect();
            let time = sample.time;
            moments.push(Moment {
                time,
                begins,
                marks,
            });
            if moments.len() == HITS {
                return moments;
            }
        }
    }
    moments
}

/// Whether nine of ten begins have an end of their own: begins with the same value come one after the other, and not all have the same.
fn matches_most(moments: &[Moment], at: usize) -> bool {
    let mut open: HashMap<u64, u64> = HashMap::default();
    let (mut begun, mut ended, mut apart) = (0_u64, 0_u64, 0_u64);
    for moment in moments {
        let mark = moment.marks.get(at).copied().unwrap_or_default();
        if mark == 0 {
            apart += 1;
            continue;
        }
        let count = open.entry(mark).or_default();
        if moment.begins {
            begun += 1;
            apart += u64::from(*count > 0);
            *count += 1;
        } else if *count > 0 {
            *count -= 1;
            ended += 1;
        } else {
            apart += 1;
        }
    }
    begun >= MIN_SPANS && open.len() > 1 && ended * 10 >= begun * 9 && apart * 10 <= begun
}
