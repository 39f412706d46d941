//! The fields of a line in their order, and their values.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::field_value::{FieldSource, FieldValue};
use usdtrec_trace::fields::{FIELDS, Field, FieldSpec, FieldValues, Fields};
use usdtrec_trace::session::TraceSession;

use crate::script::options::ScriptOptions;
use crate::script::times::{TimeDifference, TimeOrigin, TimesOfDay, WallClock};
use crate::text::buffer::Text;

/// A field of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineField {
    Of(&'static FieldSpec),
    /// The time, counted from another line.
    Since(TimeOrigin),
}

/// The value of a field of a line.
pub(crate) enum LineValue<'v> {
    Of(FieldValue<'v>),
    Since(TimeDifference),
}

/// All that have a column in CSV, in their order.
pub(crate) fn columns() -> impl Iterator<Item = &'static FieldSpec> {
    let has_column = |spec: &&FieldSpec| !matches!(spec.values, FieldValues::Several);
    FIELDS.iter().filter(has_column)
}

impl LineField {
    /// The fields of each hit in lines of data, in the order of columns.
    pub(crate) fn of_hits(options: &ScriptOptions) -> Vec<Self> {
        let fields = options.data_fields();
        let is_event = options.spans.is_none();
        let is_shown = |spec: &&FieldSpec| {
            fields.has(spec.field) && (is_event || Fields::OF_SIDES.has(spec.field))
        };
        let since = options.times.name().map(|_| Self::Since(options.times));
        let all = columns().filter(is_shown).flat_map(|spec| {
            let since = since.filter(|_| is_event && spec.field == Field::Time);
            [Some(Self::Of(spec)), since].into_iter().flatten()
        });
        all.collect()
    }

    /// The clock by which data show times of day; `None` if no field does.
    pub(crate) fn utc_clock(
        fields: &[Self],
        session: &TraceSession,
    ) -> Result<Option<WallClock>, ReportError> {
        let is_tod = |field: &Self| matches!(field, Self::Of(spec) if spec.field == Field::Tod);
        let has_tod = fields.iter().any(is_tod);
        has_tod.then(|| WallClock::utc(session)).transpose()
    }

    /// What it is called in JSON and CSV.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Of(spec) => spec.column,
            Self::Since(times) => times.name().unwrap_or_default(),
        }
    }

    /// The value of a hit; else what text shows in its place.
    #[inline]
    pub(crate) fn value<'v>(
        self,
        hit: &'v mut FieldSource<'_, '_>,
        before: PreviousTimes,
    ) -> Result<LineValue<'v>, &'static str> {
        match self {
            Self::Of(spec) => spec.value(hit).map(LineValue::Of),
            Self::Since(times) => {
                let time = hit.time()?;
                Ok(LineValue::Since(times.difference(time, before)))
            }
        }
    }
}

impl LineValue<'_> {
    /// Appends it as data: strings by `string`, and what else is no number between two of `quote`.
    #[inline]
    pub(crate) fn put(
        &self,
        quote: &[u8],
        times_of_day: &mut Option<TimesOfDay<'_>>,
        string: impl FnOnce(&str, &mut Text),
        out: &mut Text,
    ) {
        let value = match self {
            Self::Of(value) => value,
            Self::Since(since) => return out.since_ns(*since),
        };
        match value {
            FieldValue::Time(number)
            | FieldValue::Unsigned(number)
            | FieldValue::Offset(number) => out.unsigned(*number),
            FieldValue::Signed(number) => out.signed(*number),
            FieldValue::Address(address) => {
                out.bytes(quote);
                out.fixed(b"0x");
                out.hex(*address);
                out.bytes(quote);
            }
            FieldValue::TimeOfDay(time) => {
                out.bytes(quote);
                if let Some(times_of_day) = times_of_day {
                    times_of_day.put(*time, 9, out);
                }
                out.byte(b'Z');
                out.bytes(quote);
            }
            text => string(&text.text().unwrap_or_default(), out),
        }
    }
}
