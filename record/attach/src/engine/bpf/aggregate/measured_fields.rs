//! What programs do with the arguments whose numbers are aggregated.

use usdtrec_decode::{Decoder, IntegerShape, NumberSource};
use usdtrec_format::{RawArgument, RawField, RawLayout};

use crate::aggregation::{Aggregation, Arguments, MeasuredArgument};
use crate::select::probe::PlannedProbe;
use crate::usage_error::{NoNumber, UsageError};

/// An argument of an event whose numbers are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) enum Measured {
    /// Programs read it.
    Read(MeasuredField),
    /// It is the same number at each hit.
    Constant(i128),
    /// It is never known, or the event has no such argument.
    Missing,
    /// The duration of the spans that the event begins.
    Duration,
}

/// How durations are numbers.
pub(super) const DURATION: IntegerShape = IntegerShape {
    bytes: 8,
    signed: false,
};

/// A number that programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct MeasuredField {
    /// Its field in the raw part.
    pub(super) field: RawField,
    /// How the field is a number.
    pub(super) shape: IntegerShape,
    /// Whether the key of the group has it, too.
    pub(super) is_key: bool,
}

/// The measured arguments of an event.
///
/// # Errors
/// [`UsageError::NoNumber`] for strings and floats.
pub(in crate::engine::bpf) fn measured(
    aggregation: &Aggregation,
    probe: &PlannedProbe,
    layout: &RawLayout,
) -> Result<Vec<Measured>, UsageError> {
    let Some(site) = probe.sites.first() else {
        return Ok(Vec::new());
    };
    let decoder = Decoder::from_raw(&site.site.args, probe.arch, layout);
    let decoder = decoder.typed(&probe.arguments);
    let of = Arguments::from_probe(probe);
    let in_keys = aggregation.needed_by_keys(of);
    let places = aggregation
        .measured
        .iter()
        .zip(aggregation.measured_places(of));
    let is_float = |place: usize| {
        let operand = site.operands.get(place);
        !layout.listed && operand.is_some_and(|operand| operand.float)
    };
    let one = |(argument, place): (&MeasuredArgument, Option<usize>)| {
        let Some(place) = place else {
            return Ok(Measured::Missing);
        };
        let refused = |found| {
            Err(UsageError::NoNumber {
                event: probe.event(),
                argument: argument.name.clone(),
                found,
            })
        };
        match (decoder.number_source(place), layout.arguments.get(place)) {
            (NumberSource::String, _) => refused(NoNumber::String),
            (NumberSource::Float, _) => refused(NoNumber::Float),
            // It may be in a register that programs cannot read.
            (NumberSource::Missing, _) if is_float(place) => refused(NoNumber::Float),
            (NumberSource::Constant(number), _) => Ok(Measured::Constant(number)),
            (NumberSource::Field(shape), Some(RawArgument::Field(field))) => {
                Ok(Measured::Read(MeasuredField {
                    field: *field,
                    shape,
                    is_key: in_keys.contains(&place),
                }))
            }
            (NumberSource::Missing | NumberSource::Field(_), _) => Ok(Measured::Missing),
        }
    };
    places.map(one).collect()
}
