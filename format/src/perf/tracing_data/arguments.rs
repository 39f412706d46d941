//! The tracepoint format that describes the raw samples of a probe.

use super::{TracepointField, TracepointFormat};
use crate::arch::Arch;
use crate::definitions::ShownArgument;
use crate::operand::{Constant, Location, Operand};
use crate::raw::{RawArgument, RawField, RawLayout};
use crate::schema::{Argument, ArgumentType, Labels, Words};
use crate::thread_context::ThreadContext;
use crate::thread_waits::ThreadWaits;

/// Maximum number of words of an enumeration or of flags in a format.
const MAX_WORDS: usize = 64;

/// Names that perf looks up before an event's own fields, or that are used by its scripting engine and by uprobe events
/// (`tools/lib/traceevent/event-parse.c`, `tools/perf/util/scripting-engines/trace-event-python.c`).
const TAKEN: &str = "\
    common_type common_flags common_preempt_count common_preempt_lazy_count \
    common_migrate_disable common_pid common_tgid common_cpu common_comm common_secs \
    common_nsecs common_callchain event_name context perf_sample_dict __probe_ip __probe_func \
    __probe_ret_ip";

fn is_taken(name: &str) -> bool {
    TAKEN.split(' ').any(|taken| taken == name)
}

/// Appends underscores to a name until neither perf nor an argument uses it.
fn free(mut name: String, arguments: &[Argument]) -> String {
    while is_taken(&name) || arguments.iter().any(|known| known.name == name) {
        name.push('_');
    }
    name
}

/// The name of an argument's field: the argument's name, unless perf reserves it.
fn field_name(argument: &Argument, arguments: &[Argument]) -> String {
    let name = argument.name.clone();
    if is_taken(&name) {
        free(name, arguments)
    } else {
        name
    }
}

impl TracepointFormat {
    /// The format of samples with a raw layout. `args` is the argument string of any site with this layout, for
    /// its constants. `arguments` has names and types: perf prints names, pointers in
    /// hexadecimal, and the words of enumerations and flags. `shown` are those that an argument list shows; `None` for all.
    #[must_use]
    pub fn of_layout(
        provider: &str,
        name: &str,
        layout: &RawLayout,
        args: &str,
        arch: Option<Arch>,
        arguments: &[Argument],
        shown: Option<&[ShownArgument]>,
    ) -> Self {
        let mut format = Self {
            system: format!("sdt_{provider}"),
            name: name.to_owned(),
            id: layout.id,
            ..Self::default()
        };
        let operands = layout.operands(args, arch);
        let own = arguments.iter().zip(&operands).zip(&layout.arguments);
        let own: Vec<_> = own.collect();
        let (arguments, known): (Vec<Argument>, Vec<_>) = match shown {
            None => own.iter().map(|known| (known.0.0.clone(), known)).unzip(),
            Some(shown) => shown
                .iter()
                .filter_map(|shown| {
                    Some((shown.argument_from(arguments), own.get(shown.argument)?))
                })
                .unzip(),
        };
        for (argument, ((_, operand), raw)) in arguments.iter().zip(known) {
            format.argument(argument, &arguments, operand, raw);
        }
        if let Some(offset) = layout.thread_context {
            format.thread_context(offset, &arguments);
        }
        if let Some(offset) = layout.thread_waits {
            format.thread_waits(offset, &arguments);
        }
        if let Some(offset) = layout.missing {
            let missing = free("missing".to_owned(), &arguments);
            format.field(format!("u32 {missing}"), offset, 4, false);
            format.print(&format!(" {missing}=%#x"), &format!("REC->{missing}"));
        }
        format.print = format.print.trim_start().to_owned();
        format.fields.sort_by_key(|field| field.offset);
        format
    }

    /// The fields of a thread context: perf prints the ids as hexadecimal digits.
    fn thread_context(&mut self, offset: u16, arguments: &[Argument]) {
        let ids = [("trace_id", 0, 16), ("span_id", ThreadContext::SPAN_ID, 8)];
        for (name, at, size) in ids {
            let name = free(name.to_owned(), arguments);
            self.field(format!("u8 {name}[{size}]"), offset + at, size, false);
            self.print(
                &format!(" {name}=%s"),
                &format!("__print_hex_str(REC->{name}, {size})"),
            );
        }
        let status = free("context_status".to_owned(), arguments);
        let at = offset + ThreadContext::STATUS;
        self.field(format!("u32 {status}"), at, 4, false);
        self.print(&format!(" {status}=%u"), &format!("REC->{status}"));
    }

    /// The fields of how long a thread has waited, and how many waits are not in them.
    fn thread_waits(&mut self, offset: u16, arguments: &[Argument]) {
        let names = ThreadWaits::NAMES.map(|name| free(name.to_owned(), arguments));
        for (name, place) in names.iter().zip(0..) {
            self.field(format!("u64 {name}"), offset + 8 * place, 8, false);
        }
        let [runnable, iowait, blocked] = names;
        for name in [&runnable, &iowait] {
            let time = ThreadWaits::MISSED - 1;
            self.print(
                &format!(" {name}=%llu"),
                &format!("(REC->{name} & {time:#x})"),
            );
        }
        self.print(&format!(" {blocked}=%llu"), &format!("REC->{blocked}"));
        let missed = free("missed_waits".to_owned(), arguments);
        let bits = ThreadWaits::MISSED.trailing_zeros();
        self.print(
            &format!(" {missed}=%llu"),
            &format!("(REC->{iowait} >> {bits})"),
        );
    }

    fn argument(
        &mut self,
        argument: &Argument,
        all: &[Argument],
        operand: &Operand,
        raw: &RawArgument,
    ) {
        let name = &argument.name;
        match raw {
            RawArgument::Constant => {
                let text = constant(operand);
                self.print.push_str(&format!(" {name}={}", literal(&text)));
            }
            RawArgument::NotCaptured { reason } => {
                self.print
                    .push_str(&format!(" {name}=<{}>", literal(reason)));
            }
            RawArgument::Field(field) => self.value(argument, all, operand, *field),
        }
    }

    fn value(&mut self, argument: &Argument, all: &[Argument], operand: &Operand, field: RawField) {
        let RawField {
            offset,
            size,
            signed,
            ..
        } = field;
        let name = &argument.name;
        let bits = 8 * u16::from(size);
        let kind = if signed { 's' } else { 'u' };
        let own = field_name(argument, all);
        self.field(format!("{kind}{bits} {own}"), offset, size.into(), signed);
        let record = format!("REC->{own}");
        // For an argument list, the note has no float mark.
        let float = operand.float || argument.kind.as_ref().is_some_and(ArgumentType::is_float);
        let address = argument.kind.as_ref().is_some_and(ArgumentType::is_address);
        let number = match (float || address || field.string.is_some(), size, signed) {
            // perf does not print floats: print the bits.
            (true, 8, _) => "%#llx",
            (true, ..) => "%#x",
            (false, 8, true) => "%lld",
            (false, 8, false) => "%llu",
            (false, _, true) => "%d",
            (false, _, false) => "%u",
        };
        let half = matches!(operand.location, Location::Register { pair: true, .. });
        match (&argument.labels, &argument.kind) {
            _ if half || operand.size.is_some_and(|bytes| bytes > 8) => {
                let hex = if size == 8 { "%#llx" } else { "%#x" };
                self.print(&format!(" {name}=<lower bytes {hex}>"), &record);
            }
            _ if float || field.string.is_some() => {
                self.print(&format!(" {name}={number}"), &record);
            }
            (Some(Labels::Enum(words)), _) if words.len() <= MAX_WORDS => {
                let words = listed(words, size);
                self.print(
                    &format!(" {name}=%s"),
                    &format!("__print_symbolic({record}{words})"),
                );
                self.print(&format!("({number})"), &record);
            }
            (Some(Labels::Flags(words)), _) if words.len() <= MAX_WORDS => {
                let words = listed(words, size);
                let hex = if size == 8 { "%#llx" } else { "%#x" };
                self.print(
                    &format!(" {name}=%s"),
                    &format!("__print_flags({record}, \"|\"{words})"),
                );
                self.print(&format!("({hex})"), &record);
            }
            (None, Some(ArgumentType::Bool)) => {
                let words = ", { 0, \"false\" }, { 1, \"true\" }";
                self.print(
                    &format!(" {name}=%s"),
                    &format!("__print_symbolic({record}{words})"),
                );
            }
            _ => self.print(&format!(" {name}={number}"), &record),
        }
        if let Some(string) = field.string {
            let text = free(format!("{name}_str"), all);
            let length = free(format!("{name}_len"), all);
            self.field(
                format!("__data_loc char[] {text}"),
                string.location,
                4,
                false,
            );
            self.field(format!("s16 {length}"), string.status, 2, true);
            self.print(
                &format!(" {text}=\\\"%s\\\""),
                &format!("__get_str({text})"),
            );
        }
    }

    fn field(&mut self, declaration: String, offset: u16, size: u16, signed: bool) {
        self.fields.push(TracepointField {
            declaration,
            offset,
            size,
            signed,
        });
    }

    fn print(&mut self, text: &str, argument: &str) {
        self.print.push_str(text);
        self.print_arguments.push(argument.to_owned());
    }
}

/// The arguments of `__print_symbolic` and `__print_flags`, each after a comma. perf compares unsigned numbers.
fn listed(words: &Words, size: u8) -> String {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    let words = words.iter().map(|(number, word)| {
        let number = number.cast_unsigned() << unused >> unused;
        format!(", {{ {number:#x}, \"{}\" }}", literal(word))
    });
    words.collect()
}

/// A constant of the note.
fn constant(operand: &Operand) -> String {
    match operand.location {
        Location::Constant(Constant::Float(number)) => number.to_string(),
        Location::Constant(Constant::Integer(number)) | Location::ConstantExpression(number) => {
            match crate::value::Value::integer(
                number.cast_unsigned(),
                operand.size.unwrap_or(8),
                operand.signed.unwrap_or(number < 0),
            ) {
                crate::value::Value::Unsigned(number) => number.to_string(),
                crate::value::Value::Signed(number) => number.to_string(),
                _ => String::new(),
            }
        }
        _ => String::new(),
    }
}

/// Escapes a text for a format string.
fn literal(text: &str) -> String {
    text.replace(|c: char| c.is_control() || "%\"\\".contains(c), "_")
}
