//! Fields of a line: perf script's names.

use usdtrec_format::perf::SampleType;

use crate::trace::session::events::Event;

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Name of the thread.
    Comm,
    /// Thread.
    Tid,
    /// Process.
    Pid,
    /// CPU.
    Cpu,
    /// Time of the trace's clock, or since another line.
    Time,
    /// Time of day.
    Tod,
    /// Period of the event.
    Period,
    /// Name of the event.
    Event,
    /// Arguments, with the address in front as perf has it for tracepoints.
    Args,
    /// Address.
    Ip,
    /// Function at the address.
    Sym,
    /// Distance from the function's start.
    Symoff,
    /// File at the address.
    Dso,
    /// The span that the event ends.
    Span,
    /// Line of source at the address.
    Srcline,
    /// Control group of the process.
    Cgroup,
}

/// Several fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub(crate) u16);

impl Fields {
    /// What perf script shows of a tracepoint.
    pub const TRACEPOINT: Self = Self::of(&[
        Field::Comm,
        Field::Tid,
        Field::Cpu,
        Field::Time,
        Field::Event,
        Field::Args,
    ]);
    /// What perf script shows of an event of another kind.
    pub const OTHER: Self = Self::of(&[
        Field::Comm,
        Field::Tid,
        Field::Cpu,
        Field::Time,
        Field::Period,
        Field::Event,
        Field::Ip,
        Field::Sym,
        Field::Symoff,
        Field::Dso,
    ]);
    /// What JSON and CSV have by default.
    pub const DATA: Self = Self::of(&[
        Field::Time,
        Field::Cpu,
        Field::Pid,
        Field::Tid,
        Field::Comm,
        Field::Event,
        Field::Ip,
        Field::Args,
    ]);

    /// What perf script shows besides where callers are known.
    pub(crate) const PLACE: Self = Self::of(&[Field::Ip, Field::Sym, Field::Symoff, Field::Dso]);

    pub(crate) const fn of(fields: &[Field]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < fields.len() {
            bits |= 1 << fields[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    /// These without others.
    pub(crate) const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// These and others.
    pub(crate) const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether a field is among them.
    #[must_use]
    #[inline]
    pub const fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u16 != 0
    }
}

impl Event {
    /// The fields that its samples can have.
    pub(crate) fn sampled_fields(&self) -> Fields {
        let unsampled = [
            (SampleType::CPU, Field::Cpu),
            (SampleType::TIME, Field::Time),
            (SampleType::TIME, Field::Tod),
        ];
        let lacking = unsampled
            .iter()
            .filter(|(part, _)| !self.attr.sample_type.has(*part))
            .fold(0, |all, (_, field)| all | Fields::of(&[*field]).0);
        Fields(!lacking)
    }
}
