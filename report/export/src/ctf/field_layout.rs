//! A field of the streams: its name, its type, and what it is to readers.

use crate::ctf::event_classes::FieldType;

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldLayout {
    pub(crate) name: String,
    pub(crate) kind: FieldKind,
}

/// What a field consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// What readers need to find and to order events.
    Role(FieldRole),
    /// A value.
    Value(FieldType),
    /// A number that is no value of an argument.
    Count,
    /// A number that can be negative, and is no value of an argument.
    Id,
    /// Texts, as many as another field of the structure says.
    Texts { count: String },
}

/// What a field is to readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldRole {
    Magic,
    StreamClass,
    PacketBegin,
    PacketEnd,
    ContentSize,
    PacketSize,
    LostEvents,
    EventClass,
    EventTime,
}

impl FieldRole {
    /// The name of its field. Readers know the role by it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Magic => "magic",
            Self::StreamClass => "stream_id",
            Self::PacketBegin => "timestamp_begin",
            Self::PacketEnd => "timestamp_end",
            Self::ContentSize => "content_size",
            Self::PacketSize => "packet_size",
            Self::LostEvents => "events_discarded",
            Self::EventClass => "id",
            Self::EventTime => "timestamp",
        }
    }

    /// Its size.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Magic | Self::StreamClass | Self::EventClass => 32,
            _ => 64,
        }
    }

    /// Whether it is a time of the clock.
    pub(crate) const fn is_time(self) -> bool {
        matches!(self, Self::PacketBegin | Self::PacketEnd | Self::EventTime)
    }
}

impl From<FieldRole> for FieldLayout {
    fn from(role: FieldRole) -> Self {
        Self::new(role.name(), FieldKind::Role(role))
    }
}

impl FieldLayout {
    pub(crate) fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}
