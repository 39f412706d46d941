//! The format of the tracepoint that a probe's raw samples are.

use crate::{Arch, Constant, Location, Operand, RawArgument, RawField, RawLayout};

use super::{TracepointField, TracepointFormat};

/// A name that no argument has.
fn free(mut name: String, names: &[String]) -> String {
    while names.contains(&name) {
        name.push('_');
    }
    name
}

impl TracepointFormat {
    /// The format of the samples of a probe's sites whose raw part has this layout. `args` is the argument string of
    /// any of them: they have their constants in common. `names` are the arguments' names.
    #[must_use]
    pub fn of_layout(
        provider: &str,
        name: &str,
        layout: &RawLayout,
        (args, arch): (&str, Option<Arch>),
        names: &[String],
    ) -> Self {
        let mut format = Self {
            system: format!("sdt_{provider}"),
            name: name.to_owned(),
            id: layout.id,
            ..Self::default()
        };
        let operands = layout.operands(args, arch);
        let named = names.iter().zip(&operands).zip(&layout.arguments);
        for ((name, operand), argument) in named {
            format.argument(name, names, operand, argument);
        }
        if let Some(offset) = layout.missing {
            let missing = free("missing".to_owned(), names);
            format.field(format!("u32 {missing}"), offset, 4, false);
            format.print(&format!(" {missing}=%#x"), &format!("REC->{missing}"));
        }
        format.print = format.print.trim_start().to_owned();
        format.fields.sort_by_key(|field| field.offset);
        format
    }

    fn argument(
        &mut self,
        name: &str,
        names: &[String],
        operand: &Operand,
        argument: &RawArgument,
    ) {
        match argument {
            RawArgument::Constant => {
                let text = constant(operand);
                self.print.push_str(&format!(" {name}={}", literal(&text)));
            }
            RawArgument::NotCaptured { reason } => {
                self.print
                    .push_str(&format!(" {name}=<{}>", literal(reason)));
            }
            RawArgument::Field(field) => self.value(name, names, operand, *field),
        }
    }

    fn value(&mut self, name: &str, names: &[String], operand: &Operand, field: RawField) {
        let RawField {
            offset,
            size,
            signed,
            ..
        } = field;
        let bits = 8 * u16::from(size);
        let kind = if signed { 's' } else { 'u' };
        self.field(format!("{kind}{bits} {name}"), offset, size.into(), signed);
        let conversion = match (operand.float || field.string.is_some(), size, signed) {
            // perf knows no floats: their bits.
            (true, 8, _) => "%#llx",
            (true, ..) => "%#x",
            (false, 8, true) => "%lld",
            (false, 8, false) => "%llu",
            (false, _, true) => "%d",
            (false, _, false) => "%u",
        };
        self.print(&format!(" {name}={conversion}"), &format!("REC->{name}"));
        if let Some(string) = field.string {
            let text = free(format!("{name}_str"), names);
            let length = free(format!("{name}_len"), names);
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

/// A constant of the note.
fn constant(operand: &Operand) -> String {
    match operand.location {
        Location::Constant(Constant::Float(number)) => number.to_string(),
        Location::Constant(Constant::Integer(number)) | Location::ConstantExpression(number) => {
            match crate::Value::integer(
                number.cast_unsigned(),
                operand.size.unwrap_or(8),
                operand.signed.unwrap_or(number < 0),
            ) {
                crate::Value::Unsigned(number) => number.to_string(),
                crate::Value::Signed(number) => number.to_string(),
                _ => String::new(),
            }
        }
        _ => String::new(),
    }
}

/// Text as it may stand in a format string between quotes.
fn literal(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '%' | '"' | '\\' => '_',
            c if c.is_control() => '_',
            c => c,
        })
        .collect()
}
