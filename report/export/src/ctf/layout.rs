//! What the files of a trace consist of: what the metadata says (`tsdl.rs`). Packets and events are written in this order (`packets.rs`, `mod.rs`).
//!
//! Tests compare every value that babeltrace2 reads.

use usdtrec_analysis::origin::Origin;
use usdtrec_trace::session::TraceSession;

use crate::argument_parts::ArgumentPart;
use crate::ctf::event_classes::{ClassField, EventClass, FieldType};
use crate::ctf::field_layout::{FieldKind, FieldLayout, FieldRole};
use crate::ctf::field_names::FieldNames;
use crate::ctf::packets::StreamKey;

/// What all packets begin with.
pub(crate) const PACKET_HEADER: [FieldRole; 2] = [FieldRole::Magic, FieldRole::StreamClass];

/// Where the trace is from.
pub(crate) fn environment(session: &TraceSession) -> [(&'static str, String); 8] {
    let origin = Origin::new(session);
    [
        ("hostname", origin.host),
        ("sysname", "Linux".to_owned()),
        ("kernel_release", origin.kernel),
        ("machine", origin.machine),
        ("tracer_name", "usdtrec".to_owned()),
        ("producer", origin.producer),
        ("command", origin.command.join(" ")),
        // A text: it can be beyond the integers that readers have.
        ("lost_events", origin.lost.to_string()),
    ]
}

/// The clock of all times, whose cycles are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockLayout {
    pub(crate) name: &'static str,
    /// Where it begins; `None` if that is not known.
    pub(crate) origin: Option<ClockOrigin>,
}

/// Time from 1970 until a clock was 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockOrigin {
    pub(crate) seconds: i64,
    /// Less than a second.
    pub(crate) nanoseconds: u32,
}

impl ClockLayout {
    pub(crate) fn new(session: &TraceSession) -> Self {
        const SECOND: i128 = 1_000_000_000;
        let clock = session.info().clock;
        let name = match clock.map(|clock| clock.id) {
            Some(0) => "realtime",
            Some(1) => "monotonic",
            Some(4) => "monotonic_raw",
            Some(7) => "boottime",
            _ => "trace_clock",
        };
        let known = clock.filter(|clock| clock.wall_ns != 0);
        let origin = known.map(|known| {
            // At most 2^64 ns, which are less than 2^35 seconds.
            let offset = i128::from(known.wall_ns) - i128::from(known.clock_ns);
            ClockOrigin {
                seconds: offset.div_euclid(SECOND) as i64,
                nanoseconds: offset.rem_euclid(SECOND) as u32,
            }
        });
        Self { name, origin }
    }
}

/// The packets of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamLayout {
    pub(crate) class: u32,
    /// What is between the header of a packet and its events.
    pub(crate) context: Vec<FieldLayout>,
    /// What its events begin with; `None` if it has none.
    pub(crate) events: Option<EventHead>,
}

/// What an event begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventHead {
    pub(crate) header: [FieldLayout; 2],
    pub(crate) context: [FieldLayout; 3],
}

impl EventHead {
    fn new() -> Self {
        let field = FieldLayout::new;
        Self {
            header: [FieldRole::EventClass, FieldRole::EventTime].map(FieldLayout::from),
            context: [
                field("pid", FieldKind::Id),
                field("tid", FieldKind::Id),
                field("comm", FieldKind::Value(FieldType::Text)),
            ],
        }
    }
}

impl StreamLayout {
    /// All stream classes.
    pub(crate) fn all() -> [Self; 3] {
        [StreamKey::Cpu(0), StreamKey::NoCpu, StreamKey::Losses].map(Self::new)
    }

    fn new(stream: StreamKey) -> Self {
        let mut context: Vec<FieldLayout> = [
            FieldRole::PacketBegin,
            FieldRole::PacketEnd,
            FieldRole::ContentSize,
            FieldRole::PacketSize,
        ]
        .map(FieldLayout::from)
        .into();
        match stream {
            StreamKey::Cpu(_) => context.push(FieldLayout::new("cpu_id", FieldKind::Count)),
            StreamKey::NoCpu => {}
            StreamKey::Losses => context.push(FieldRole::LostEvents.into()),
        }
        Self {
            class: stream.class(),
            context,
            events: (stream != StreamKey::Losses).then(EventHead::new),
        }
    }
}

/// The events of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventLayout<'a> {
    pub(crate) name: &'a str,
    /// Its stream class.
    pub(crate) stream: u32,
    pub(crate) fields: Vec<FieldLayout>,
}

impl<'a> EventLayout<'a> {
    /// Fields have the names of their arguments, as far as the format allows. `None` if the trace has no such event.
    pub(crate) fn new(session: &'a TraceSession, class: &EventClass) -> Option<Self> {
        let mut names = FieldNames::default();
        let event = session.events().events.get(class.event)?;
        let arguments = event.arguments.iter();
        let arguments: Vec<String> = arguments
            .map(|argument| names.name(&argument.name))
            .collect();
        let mut fields = Vec::with_capacity(class.fields.len());
        for field in &class.fields {
            let Some(argument) = arguments.get(field.argument as usize) else {
                continue;
            };
            let name = match suffix(field) {
                None => argument.clone(),
                Some(suffix) => names.name(&format!("{argument}_{suffix}")),
            };
            fields.push(FieldLayout::new(name, FieldKind::Value(field.kind)));
        }
        if event.has_chain() {
            let count = names.name("stack_length");
            let stack = names.name("stack");
            fields.push(FieldLayout::new(count.clone(), FieldKind::Count));
            fields.push(FieldLayout::new(stack, FieldKind::Texts { count }));
        }
        let stream = match event.has_cpu() {
            true => StreamKey::Cpu(0),
            false => StreamKey::NoCpu,
        };
        Some(Self {
            name: &event.name,
            stream: stream.class(),
            fields,
        })
    }
}

/// What follows the name of the argument in that of a field.
const fn suffix(field: &ClassField) -> Option<&'static str> {
    match field.part {
        ArgumentPart::Value => None,
        ArgumentPart::Missing => Some("missing"),
        ArgumentPart::Number => Some("number"),
        ArgumentPart::Demangled => Some("demangled"),
        ArgumentPart::Cut => Some("cut"),
        ArgumentPart::Bytes => Some("bytes"),
    }
}
