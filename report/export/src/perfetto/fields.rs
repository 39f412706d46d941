//! Numbers of the fields and values of Perfetto's messages (`protos/perfetto/trace` of Perfetto's sources).

/// The one sequence of packets.
pub(crate) const SEQUENCE: u64 = 1;

/// `Trace` and `TracePacket`.
pub(crate) mod packet {
    /// `Trace.packet`.
    pub(crate) const SELF: u32 = 1;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRACK: u32 = 60;
}

/// `TracePacketDefaults`.
pub(crate) mod defaults {
    pub(crate) const CLOCK_ID: u32 = 58;
}

/// `ClockSnapshot`.
pub(crate) mod clock_snapshot {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
}

/// `ClockSnapshot.Clock`.
pub(crate) mod snapshot {
    pub(crate) const CLOCK_ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
}

/// `BuiltinClock`.
pub(crate) mod clock {
    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const MONOTONIC: u64 = 3;
    pub(crate) const MONOTONIC_RAW: u64 = 5;
    pub(crate) const BOOTTIME: u64 = 6;
}

/// `TrackEvent`.
pub(crate) mod track_event {
    pub(crate) const CATEGORIES: u32 = 3;
    pub(crate) const ANNOTATIONS: u32 = 4;
    pub(crate) const KIND: u32 = 9;
    pub(crate) const NAME_ID: u32 = 10;
    pub(crate) const TRACK: u32 = 11;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const FLOWS: u32 = 47;
    pub(crate) const ENDING_FLOWS: u32 = 48;
    pub(crate) const CALLSTACK_ID: u32 = 56;
}

/// `TrackEvent.Type`.
pub(crate) mod event_type {
    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
}

/// `DebugAnnotation`.
pub(crate) mod annotation {
    pub(crate) const NAME_ID: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UNSIGNED: u32 = 3;
    pub(crate) const SIGNED: u32 = 4;
    pub(crate) const FLOAT: u32 = 5;
    pub(crate) const TEXT: u32 = 6;
    pub(crate) const ADDRESS: u32 = 7;
    pub(crate) const ENTRIES: u32 = 11;
}

/// `InternedData`.
pub(crate) mod interned {
    pub(crate) const CATEGORIES: u32 = 1;
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const ANNOTATION_NAMES: u32 = 3;
    pub(crate) const FUNCTION_NAMES: u32 = 5;
    pub(crate) const FRAMES: u32 = 6;
    pub(crate) const CALLSTACKS: u32 = 7;
    pub(crate) const MAPPING_PATHS: u32 = 17;
    pub(crate) const MAPPINGS: u32 = 19;
}

/// `EventName`, `InternedString` and others with a number and a string.
pub(crate) mod name {
    pub(crate) const ID: u32 = 1;
    pub(crate) const TEXT: u32 = 2;
}

/// `Frame`, `Callstack` and `Mapping`; all have their number in field 1.
pub(crate) mod frame {
    pub(crate) const FUNCTION_ID: u32 = 2;
    pub(crate) const MAPPING_ID: u32 = 3;
    pub(crate) const OFFSET: u32 = 4;
    /// `Callstack.frame_ids`.
    pub(crate) const OF_CALLSTACK: u32 = 2;
    /// `Mapping.path_string_ids`.
    pub(crate) const PATH_IDS: u32 = 7;
}

/// `TrackDescriptor`, and what is in it.
pub(crate) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT: u32 = 5;
    pub(crate) const PROCESS_PID: u32 = 1;
    pub(crate) const PROCESS_NAME: u32 = 6;
    pub(crate) const PROCESS_LABELS: u32 = 8;
    pub(crate) const THREAD_PID: u32 = 1;
    pub(crate) const THREAD_TID: u32 = 2;
    pub(crate) const THREAD_NAME: u32 = 5;
}
