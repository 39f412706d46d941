//! Fields of all samples that expressions name, besides the arguments of a probe.

use usdtrec_format::expr::Datum;

/// A field of a sample, or of its thread or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleField {
    /// Name of the thread.
    Comm,
    /// Process.
    Pid,
    /// Thread.
    Tid,
    /// CPU.
    Cpu,
    /// User of the process.
    Uid,
    /// Something about the process or the thread that only readers know, by its name: a string, or a number.
    ProcessString(&'static str),
}

/// The strings of a sample that are not in it.
#[derive(Clone, Debug)]
pub struct SampleStrings<'a> {
    /// [`SampleField::Comm`]; [`Datum::Missing`] if unknown.
    pub comm: Datum<'a>,
    /// [`SampleField::ProcessString`], by their names; others are unknown.
    pub process: Vec<(&'static str, Datum<'a>)>,
}

impl SampleField {
    /// The fields that are known when a probe is hit.
    pub const OF_HIT: &'static [Self] = &[Self::Comm, Self::Pid, Self::Tid, Self::Cpu, Self::Uid];

    /// The fields of the thread context, as far as it was recorded: ids as hexadecimal digits.
    pub const OF_CONTEXT: &'static [Self] = &[
        Self::ProcessString("trace_id"),
        Self::ProcessString("span_id"),
    ];

    /// The field of this name that is known when a probe is hit.
    #[must_use]
    pub fn of_hit(name: &str) -> Option<Self> {
        let mut fields = Self::OF_HIT.iter();
        fields.find(|field| field.name() == name).copied()
    }

    /// The name in expressions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Comm => "comm",
            Self::Pid => "pid",
            Self::Tid => "tid",
            Self::Cpu => "cpu",
            Self::Uid => "uid",
            Self::ProcessString(name) => name,
        }
    }
}

impl SampleStrings<'_> {
    /// The strings of a sample whose thread and process are not known.
    pub const UNKNOWN: Self = Self {
        comm: Datum::Missing,
        process: Vec::new(),
    };
}
