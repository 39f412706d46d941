//! At which events something is done with locks, and what the ends of waits get.

use std::sync::Arc;

use usdtrec_format::schema::{Argument, ArgumentType, LockAction, LockUse, Unit};
use usdtrec_format::{StringAt, Value};
use usdtrec_trace::added::added_argument::{AddedArgument, AddedPlace};
use usdtrec_trace::added::hit_step::LockStep;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::short_name;
use usdtrec_trace::session::events::Event;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::holders::lock_table::{ALL_LOCKS, OWN};
use crate::holders::{CANDIDATE, HOLDER};
use crate::spans::pair_pauses::{PairEvents, PairPauses};
use crate::stats::sketch::content_hash;

/// At which events something is done with locks.
#[derive(Debug, Default)]
pub(crate) struct LockRoles {
    of_event: Vec<Option<LockRole>>,
    /// Where the arguments of all spans have their values.
    of_spans: Arc<[AddedPlace]>,
}

/// What is done at an event.
#[derive(Clone, Debug)]
struct LockRole {
    does: LockUse,
    provider: u64,
    /// Index of the argument that says which lock.
    place: usize,
    /// Whether hits get who held the lock.
    ends_waits: bool,
}

impl LockRoles {
    /// # Errors
    /// [`QuestionError::NoLocks`] if the trace does not have the probes at which a lock is waited for, acquired and released.
    ///
    /// `of_spans` are the arguments of all spans.
    pub(crate) fn new(
        session: &TraceSession,
        of_spans: &[AddedArgument],
    ) -> Result<Self, ReportError> {
        let events = &session.events().events;
        let roles: Vec<Option<LockRole>> = events.iter().map(LockRole::new).collect();
        let has = |of: &LockRole, action| {
            let mut roles = roles.iter().flatten();
            roles.any(|role| {
                role.provider == of.provider
                    && role.does.group == of.does.group
                    && role.does.action == action
            })
        };
        // It is so for all that is done with the lock.
        let is_contended = |of: &LockRole| {
            let mut roles = roles.iter().flatten();
            roles.any(|role| role.provider == of.provider && role.does.contended)
        };
        let of_event = roles.iter().cloned().map(|role| {
            let role = role?;
            // Without a release, it would be held for ever; without a wait, nobody asks.
            let is_whole = has(&role, LockAction::Waits)
                && has(&role, LockAction::Acquires)
                && has(&role, LockAction::Releases);
            is_whole.then(|| LockRole {
                ends_waits: match role.does.action {
                    LockAction::Waited => true,
                    // What has an event for the end of the wait itself is not the lock yet.
                    LockAction::Acquires => !has(&role, LockAction::Waited),
                    LockAction::Waits | LockAction::Releases => false,
                },
                does: LockUse {
                    contended: is_contended(&role),
                    ..role.does
                },
                ..role
            })
        });
        let of_event: Vec<Option<LockRole>> = of_event.collect();
        if of_event.iter().all(Option::is_none) {
            let of_locks = events.iter().filter(|event| event.lock.is_some());
            let known = list(of_locks.map(|event| &*event.name));
            return Err(QuestionError::NoLocks { known }.into());
        }
        Ok(Self {
            of_event,
            of_spans: of_spans.iter().map(|added| added.place).collect(),
        })
    }

    /// Whether something is done with a lock at an event.
    pub(crate) fn has(&self, event: usize) -> bool {
        matches!(self.of_event.get(event), Some(Some(_)))
    }

    /// When a probe at which something is done with a lock was detached.
    pub(crate) fn pauses(&self, session: &TraceSession) -> PairPauses {
        let events = PairEvents {
            number: ALL_LOCKS,
            events: (0..self.of_event.len())
                .filter(|&event| self.has(event))
                .collect(),
        };
        PairPauses::of_events(session, [events].into())
    }

    /// What the hits of an event get of who held the lock: arguments of its own, and those of the spans that it was in.
    pub(crate) fn arguments(&self, event: usize, of_spans: &[AddedArgument]) -> Vec<AddedArgument> {
        let role = self.of_event.get(event).and_then(Option::as_ref);
        let Some(role) = role.filter(|role| role.ends_waits) else {
            return Vec::new();
        };
        let (part, word) = match role.does.group {
            false => (HOLDER, "holder"),
            true => (CANDIDATE, "candidate"),
        };
        let own = OWN.iter().map(|(name, description)| {
            let mut argument = Argument::named(format!("{word}.{name}"));
            argument.description = Some((*description).to_owned());
            let integer = |bytes, signed| Some(ArgumentType::Integer { bytes, signed });
            match *name {
                "comm" => argument.kind = Some(ArgumentType::String(None)),
                "tid" => argument.kind = integer(4, true),
                "others" => argument.kind = integer(4, false),
                _ => {
                    argument.kind = integer(8, false);
                    argument.unit = Some(Unit::Nanoseconds);
                }
            }
            (argument, Vec::new())
        });
        let of_spans = of_spans.iter().map(|of_span| {
            let argument = Argument {
                name: format!("{word}.{}", of_span.argument.name),
                ..of_span.argument.clone()
            };
            (argument, of_span.sources.clone())
        });
        let all = own.chain(of_spans).enumerate();
        all.map(|(index, (argument, sources))| AddedArgument {
            argument,
            place: AddedPlace { part, index },
            sources,
        })
        .collect()
    }

    /// What a hit does with a lock.
    pub(crate) fn step(&self, resolver: &mut Resolver<'_>, hit: Hit<'_>) -> Option<LockStep> {
        let Hit { target, sample } = hit;
        let role = self.of_event.get(target.event as usize)?.as_ref()?;
        let session = resolver.session();
        let site = session.site_of(target, sample)?;
        let key = match resolver.value(site, role.place, sample)? {
            Value::Unsigned(number) => [0, *number],
            Value::Signed(number) => [0, number.cast_unsigned()],
            Value::String(string) => [1, content_hash(&*string.bytes)],
            _ => return None,
        };
        let name = resolver.name(sample.tid, sample.time);
        let comm = session.processes().name_or_number(name, sample.tid);
        Some(LockStep {
            action: role.does.action,
            shared: role.does.shared,
            group: role.does.group,
            contended: role.does.contended,
            of_spans: role.ends_waits.then(|| Arc::clone(&self.of_spans)),
            provider: role.provider,
            key,
            comm: Value::String(StringAt::of_bytes(comm.into_owned().into_bytes())),
        })
    }
}

impl LockRole {
    /// `None` of an event at which nothing is done with locks, or an argument list leaves out which.
    fn new(event: &Event) -> Option<Self> {
        let does = event.lock.clone()?;
        let (provider, _) = short_name(&event.name).split_once(':')?;
        Some(Self {
            place: event.own_argument(&does.lock)?,
            provider: content_hash(provider),
            does,
            ends_waits: false,
        })
    }
}
