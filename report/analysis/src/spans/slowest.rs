//! The hits with which the slowest spans began, read once more.

use usdtrec_format::perf::{RecordType, Records};
use usdtrec_format::trace::BlockReader;
use usdtrec_format::{Missing, Value};
use usdtrec_trace::added::added_argument::{AddedArgument, AddedValues};
use usdtrec_trace::events::order::place::SamplePlace;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::ParsedHit;
use usdtrec_trace::session::hit_context::HitContext;
use usdtrec_trace::session::resolver::Resolver;

use crate::holders::FIRST_SPAN;
use crate::spans::durations::SlowSpan;
use crate::stats::keys::stack::CallStack;
use crate::stats::keys::stacks::Stacks;

/// The event that began one of the slowest spans.
#[derive(Clone, Debug, Default)]
pub struct SlowBegin {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// Name of the thread, escaped.
    pub comm: String,
    /// Name of the event.
    pub event: String,
    /// Its arguments; and of a wait for a lock, who held that meanwhile, which the event that ends it has.
    pub arguments: Vec<SlowArgument>,
    /// The functions that led to it; `None` if the event has no stacks, or none are requested.
    pub stack: Option<CallStack>,
    /// File offset of the block that it is in.
    pub offset: u64,
}

/// An argument of it.
#[derive(Clone, Debug)]
pub struct SlowArgument {
    /// Its name.
    pub name: String,
    /// How its value is shown.
    pub form: Form,
    /// Its value.
    pub value: Value,
}

/// Whether stacks of the events are requested: finding their functions may mean to read the files of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BeginStacks {
    Without,
    With,
}

/// The events that began these spans; empty if the file cannot be read any more.
pub(crate) fn begins(
    session: &TraceSession,
    slowest: &[SlowSpan],
    stacks: BeginStacks,
) -> Vec<SlowBegin> {
    let mut found = vec![SlowBegin::default(); slowest.len()];
    let mut wanted: Vec<(SamplePlace, usize)> = slowest
        .iter()
        .enumerate()
        .map(|(at, slow)| (slow.begin.0, at))
        .collect();
    wanted.sort_unstable();
    let Some(&(last, _)) = wanted.last() else {
        return found;
    };
    let mut resolver = Resolver::new(session);
    let mut reader = BlockReader::new();
    let blocks = session.blocks().iter().enumerate();
    for (index, block) in blocks.take(last.block as usize + 1) {
        let of_block = |&(place, _): &(SamplePlace, usize)| place.block as usize == index;
        let mut due = wanted.iter().copied().filter(of_block).peekable();
        // A file that is one stream is read from its beginning on.
        if due.peek().is_none() && !session.trace().is_serial() {
            continue;
        }
        let Ok(records) = reader.read(session.trace(), &block.block) else {
            continue;
        };
        for record in Records::new(records).filter(|record| record.kind == RecordType::SAMPLE) {
            while due
                .peek()
                .is_some_and(|(place, _)| (place.offset as usize) < record.offset)
            {
                due.next();
            }
            while let Some((_, at)) =
                due.next_if(|(place, _)| place.offset as usize == record.offset)
            {
                let added = slowest.get(at).and_then(|slow| slow.added.as_ref());
                resolver.set_context(HitContext { path: None, added });
                if let (Some(found), Some(begin)) =
                    (found.get_mut(at), begin(&mut resolver, record.body, stacks))
                {
                    *found = begin;
                    found.offset = block.block.offset;
                    let end = slowest.get(at).and_then(|slow| slow.end_added.as_ref());
                    if let Some(end) = end {
                        found.arguments.extend(holders(session, end));
                    }
                }
            }
        }
    }
    found
}

/// The holder of the lock that was waited for, as the end of the wait says.
fn holders(session: &TraceSession, end: &AddedValues) -> Vec<SlowArgument> {
    let mut found: Vec<SlowArgument> = Vec::new();
    let added = session
        .events()
        .events
        .iter()
        .flat_map(|event| &event.added);
    for AddedArgument {
        argument, place, ..
    } in added.filter(|added| added.place.part < FIRST_SPAN)
    {
        let value = end.value(*place);
        let is_known = found.iter().any(|known| known.name == argument.name);
        if !is_known && value != Value::Missing(Missing::Absent) {
            found.push(SlowArgument {
                name: argument.name.clone(),
                form: Form::new(argument),
                value,
            });
        }
    }
    found
}

fn begin(resolver: &mut Resolver<'_>, body: &[u8], stacks: BeginStacks) -> Option<SlowBegin> {
    let session = resolver.session();
    let ParsedHit { target, sample } = session.sample(body)?;
    let event = session.events().events.get(target.event as usize)?;
    let comm = resolver.name(sample.tid, sample.time);
    let processes = session.processes();
    let values = match session.site_of(target, &sample) {
        Some(site) => resolver.values(site, &sample),
        None => &[],
    };
    let arguments = event.arguments.iter().zip(values);
    let arguments = arguments.map(|(argument, value)| SlowArgument {
        name: argument.name.clone(),
        form: Form::new(argument),
        value: value.clone(),
    });
    let arguments = arguments.collect();
    let has_stack = stacks == BeginStacks::With && event.has_chain();
    let stack = has_stack.then(|| {
        let parts = resolver.stack(target, &sample);
        Stacks::default().names(parts, session)
    });
    Some(SlowBegin {
        pid: sample.pid,
        tid: sample.tid,
        comm: processes.name_or_number(comm, sample.tid).into_owned(),
        event: event.name.clone(),
        arguments,
        stack,
        offset: 0,
    })
}
