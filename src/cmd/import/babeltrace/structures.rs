//! The structures of a line: contexts, and then the fields of the event.

use std::borrow::Cow;

use super::super::bad_line::BadLine;
use super::super::event::{ImportedArgument, ImportedValue, MAX_ARGUMENTS, add_argument, is_name};
use super::cursor::Cursor;
use super::field_value;

/// How a structure begins: without a name, or with one (`--names scope`). The fields are the last ones.
pub(super) const STARTS: [&[u8]; 5] = [
    b"{",
    b"stream.packet.context = {",
    b"stream.event.context = {",
    b"event.context = {",
    b"event.fields = {",
];

/// A member of a structure.
#[derive(Debug, PartialEq)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) value: ImportedValue<'a>,
}

/// The members of all structures.
#[derive(Debug, Default)]
pub(super) struct Structures<'a> {
    /// Of the packet, the stream and the event.
    contexts: Vec<Field<'a>>,
    fields: Vec<Field<'a>>,
}

impl<'a> Structures<'a> {
    /// Takes them, up to the end of the line.
    pub(super) fn parse(cursor: &mut Cursor<'a>) -> Result<Self, BadLine> {
        let mut all = Self::default();
        loop {
            if !STARTS.iter().any(|start| cursor.skip(start)) {
                return Err(BadLine::bytes("{", cursor.rest()));
            }
            let mut last = std::mem::take(&mut all.fields);
            all.contexts.append(&mut last);
            all.fields = members(cursor)?;
            if all.contexts.len() + all.fields.len() > MAX_ARGUMENTS {
                return Err(BadLine::TooManyArguments);
            }
            if cursor.rest().is_empty() {
                return Ok(all);
            }
            if !cursor.skip(b", ") {
                return Err(BadLine::bytes("a comma or the end", cursor.rest()));
            }
        }
    }

    /// Takes the value of the first of these members that a context has.
    pub(super) fn take_context(&mut self, names: &[&str]) -> Option<ImportedValue<'a>> {
        let at = names.iter().find_map(|name| {
            let mut contexts = self.contexts.iter();
            contexts.position(|field| field.name == *name)
        })?;
        Some(self.contexts.remove(at).value)
    }

    /// The fields, and what else the contexts have.
    pub(super) fn into_arguments(self) -> Result<Vec<ImportedArgument<'a>>, BadLine> {
        let mut arguments: Vec<ImportedArgument<'a>> = Vec::new();
        for field in self.fields {
            add(&mut arguments, Cow::Borrowed(field.name), field.value)?;
        }
        let fields = arguments.len();
        for Field { name, value } in self.contexts {
            let known = arguments.iter().take(fields);
            let name = if known.map(|field| &*field.name).any(|known| known == name) {
                Cow::Owned(format!("context_{name}"))
            } else {
                Cow::Borrowed(name)
            };
            add(&mut arguments, name, value)?;
        }
        Ok(arguments)
    }
}

/// Appends a field or a context as an argument.
fn add<'a>(
    arguments: &mut Vec<ImportedArgument<'a>>,
    name: Cow<'a, str>,
    value: ImportedValue<'a>,
) -> Result<(), BadLine> {
    let argument = ImportedArgument { name, value };
    add_argument(arguments, argument, "another name of a field")
}

/// Takes the members of a structure, whose brace is skipped, and its end.
fn members<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Field<'a>>, BadLine> {
    let mut found = Vec::new();
    while !cursor.skip(b" }") {
        let separator: &[u8] = if found.is_empty() { b" " } else { b", " };
        if !cursor.skip(separator) {
            return Err(BadLine::bytes("a comma or }", cursor.rest()));
        }
        if found.len() == MAX_ARGUMENTS {
            return Err(BadLine::TooManyArguments);
        }
        let name = name(cursor)?;
        let value = field_value::parse(cursor)?;
        found.push(Field { name, value });
    }
    Ok(found)
}

/// Takes `NAME = `.
fn name<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, BadLine> {
    let rest = cursor.rest();
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let len = rest.iter().take_while(|byte| is_inner(byte)).count();
    let name = std::str::from_utf8(cursor.take(len)).unwrap_or_default();
    if is_name(name) && cursor.skip(b" = ") {
        return Ok(name);
    }
    Err(BadLine::bytes(
        "a field NAME = VALUE (babeltrace2 --names default)",
        rest,
    ))
}
