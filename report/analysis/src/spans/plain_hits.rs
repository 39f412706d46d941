//! Hits of which a span needs the thread and integer arguments alone, as it does of most: these are read where they are in the record, and nothing
//! else of it is decoded.

use usdtrec_format::perf::Sample;
use usdtrec_format::spans::{Marks, mark_of_number};
use usdtrec_trace::events::site_samples::RawInteger;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::ids::SampleTarget;

use crate::spans::key::{HitKey, SpanKey};
use crate::spans::marks::Agreement;
use crate::spans::role::Role;
use crate::stats::keys::key::KeyWords;

/// What the hits of each site begin and end.
pub(crate) struct PlainHits<'k> {
    /// `None` for a site whose hits need more.
    of_site: Vec<Option<PlainSite<'k>>>,
}

/// The hits of a site.
struct PlainSite<'k> {
    /// Index of the event.
    event: u32,
    roles: Vec<PlainRole<'k>>,
}

/// What a hit begins or ends, with what that needs of it.
pub(crate) struct PlainRole<'k> {
    pub(crate) role: Role,
    agreement: &'k Agreement,
    /// The arguments that must agree.
    arguments: Vec<RawInteger>,
    /// Whether spans end in any order.
    crosses: bool,
}

impl<'k> PlainHits<'k> {
    /// None are plain.
    pub(crate) const fn none() -> Self {
        Self {
            of_site: Vec::new(),
        }
    }

    /// The plain hits of a trace, given the key of each pair and the roles of each event.
    pub(crate) fn new(session: &TraceSession, keys: &'k [SpanKey], roles: &[Vec<Role>]) -> Self {
        let mut of_site = Vec::new();
        of_site.resize_with(session.events().sites.len(), || None);
        for (event, (roles, known)) in roles.iter().zip(&session.events().events).enumerate() {
            for site in known.sites.clone() {
                let decoder = session.events().sites.get(site);
                let integer = |argument| decoder?.decoder.raw_integer(argument);
                let plain = roles.iter().map(|role| {
                    let (agreement, crosses) = match keys.get(role.pair as usize)? {
                        SpanKey::Thread(agreement) => (agreement, false),
                        SpanKey::Crossing(agreement) => (agreement, true),
                        _ => return None,
                    };
                    let plain = PlainRole::new(*role, agreement, event, integer)?;
                    Some(PlainRole { crosses, ..plain })
                });
                if let (Some(roles), Some(place)) = (plain.collect(), of_site.get_mut(site)) {
                    let event = event as u32;
                    *place = Some(PlainSite { event, roles });
                }
            }
        }
        Self { of_site }
    }

    /// Whether there are no plain hits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.of_site.is_empty()
    }

    /// What a hit begins and ends; `None` if that takes more than its record says at known places.
    #[inline]
    pub(crate) fn roles(&self, target: SampleTarget) -> Option<&[PlainRole<'k>]> {
        let site = self.of_site.get(target.site? as usize)?.as_ref()?;
        (site.event == target.event).then_some(&site.roles)
    }
}

impl<'k> PlainRole<'k> {
    /// `None` if an argument is no integer that is compared.
    fn new(
        role: Role,
        agreement: &'k Agreement,
        event: usize,
        integer: impl Fn(usize) -> Option<RawInteger>,
    ) -> Option<Self> {
        let places = agreement.places.get(event).map_or(&[][..], Vec::as_slice);
        let is_plain = places.len() <= Marks::APART && agreement.numbers.iter().all(|are| *are);
        let arguments = places.iter().map(|&place| integer(place));
        Some(Self {
            role,
            agreement,
            crosses: false,
            arguments: arguments.collect::<Option<_>>().filter(|_| is_plain)?,
        })
    }

    /// The key of a hit; `None` if the id is missing.
    #[inline]
    pub(crate) fn key(&self, sample: &Sample<'_>) -> Option<HitKey> {
        let tid = u64::from(sample.tid.cast_unsigned());
        let marks = self.marks(sample.raw);
        Some(match self.crosses {
            true => HitKey {
                words: self.agreement.crossing_words(marks, tid)?,
                marks: Marks::default(),
            },
            false => HitKey {
                words: KeyWords::new(0, tid),
                marks,
            },
        })
    }

    /// The marks of a hit, as [`Agreement::marks`] has them.
    #[inline]
    fn marks(&self, raw: &[u8]) -> Marks {
        let mark = |argument: &RawInteger| {
            let integer = argument.read(raw);
            integer.map_or(0, |integer| {
                mark_of_number(integer.bits, &self.agreement.state)
            })
        };
        let mut marks = Marks::unknown(self.arguments.len()).words();
        match self.arguments.as_slice() {
            [] => return Marks::default(),
            // It stays in a register.
            [only] => marks[0] = mark(only),
            several => {
                for (known, argument) in marks.iter_mut().zip(several) {
                    *known = mark(argument);
                }
            }
        }
        Marks::from_words(marks)
    }
}
