//! The integers that begins and ends of spans have in common, and which of them behave as ids: one walk over the trace, in the order of time.
//!
//! In common are arguments of one name, and those without a name or with different names at one place. What has a unit or words for its values is an
//! amount or a state. A pair of probes is decided when enough of its hits were seen, unless its spans nest by the id so far: one that crosses another
//! may come late: whether all nest is seen in the whole trace, here or when they are matched ([`Extent`]). A stream cannot be known before it ends: there, no integer is an id.

use std::borrow::Cow;

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_format::schema::Argument;
use usdtrec_format::spans::{common_id, common_place, may_be_id};
use usdtrec_trace::events::notices::SpanOverlap;
use usdtrec_trace::events::order::{Window, in_plain_order};
use usdtrec_trace::events::selection::{EventSelection, SampleFilter};
use usdtrec_trace::events::site_samples::RawInteger;
use usdtrec_trace::pool::Pool;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::{Hit, ParsedHit};
use usdtrec_trace::session::resolver::Resolver;

use crate::spans::id_evidence::{BegunValues, IdEvidence, IdLane};
use crate::spans::pair::Pair;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::role::Role;

/// Integers of a pair that are looked at.
const MAX_INTEGERS: usize = 6;
/// Threads of a pair that are looked at.
const MAX_THREADS: usize = 1 << 14;
/// Hits of a pair after which it is decided.
const ENOUGH_HITS: u64 = 1 << 16;

/// An integer that all begins and ends of a pair have.
#[derive(Clone, Debug)]
struct CommonInteger {
    /// Its name, that of a begin.
    name: String,
    /// The name by which all events of the pair have it.
    key: String,
    /// Its place in each event of the pair.
    places: HashMap<usize, usize>,
    evidence: IdEvidence,
}

/// How much of a trace is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Until each pair has [`ENOUGH_HITS`], or is decided, or all have twice as many.
    Beginning,
    /// All of it for pairs whose spans nest.
    Whole,
}

/// The integers that begins and ends of a pair have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonIntegers {
    integers: Vec<CommonInteger>,
    /// Whether the trace was not read to its end, and what comes later may show that spans cross.
    pub(crate) may_cross_later: bool,
    /// Whether hits were lost.
    is_lossy: bool,
}

/// The integer that behaves as an id.
#[derive(Clone, Debug)]
pub(crate) struct SpanId {
    /// Its name, that of a begin.
    pub(crate) name: String,
    /// The name by which all events of the pair have it.
    pub(crate) key: String,
    /// Its place in each event of the pair.
    pub(crate) places: HashMap<usize, usize>,
    /// What the trace says of it.
    pub(crate) evidence: IdEvidence,
}

impl CommonIntegers {
    /// The integers of each pair, with the evidence in the trace for pairs for which `of` is true.
    pub(crate) fn survey(
        session: &TraceSession,
        pairs: &[Pair],
        extent: Extent,
        of: impl Fn(&Pair) -> bool,
    ) -> Vec<Self> {
        let is_stream = session.blocks().is_empty();
        let known = pairs.iter().map(|pair| match !is_stream && of(pair) {
            true => Self::of_pair(session, pair),
            false => Self::default(),
        });
        let mut all: Vec<Self> = known.collect();
        if all.iter().any(|of_pair| !of_pair.integers.is_empty()) {
            read(session, pairs, extent, &mut all);
        }
        all
    }

    fn of_pair(session: &TraceSession, pair: &Pair) -> Self {
        let events = pair.starts.iter().chain(&pair.dones).copied();
        let events: Vec<(usize, &[Argument])> = events
            .filter_map(|at| Some((at, session.events().events.get(at)?.own_arguments())))
            .collect();
        let Some((_, first)) = events.first() else {
            return Self::default();
        };
        let lists: Vec<&[Argument]> = events.iter().map(|(_, arguments)| *arguments).collect();
        let integers = first.iter().enumerate().filter_map(|(at, argument)| {
            let places = events.iter().map(|(event, arguments)| {
                let place = common_place(arguments, argument, at)?;
                arguments.get(place).filter(|known| may_be_id(known))?;
                Some((*event, place))
            });
            let name = &argument.name;
            Some(CommonInteger {
                key: common_id(&lists, at).map_or_else(|| name.clone(), Cow::into_owned),
                name: name.clone(),
                places: places.collect::<Option<_>>()?,
                evidence: IdEvidence::default(),
            })
        });
        let lost = session
            .losses()
            .lost_of(|event| pair.starts.contains(&event) || pair.dones.contains(&event));
        Self {
            integers: integers.take(MAX_INTEGERS).collect(),
            is_lossy: lost.is_none_or(|lost| lost > 0),
            may_cross_later: false,
        }
    }

    /// Adds what another recording says of the same integers.
    pub(crate) fn add(&mut self, other: &Self) {
        self.is_lossy |= other.is_lossy;
        for integer in &mut self.integers {
            let mut others = other.integers.iter();
            if let Some(known) = others.find(|known| known.name == integer.name) {
                integer.evidence.add(known.evidence);
            }
        }
    }

    /// The one that behaves as an id, if one does.
    pub(crate) fn id(&self) -> Option<SpanId> {
        let ids = self.integers.iter();
        let ids = ids.filter(|integer| integer.evidence.is_id(self.is_lossy));
        let best = ids.min_by_key(|integer| integer.evidence.rank())?;
        Some(SpanId {
            name: best.name.clone(),
            key: best.key.clone(),
            places: best.places.clone(),
            evidence: best.evidence,
        })
    }

    /// Whether no further hits are needed.
    fn is_decided(&mut self, hits: u64, extent: Extent) -> bool {
        if hits < ENOUGH_HITS {
            return false;
        }
        let nests = self.id().is_some_and(|id| !id.evidence.crosses(true));
        self.may_cross_later = nests && extent == Extent::Beginning;
        !nests || self.may_cross_later
    }

    /// Whether spans cross by an id for or against which more hits may be evidence.
    pub(crate) fn may_have_crossed(&self) -> bool {
        self.may_cross_later && self.id().is_some_and(|id| id.evidence.crosses(true))
    }
}

/// A hit that begins or ends a span.
struct IntegerHit {
    pair: usize,
    begins: bool,
    tid: i32,
    time: u64,
    values: [Option<u64>; MAX_INTEGERS],
}

/// Reads the integers of a site's hits.
enum IntegerSource {
    /// At a place in the record.
    Raw(RawInteger),
    /// By decoding.
    Place(usize),
}

/// The open spans of a thread.
#[derive(Default)]
struct ThreadLanes {
    lanes: [IdLane; MAX_INTEGERS],
    /// Time of its latest hit, ns.
    latest: u64,
}

/// What was seen of a pair.
struct SeenPair {
    extent: Extent,
    threads: HashMap<i32, ThreadLanes>,
    values: [BegunValues; MAX_INTEGERS],
    hits: u64,
    is_decided: bool,
}

/// No further hits are read.
struct ReadEnough;

/// Walks over the trace.
fn read(session: &TraceSession, pairs: &[Pair], extent: Extent, all: &mut [CommonIntegers]) {
    // It selects all, so that no name can be wrong.
    let Ok(filter) = SampleFilter::new(&EventSelection::default(), session) else {
        return;
    };
    let roles = roles(session, pairs, all);
    let filter = filter.relaxed(|event| roles.get(event).is_some_and(|roles| !roles.is_empty()));
    let sources = Sources::new(session, &roles, all);
    let resolvers = Pool::default();
    let show = |window: Window<'_>| {
        let resolver = resolvers.take();
        let mut resolver = resolver.unwrap_or_else(|| Resolver::new(session));
        let mut hits = Vec::new();
        for body in window.bodies() {
            let Some(ParsedHit { target, sample }) = session.sample(body) else {
                continue;
            };
            let hit = Hit {
                target,
                sample: &sample,
            };
            let roles = roles.get(target.event as usize).into_iter().flatten();
            hits.extend(roles.map(|role| sources.hit(*role, &mut resolver, hit)));
        }
        resolvers.put(resolver);
        hits
    };
    let pauses = PairPauses::new(session, pairs);
    let mut seen: Vec<SeenPair> = Vec::new();
    seen.resize_with(pairs.len(), || SeenPair::new(extent));
    for (seen, integers) in seen.iter_mut().zip(&*all) {
        seen.is_decided = integers.integers.is_empty();
    }
    let mut left = match extent {
        Extent::Beginning => 2 * ENOUGH_HITS,
        Extent::Whole => u64::MAX,
    };
    // What is damaged is reported where the hits are shown.
    let _ = in_plain_order(session, &filter, show, |hits: Vec<IntegerHit>| {
        for hit in hits {
            if left == 0 {
                return Err(ReadEnough);
            }
            if let (Some(seen), Some(integers)) = (seen.get_mut(hit.pair), all.get_mut(hit.pair)) {
                seen.take(&hit, integers, &pauses);
                left -= 1;
            }
        }
        match seen.iter().all(|seen| seen.is_decided) {
            true => Err(ReadEnough),
            false => Ok(()),
        }
    });
    for (seen, integers) in seen.iter_mut().zip(all) {
        if left == 0 && !seen.is_decided {
            integers.may_cross_later = true;
        }
        seen.settle(integers);
    }
}

/// What the events of pairs with integers begin and end.
fn roles(session: &TraceSession, pairs: &[Pair], all: &[CommonIntegers]) -> Vec<Vec<Role>> {
    let mut roles = Role::from_pairs(pairs, session.events().events.len());
    for roles in &mut roles {
        roles.retain(|role| {
            let of_pair = all.get(role.pair as usize);
            of_pair.is_some_and(|of_pair| !of_pair.integers.is_empty())
        });
    }
    roles
}

/// Watches the spans of a stream, which are matched before it is known whether an integer is their id.
#[derive(Default)]
pub(crate) struct IdWatch {
    names: Vec<String>,
    integers: Vec<CommonIntegers>,
    roles: Vec<Vec<Role>>,
    sources: Sources,
    seen: Vec<SeenPair>,
}

impl std::fmt::Debug for IdWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdWatch").finish_non_exhaustive()
    }
}

impl IdWatch {
    /// The integers of the pairs for which `of` is true.
    pub(crate) fn new(session: &TraceSession, pairs: &[Pair], of: impl Fn(&Pair) -> bool) -> Self {
        let integers = pairs.iter().map(|pair| match of(pair) {
            true => CommonIntegers::of_pair(session, pair),
            false => CommonIntegers::default(),
        });
        let integers: Vec<CommonIntegers> = integers.collect();
        let roles = roles(session, pairs, &integers);
        let mut seen = Vec::new();
        seen.resize_with(pairs.len(), || SeenPair::new(Extent::Whole));
        Self {
            names: pairs.iter().map(|pair| pair.name.clone()).collect(),
            sources: Sources::new(session, &roles, &integers),
            integers,
            roles,
            seen,
        }
    }

    /// Takes the next hit.
    #[inline]
    pub(crate) fn take(&mut self, resolver: &mut Resolver<'_>, hit: Hit<'_>) {
        let roles = self.roles.get(hit.target.event as usize);
        for role in roles.into_iter().flatten() {
            let pair = role.pair as usize;
            if let (Some(seen), Some(integers)) =
                (self.seen.get_mut(pair), self.integers.get_mut(pair))
                && !seen.is_decided
            {
                let hit = self.sources.hit(*role, resolver, hit);
                seen.take(&hit, integers, &PairPauses::default());
            }
        }
    }

    /// The spans that overlap on their threads, by an integer that behaves as an id.
    pub(crate) fn overlaps(&mut self) -> Vec<SpanOverlap> {
        let all = self
            .names
            .iter()
            .zip(&mut self.seen)
            .zip(&mut self.integers);
        let overlaps = all.filter_map(|((name, seen), integers)| {
            seen.settle(integers);
            let id = integers.id()?;
            id.evidence.crosses(false).then(|| SpanOverlap {
                span: name.clone(),
                argument: id.key,
            })
        });
        overlaps.collect()
    }
}

fn integer(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Unsigned(number) => Some(*number),
        Value::Signed(number) => Some(number.cast_unsigned()),
        _ => None,
    }
}

impl SeenPair {
    fn new(extent: Extent) -> Self {
        Self {
            extent,
            threads: HashMap::default(),
            values: Default::default(),
            hits: 0,
            is_decided: false,
        }
    }

    fn take(&mut self, hit: &IntegerHit, integers: &mut CommonIntegers, pauses: &PairPauses) {
        if self.is_decided {
            return;
        }
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&hit.tid) {
            return;
        }
        let thread = self.threads.entry(hit.tid).or_default();
        let latest = std::mem::replace(&mut thread.latest, hit.time);
        let was_paused = !pauses.is_empty()
            && latest > 0
            && pauses.between(hit.pair as u32, latest, hit.time).is_some();
        let lanes = thread.lanes.iter_mut().zip(&mut self.values);
        let lanes = lanes.zip(hit.values).zip(&mut integers.integers);
        for (((lane, begun), value), integer) in lanes {
            if was_paused {
                *lane = IdLane::default();
            }
            match hit.begins {
                true => lane.begin(value, begun, &mut integer.evidence),
                false => lane.end(value, &mut integer.evidence),
            }
        }
        self.hits += 1;
        if self.hits.is_power_of_two() && integers.is_decided(self.hits, self.extent) {
            self.settle(integers);
        }
    }

    /// No further hits are needed.
    fn settle(&mut self, integers: &mut CommonIntegers) {
        self.is_decided = true;
        for (_, mut thread) in std::mem::take(&mut self.threads) {
            let lanes = thread.lanes.iter_mut().zip(&mut integers.integers);
            lanes.for_each(|(lane, integer)| lane.settle(&mut integer.evidence));
        }
    }
}

/// Where the hits of each site have the integers of each pair.
#[derive(Default)]
struct Sources {
    of_site: Vec<Vec<SiteSource>>,
}

/// Where the hits of a site have the integers of a pair.
struct SiteSource {
    pair: u32,
    sources: Vec<IntegerSource>,
}

impl Sources {
    fn new(session: &TraceSession, roles: &[Vec<Role>], all: &[CommonIntegers]) -> Self {
        let sites = &session.events().sites;
        let mut of_site = Vec::new();
        of_site.resize_with(sites.len(), Vec::new);
        for (event, (roles, known)) in roles.iter().zip(&session.events().events).enumerate() {
            for site in known.sites.clone() {
                let decoder = sites.get(site).map(|site| &site.decoder);
                let of_pair = |pair: u32| {
                    let integers = all.get(pair as usize).map_or(&[][..], |all| &all.integers);
                    let sources = integers.iter().map(|integer| {
                        let place = integer.places.get(&event).copied().unwrap_or(usize::MAX);
                        let raw = decoder.and_then(|decoder| decoder.raw_integer(place));
                        raw.map_or(IntegerSource::Place(place), IntegerSource::Raw)
                    });
                    SiteSource {
                        pair,
                        sources: sources.collect(),
                    }
                };
                if let Some(of_site) = of_site.get_mut(site) {
                    *of_site = roles.iter().map(|role| of_pair(role.pair)).collect();
                }
            }
        }
        Self { of_site }
    }

    /// A hit with its integers.
    fn hit(&self, role: Role, resolver: &mut Resolver<'_>, hit: Hit<'_>) -> IntegerHit {
        let Hit { target, sample } = hit;
        let mut values = [None; MAX_INTEGERS];
        if let Some(site) = resolver.session().site_of(target, sample) {
            for (value, source) in values.iter_mut().zip(self.of(site, role.pair)) {
                *value = match source {
                    IntegerSource::Raw(integer) => {
                        integer.read(sample.raw).map(|integer| integer.bits)
                    }
                    IntegerSource::Place(place) => integer(resolver.value(site, *place, sample)),
                };
            }
        }
        IntegerHit {
            pair: role.pair as usize,
            begins: role.begins,
            tid: sample.tid,
            time: sample.time,
            values,
        }
    }

    fn of(&self, site: usize, pair: u32) -> &[IntegerSource] {
        let of_site = self.of_site.get(site).map_or(&[][..], Vec::as_slice);
        let of_pair = of_site.iter().find(|of_pair| of_pair.pair == pair);
        of_pair.map_or(&[], |of_pair| &of_pair.sources)
    }
}
