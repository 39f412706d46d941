//! The layout of a sample's raw part from what is captured of each operand.

use usdtrec_format::schema::{Argument, ArgumentType, Length};
use usdtrec_format::{
    RawArgument, RawField, RawLayout, RawLength, RawString, ThreadContext, ThreadWaits,
};

use super::capture::Capture;
use super::read::{Read, Source};

/// Which strings are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    /// Maximum length of a string, bytes; 0 for no strings.
    pub limit: u16,
    /// Whether every unsigned argument of pointer size is a string. Otherwise it is one if it looks like a string.
    pub known: bool,
}

impl Strings {
    /// The memory that is read at the address in an argument. Bytes are read only if their number is known.
    fn for_argument(self, argument: &Argument, read: &Read, has_length: bool) -> Self {
        match &argument.kind {
            Some(ArgumentType::Bytes(_)) if !has_length => Self::default(),
            Some(ArgumentType::String(_) | ArgumentType::Bytes(_))
                if matches!(read.size, 4 | 8) =>
            {
                Self {
                    known: true,
                    ..self
                }
            }
            None if read.pointer && argument.labels.is_none() => self,
            _ => Self::default(),
        }
    }
}

/// What of the thread is recorded beside the arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfThread {
    /// The thread context.
    pub context: bool,
    /// How long it has waited.
    pub waits: bool,
}

/// The layout of the fields. The engine sets `id`. If the type of an argument is known, it determines whether a string is read.
pub(crate) fn layout(
    captures: &[Capture],
    strings: Strings,
    known: &[Argument],
    of_thread: OfThread,
) -> RawLayout {
    let strings_of = |place: usize, read: &Read| match known.get(place) {
        Some(argument) => {
            strings.for_argument(argument, read, length(argument, captures, known).is_some())
        }
        None if read.pointer => strings,
        None => Strings::default(),
    };
    let mut arguments: Vec<RawArgument> = captures
        .iter()
        .enumerate()
        .map(|(place, capture)| match capture {
            Capture::Constant => RawArgument::Constant,
            Capture::Value(
                read @ Read {
                    source: Source::Number(_),
                    ..
                },
            ) if strings_of(place, read).limit == 0 => RawArgument::Constant,
            Capture::Nothing(reason) => RawArgument::NotCaptured {
                reason: reason.to_string(),
            },
            Capture::Value(read) => RawArgument::Field(field(read, strings_of(place, read))),
        })
        .collect();
    let mut fields = fields(&mut arguments);
    fields.sort_by_key(|field| std::cmp::Reverse(field.size));
    let mut end = Room(RawLayout::FIELDS);
    let waits = of_thread.waits;
    let thread_waits = waits.then(|| end.take_words(ThreadWaits::BYTES));
    let context = of_thread.context;
    let thread_context = context.then(|| end.take_words(ThreadContext::BYTES));
    let mut faults = 0;
    for field in &mut fields {
        field.offset = end.take(field.size.into());
        if field.fault.is_some() {
            field.fault = Some(faults);
            // All arguments from the last bit on share it.
            faults = (faults + 1).min(31);
        }
    }
    for string in fields.iter_mut().filter_map(|field| field.string.as_mut()) {
        string.location = end.take(4);
    }
    let missing = (faults > 0).then(|| end.take(4));
    for string in fields.iter_mut().filter_map(|field| field.string.as_mut()) {
        string.status = end.take(2);
    }
    set_lengths(&mut arguments, captures, known);
    let mut layout = RawLayout {
        id: 0,
        size: padded(end.0),
        missing,
        string_limit: 0,
        arguments,
        listed: false,
        thread_context,
        thread_waits,
    };
    if layout.strings().next().is_some() {
        layout.string_limit = strings.limit;
    }
    layout
}

/// Source of the length of a string or of bytes.
enum LengthFrom {
    Fixed(u32),
    /// The argument at this place.
    Argument(usize),
}

/// The length of the data that an argument points to, if it is known and available. A string of a fixed length may end earlier, at a NUL.
fn length(argument: &Argument, captures: &[Capture], known: &[Argument]) -> Option<LengthFrom> {
    match &argument.kind {
        Some(ArgumentType::Bytes(Length::Fixed(bytes))) => Some(LengthFrom::Fixed(*bytes)),
        Some(
            ArgumentType::String(Some(Length::Argument(name)))
            | ArgumentType::Bytes(Length::Argument(name)),
        ) => {
            let place = known.iter().position(|known| known.name == *name)?;
            let is_field = matches!(captures.get(place)?, Capture::Value(_));
            is_field.then_some(LengthFrom::Argument(place))
        }
        _ => None,
    }
}

/// Sets the lengths of strings and bytes, after the offsets of the fields are known.
fn set_lengths(arguments: &mut [RawArgument], captures: &[Capture], known: &[Argument]) {
    for (place, argument) in known.iter().enumerate() {
        let length = match length(argument, captures, known) {
            None => continue,
            Some(LengthFrom::Fixed(bytes)) => RawLength::Fixed(bytes),
            Some(LengthFrom::Argument(of)) => match arguments.get(of) {
                Some(RawArgument::Field(field)) => RawLength::Field {
                    offset: field.offset,
                    size: field.size,
                    signed: field.signed,
                    fault: field.fault,
                },
                _ => continue,
            },
        };
        if let Some(RawArgument::Field(field)) = arguments.get_mut(place)
            && let Some(string) = &mut field.string
        {
            string.length = Some(length);
        }
    }
}

/// `len` rounded up so that it and the 4 bytes of its size in front are a multiple of 8.
pub(super) const fn padded(len: u16) -> u16 {
    (len + 4).next_multiple_of(8) - 4
}

fn field(read: &Read, strings: Strings) -> RawField {
    RawField {
        offset: 0,
        size: match read.size {
            1 | 2 if read.signed => 4,
            size => size,
        },
        signed: read.signed,
        fault: read.may_fault().then_some(0),
        string: (strings.limit > 0).then_some(RawString {
            location: 0,
            status: 0,
            known: strings.known,
            length: None,
        }),
    }
}

fn fields(arguments: &mut [RawArgument]) -> Vec<&mut RawField> {
    let fields = arguments.iter_mut().filter_map(|argument| match argument {
        RawArgument::Field(field) => Some(field),
        _ => None,
    });
    fields.collect()
}

/// The end of what is taken so far.
struct Room(u16);

impl Room {
    /// Allocates `size` bytes at a multiple of the size.
    fn take(&mut self, size: u16) -> u16 {
        let start = self.0.next_multiple_of(size);
        self.0 = start + size;
        start
    }

    /// Allocates so many bytes at a multiple of 8: programs write words of 8 bytes there.
    const fn take_words(&mut self, bytes: u16) -> u16 {
        let start = self.0.next_multiple_of(8);
        self.0 = start + bytes;
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::symbols::NotCaptured;
    use usdtrec_format::Register;

    const STRINGS: Strings = Strings {
        limit: 64,
        known: false,
    };

    fn value(size: u8, signed: bool, pointer: bool) -> Capture {
        Capture::Value(Read {
            source: Source::Register {
                register: Register(1),
                from: 0,
            },
            size,
            signed,
            pointer,
        })
    }

    #[test]
    fn fields_stand_at_multiples_of_their_size() {
        let captures = [
            value(1, false, false),
            value(2, true, false),
            Capture::Constant,
            value(8, false, true),
            Capture::Nothing(NotCaptured::Register("xmm0")),
            value(4, true, false),
        ];
        let layout = layout(&captures, STRINGS, &[], OfThread::default());
        let fields: Vec<_> = layout
            .arguments
            .iter()
            .filter_map(|argument| match argument {
                RawArgument::Field(field) => Some((field.offset, field.size)),
                _ => None,
            })
            .collect();
        // The pointer, the two words, then the byte; `s16` became `s32`.
        assert_eq!(fields, [(24, 1), (16, 4), (8, 8), (20, 4)]);
        let strings: Vec<_> = layout.strings().collect();
        assert_eq!(
            strings,
            [RawString {
                location: 28,
                status: 32,
                known: false,
                length: None,
            }]
        );
        assert_eq!((layout.size, layout.missing), (36, None));
    }

    #[test]
    fn a_known_type_says_whether_a_string_is_read() {
        let typed = |kind: &str| Argument {
            kind: kind.parse().ok(),
            ..Argument::named("x")
        };
        let arguments = ["str", "ptr", "", "u64", "str(16)", "str"].map(typed);
        let captures = [
            value(8, true, false),
            value(8, false, true),
            value(8, false, true),
            value(8, false, true),
            value(8, false, true),
            value(2, false, false),
        ];
        let layout = layout(&captures, STRINGS, &arguments, OfThread::default());
        let read = layout.arguments.iter().map(|argument| match argument {
            RawArgument::Field(field) => field.string.map(|string| string.known),
            _ => None,
        });
        let read: Vec<_> = read.collect();
        let [string, guess] = [Some(true), Some(false)];
        assert_eq!(read, [string, None, guess, None, string, None]);
    }

    #[test]
    fn without_strings_none_are_read() {
        let captures = [value(8, false, true)];
        let layout = layout(&captures, Strings::default(), &[], OfThread::default());
        assert_eq!(layout.strings().count(), 0);
        assert_eq!(layout.size, 20);
    }

    #[test]
    fn what_is_of_the_thread_stands_before_the_arguments() {
        let of_thread = OfThread {
            context: true,
            waits: true,
        };
        let captures = [value(8, false, false)];
        let layout = layout(&captures, Strings::default(), &[], of_thread);
        let [RawArgument::Field(field)] = *layout.arguments else {
            panic!("one field: {layout:?}");
        };
        let places = (layout.thread_waits, layout.thread_context, field.offset);
        assert_eq!(places, (Some(8), Some(32), 64));
        assert_eq!(layout.size, 76);
    }
}
