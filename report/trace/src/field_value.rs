//! The values of the fields of a hit, and what they are got from.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use usdtrec_format::escape::escape_bytes;
use usdtrec_format::perf::{Sample, SampleType};
use usdtrec_format::{HexId, SourceLine};

use crate::process::names::{EscapedName, NameId};
use crate::process::process_field::{NONE, ProcessFacts, ProcessField, ProcessValue};
use crate::session::events::Event;
use crate::session::hit::Hit;
use crate::session::resolver::Resolver;
use crate::symbols::Symbol;
use crate::symbols::known_inlining::FoundInlining;

/// What perf prints where it knows nothing.
pub const UNKNOWN: &str = "[unknown]";

/// A hit whose fields are requested.
#[derive(Debug)]
pub struct FieldSource<'h, 's> {
    /// Looks up what the sample does not have itself.
    pub resolver: &'h mut Resolver<'s>,
    /// The hit.
    pub hit: Hit<'h>,
    /// What was known of its thread and process when it was read, if that was before.
    pub known: Option<ThreadFacts>,
}

/// What the trace says of a thread and its process at a time.
#[derive(Clone, Copy, Debug)]
pub struct ThreadFacts {
    /// What the thread is called.
    pub comm: Option<NameId>,
    /// Facts about the process.
    pub process: ProcessFacts,
}

/// The value of a field.
#[derive(Clone, Debug)]
pub enum FieldValue<'v> {
    /// By the trace's clock, ns.
    Time(u64),
    /// A time of the same clock that is shown as time of day, ns.
    TimeOfDay(u64),
    /// A number.
    Signed(i64),
    /// A number.
    Unsigned(u64),
    /// An address.
    Address(u64),
    /// Bytes from the start of a function.
    Offset(u64),
    /// A string, not escaped.
    Text(Cow<'v, str>),
    /// An id.
    Id(HexId),
    /// A file.
    Path(&'v Path),
    /// A line of source.
    Source(&'v SourceLine),
}

/// Gets the value of a field from a hit; else what text shows in its place.
pub type GetField =
    for<'v, 'h, 's> fn(&'v mut FieldSource<'h, 's>) -> Result<FieldValue<'v>, &'static str>;

impl FieldValue<'_> {
    /// The string, not escaped unless it is not UTF-8; `None` for a number.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Id(id) => id.as_str().into(),
            Self::Path(path) => match path.to_str() {
                Some(text) => text.into(),
                None => escape_bytes(path.as_os_str().as_bytes()),
            },
            Self::Source(source) => source.to_string().into(),
            _ => return None,
        })
    }
}

impl<'h, 's> FieldSource<'h, 's> {
    pub(crate) const fn sample(&self) -> &'h Sample<'h> {
        self.hit.sample
    }

    fn event(&self) -> Option<&'s Event> {
        let events = &self.resolver.session().events().events;
        events.get(self.hit.target.event as usize)
    }

    fn has(&self, part: SampleType) -> bool {
        self.event()
            .is_some_and(|event| event.attr.sample_type.has(part))
    }

    /// Its time, ns.
    pub fn time(&self) -> Result<u64, &'static str> {
        match self.has(SampleType::TIME) {
            true => Ok(self.sample().time),
            false => Err(NONE),
        }
    }

    pub(crate) fn cpu(&self) -> Result<FieldValue<'s>, &'static str> {
        match self.has(SampleType::CPU) {
            true => Ok(FieldValue::Unsigned(self.sample().cpu.into())),
            false => Err(NONE),
        }
    }

    pub(crate) fn comm(&mut self) -> FieldValue<'s> {
        let Sample { tid, time, .. } = *self.sample();
        let id = match self.known {
            Some(known) => known.comm,
            None => self.resolver.name(tid, time),
        };
        let name = id.and_then(|id| self.resolver.session().processes().name(id));
        FieldValue::Text(match name.map(EscapedName::unescaped) {
            Some(name) => name.into(),
            None => format!(":{tid}").into(),
        })
    }

    pub(crate) fn process(&mut self, field: &ProcessField) -> Result<FieldValue<'s>, &'static str> {
        let process = match self.known {
            Some(known) => known.process,
            None => self.resolver.process(self.hit.sample),
        };
        let value = self.resolver.session().process_value(field, &process)?;
        Ok(match value {
            ProcessValue::String(name) => FieldValue::Text(name.unescaped().into()),
            ProcessValue::Id(id) => FieldValue::Id(id),
            ProcessValue::Number(number) => FieldValue::Unsigned(number),
        })
    }

    pub(crate) fn event_name(&self) -> Result<FieldValue<'s>, &'static str> {
        let event = self.event().ok_or(NONE)?;
        Ok(FieldValue::Text(Cow::Borrowed(&event.name)))
    }

    pub(crate) fn symbol(&mut self) -> Result<&Symbol, &'static str> {
        let place = self.resolver.place(self.hit.sample);
        place.symbol.as_ref().ok_or(UNKNOWN)
    }

    pub(crate) fn file(&mut self) -> Result<FieldValue<'s>, &'static str> {
        let mappings = self.resolver.session().mappings();
        let file = self.resolver.place(self.hit.sample).file;
        let file = file.and_then(|file| mappings.file(file)).ok_or(UNKNOWN)?;
        Ok(FieldValue::Path(&file.path))
    }

    pub(crate) fn source(&mut self) -> Result<FieldValue<'_>, &'static str> {
        let (_, found) = self.resolver.inlining_of_hit(self.hit.sample);
        let source = found.and_then(FoundInlining::innermost);
        source.map(FieldValue::Source).ok_or("")
    }

    pub(crate) fn weight(&self) -> FieldValue<'s> {
        let session = self.resolver.session();
        FieldValue::Unsigned(session.weight(self.hit.target, self.hit.sample))
    }
}
