//! An event of a trace.

use std::cell::RefCell;

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_analysis::summary::probe::type_words;
use usdtrec_format::perf::SampleType;
use usdtrec_trace::fields::process_fields;
use usdtrec_trace::form::Form;
use usdtrec_trace::process::names::EscapedName;
use usdtrec_trace::process::process_field::ProcessValue;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::event_name::{bare_name, short_name};
use usdtrec_trace::session::events::Event;

use crate::rows::row_argument::{ArgumentFormat, RowArgument};
use crate::rows::row_stack::RowStack;

/// What rows are about.
#[derive(Debug)]
pub(crate) struct RowContext<'s> {
    session: &'s TraceSession,
    /// Of each event, its arguments.
    formats: Vec<Vec<ArgumentFormat>>,
    /// Names of files in stacks.
    stacks: RefCell<Stacks>,
}

/// An event: a hit of a probe.
#[derive(Clone, Copy, Debug)]
pub struct RowEvent<'r> {
    context: &'r RowContext<'r>,
    event: &'r Event,
    hit: RowHit<'r>,
    pub(crate) has_no_begin: bool,
}

impl<'s> RowContext<'s> {
    pub(crate) fn new(session: &'s TraceSession) -> Self {
        let events = session.events().events.iter().enumerate();
        let formats = events.map(|(at, event)| {
            let kinds = type_words(session, at);
            let arguments = event.arguments.iter().zip(kinds);
            let formats = arguments.map(|(argument, kind)| ArgumentFormat {
                form: Form::new(argument).plain(),
                kind,
            });
            formats.collect()
        });
        Self {
            session,
            formats: formats.collect(),
            stacks: RefCell::default(),
        }
    }
}

impl<'r> RowEvent<'r> {
    /// `None` for an event that the trace does not have.
    pub(crate) fn new(context: &'r RowContext<'r>, hit: RowHit<'r>) -> Option<Self> {
        let event = context.session.events().events.get(hit.row.event)?;
        Some(Self {
            context,
            event,
            hit,
            has_no_begin: false,
        })
    }

    /// Name of the event: `sdt_PROVIDER:NAME` of a probe.
    #[must_use]
    pub fn name(&self) -> &'r str {
        &self.event.name
    }

    /// The provider; `None` if the event's name has none.
    #[must_use]
    pub fn provider(&self) -> Option<&'r str> {
        let (provider, _) = short_name(&self.event.name).split_once(':')?;
        Some(provider)
    }

    /// Name of the probe without its provider.
    #[must_use]
    pub fn probe(&self) -> &'r str {
        bare_name(short_name(&self.event.name))
    }

    /// Time on the trace's clock, ns; `None` if the event's samples have none.
    #[must_use]
    pub fn time_ns(&self) -> Option<u64> {
        let has_time = self.event.attr.sample_type.has(SampleType::TIME);
        has_time.then_some(self.hit.row.time)
    }

    /// Time by the wall clock, ns since 1970; `None` without a time, if the trace does not say what time of day it was, and beyond 64 bits.
    #[must_use]
    pub fn wall_ns(&self) -> Option<i64> {
        let times = self.context.session.wall_times()?;
        i64::try_from(times.wall(self.time_ns()?)).ok()
    }

    /// CPU; `None` if the event's samples have none.
    #[must_use]
    pub const fn cpu(&self) -> Option<u32> {
        self.hit.row.cpu
    }

    /// Process.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.hit.row.pid
    }

    /// Thread.
    #[must_use]
    pub const fn tid(&self) -> i32 {
        self.hit.row.tid
    }

    /// Name of the thread, not escaped; `None` if the trace has none.
    #[must_use]
    pub fn comm(&self) -> Option<&'r str> {
        let name = self.context.session.processes().name(self.hit.row.comm?);
        name.map(EscapedName::unescaped)
    }

    /// Fields about the process by their names: the path of its control group (`cgroup`), its container (`container`). `None` for
    /// one that the trace does not have, or that the process does not have. These two are those at the first hit of the process.
    pub fn process_fields(
        &self,
    ) -> impl Iterator<Item = (&'static str, Option<ProcessValue<'r>>)> + use<'r> {
        let session = self.context.session;
        let process = &self.hit.row.process;
        process_fields()
            .map(move |(_, field)| (field.name, session.process_value(field, process).ok()))
    }

    /// Address of the hit in the process.
    #[must_use]
    pub const fn ip(&self) -> u64 {
        self.hit.row.ip
    }

    /// Whether it ends a span whose begin is not known.
    #[must_use]
    pub const fn has_no_begin(&self) -> bool {
        self.has_no_begin
    }

    /// The arguments in their order.
    pub fn arguments(&self) -> impl Iterator<Item = RowArgument<'r>> + use<'r> {
        let formats = self.context.formats.get(self.hit.row.event);
        let arguments = self
            .event
            .arguments
            .iter()
            .zip(formats.into_iter().flatten());
        let values = self.hit.values.iter();
        arguments
            .zip(values)
            .map(|((argument, format), value)| RowArgument {
                argument,
                format,
                value,
            })
    }

    /// An argument by its name, or as `arg1`, `arg2`, …; `None` if the event has no such argument.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<RowArgument<'r>> {
        self.arguments().nth(self.event.argument(name)?)
    }

    /// The stack; `None` if none was recorded, or none was requested ([`RowQuestion::stacks`](usdtrec_analysis::rows::row_walk::RowQuestion::stacks)).
    #[must_use]
    pub fn stack(&self) -> Option<RowStack> {
        if self.hit.stack.is_empty() {
            return None;
        }
        let mut stacks = self.context.stacks.borrow_mut();
        let named = stacks.names(self.hit.stack, self.context.session);
        Some(RowStack::new(named))
    }
}
