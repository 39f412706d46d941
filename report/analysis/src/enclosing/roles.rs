//! At which events spans of the parts begin and end, and by what begin and end are matched.

use std::sync::Arc;

use usdtrec_format::{Missing, Value};
use usdtrec_trace::added::added_argument::AddedArgument;
use usdtrec_trace::added::hit_step::{BegunStep, SpanStep};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::enclosing::parts::{Parts, places};
use crate::holders::FIRST_SPAN;
use crate::spans::key::{HitKey, SpanKey};
use crate::spans::nesting::is_of_calls;
use crate::spans::own_keys::{crosses, own_keys};
use crate::spans::pair::Pair;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::role::Role;
use crate::stats::keys::dictionary::Dictionary;
use crate::stats::sketch::content_hash;

/// At which events spans begin and end.
#[derive(Debug)]
pub(crate) struct SpanRoles {
    /// Of each event, what it is to which pair.
    roles: Vec<Vec<Role>>,
    pairs: Vec<RolePair>,
    /// When the probes of pairs were detached, by the numbers of the pairs.
    pub(crate) pauses: PairPauses,
    rows: Rows,
    dictionary: Dictionary,
}

/// A pair of probes.
#[derive(Debug)]
struct RolePair {
    /// Its number in steps: the same when events were added to a stream.
    number: u32,
    part: usize,
    key: SpanKey,
    /// Of each event that begins a span, where the arguments of the part are.
    places: Vec<BeginPlaces>,
    is_of_calls: bool,
    /// Whether its spans overlap on their threads, by an id.
    is_overlapping: bool,
}

/// Where an event that begins a span has the arguments of its part.
#[derive(Debug)]
struct BeginPlaces {
    event: usize,
    places: Vec<Option<usize>>,
}

impl SpanRoles {
    /// # Errors
    /// [`QuestionError::NotOfThread`] if spans of one thread are in no order, so that it is not known which of them encloses a hit.
    pub(crate) fn new(
        parts: &Parts,
        of_parts: &[Vec<AddedArgument>],
        session: &TraceSession,
    ) -> Result<Self, ReportError> {
        let rows = Rows::new(session, |_| true);
        let all = parts.parts.iter().enumerate();
        let all = all.flat_map(|(at, part)| part.pairs.iter().map(move |pair| (at, pair)));
        let (of_pair, pairs): (Vec<usize>, Vec<Pair>) =
            all.map(|(at, pair)| (at, pair.clone())).unzip();
        let keys = own_keys(&pairs, session, &rows);
        let mut all = Vec::new();
        for ((pair, part), key) in pairs.iter().zip(of_pair).zip(keys) {
            if let SpanKey::InProcess(key) = &key
                && !crosses(pair, session)
            {
                return Err(QuestionError::NotOfThread {
                    span: pair.name.clone(),
                    key: key.name().to_owned(),
                }
                .into());
            }
            let of_event = |&event: &usize| BeginPlaces {
                event,
                places: of_parts
                    .get(part)
                    .map_or_else(Vec::new, |of_part| places(of_part, event)),
            };
            let is_overlapping = matches!(key, SpanKey::Crossing(_)) && !crosses(pair, session);
            all.push(RolePair {
                number: content_hash((&pair.name, pair.starts.first())) as u32,
                part: FIRST_SPAN + part,
                key,
                places: pair.starts.iter().map(of_event).collect(),
                is_of_calls: is_of_calls(pair, session),
                is_overlapping,
            });
        }
        let numbered = all.iter().map(|pair| pair.number).zip(&pairs);
        Ok(Self {
            pauses: PairPauses::of_numbered(session, numbered),
            roles: Role::from_pairs(&pairs, session.events().events.len()),
            pairs: all,
            rows,
            dictionary: Dictionary::hashing(),
        })
    }

    /// Whether there are no spans.
    pub(crate) const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Whether spans begin or end at an event.
    pub(crate) fn has(&self, event: usize) -> bool {
        self.roles.get(event).is_some_and(|roles| !roles.is_empty())
    }

    /// The numbers of pairs, and whether each is of calls.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (u32, bool)> {
        let pairs = self.pairs.iter();
        pairs.map(|pair| (pair.number, pair.is_of_calls))
    }

    /// The numbers of pairs whose spans overlap on their threads, by an id.
    pub(crate) fn overlapping(&self) -> impl Iterator<Item = u32> {
        let pairs = self.pairs.iter().filter(|pair| pair.is_overlapping);
        pairs.map(|pair| pair.number)
    }

    /// What a hit begins and ends; `with_values` says whether begins have the values of their arguments.
    pub(crate) fn steps(
        &self,
        resolver: &mut Resolver<'_>,
        hit: Hit<'_>,
        with_values: bool,
    ) -> Vec<SpanStep> {
        let roles = self.roles.get(hit.target.event as usize);
        let mut steps = Vec::new();
        for role in roles.into_iter().flatten() {
            let Some(pair) = self.pairs.get(role.pair as usize) else {
                continue;
            };
            let of_hit = pair
                .key
                .hit_key(&self.rows, resolver, hit, &self.dictionary);
            let Some(HitKey { words, marks }) = of_hit else {
                continue;
            };
            let values = |resolver: &mut Resolver<'_>| match with_values {
                true => pair.values(resolver, hit),
                false => Vec::new(),
            };
            steps.push(SpanStep {
                pair: pair.number,
                part: pair.part,
                key: [words.kind, words.word],
                marks: marks.words(),
                begin: role.begins.then(|| BegunStep {
                    values: Arc::from(values(resolver)),
                    is_call: pair.is_of_calls,
                }),
            });
        }
        steps
    }
}

impl RolePair {
    /// The values of the part's arguments at a hit that begins a span.
    fn values(&self, resolver: &mut Resolver<'_>, Hit { target, sample }: Hit<'_>) -> Vec<Value> {
        let mut events = self.places.iter();
        let Some(places) = events.find(|known| known.event == target.event as usize) else {
            return Vec::new();
        };
        let site = resolver.session().site_of(target, sample);
        let values = site.map(|site| resolver.values(site, sample));
        let value = |place: &Option<usize>| match (place, values) {
            (None, _) => Value::Missing(Missing::Absent),
            (Some(_), None) => Value::Missing(Missing::Operand("site not known".to_owned())),
            (Some(place), Some(values)) => {
                let value = values.get(*place).cloned();
                value.unwrap_or(Value::Missing(Missing::Absent))
            }
        };
        places.places.iter().map(value).collect()
    }
}
