//! Parses TOML schema files.

use std::collections::{BTreeMap, HashMap, HashSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::shorthand::{self, Shorthand};
use crate::expr::Expr;
use crate::schema::catalog::probe::note_name;
use crate::schema::catalog::problem::Problems;
use crate::schema::kind::is_name;
use crate::schema::name_parts::{arguments_of, name_parts};
use crate::schema::telemetry::attribute_name;
use crate::schema::{
    Argument, ArgumentType, Labels, LockAction, LockUse, Parsed, ProbeSchema, ScriptCall, Unit,
    Words,
};

/// Parses a file. A probe with an error is omitted; others are not affected.
#[must_use]
pub fn parse(text: &str) -> Parsed {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        problems: Problems::new(text),
        provider: None,
        needs: None,
        words: HashMap::new(),
        flags: HashMap::new(),
        attributes: Vec::new(),
        probes: Vec::new(),
    };
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        reader.problems.error(at, error.message());
    }
    // After a syntax error, values recovered by the TOML parser are not used.
    if errors.is_empty() {
        reader.file(table.get_ref());
    }
    Parsed {
        probes: reader.probes,
        problems: reader.problems.finish(),
    }
}

struct Reader<'t> {
    problems: Problems<'t>,
    provider: Option<String>,
    needs: Option<String>,
    words: HashMap<String, Words>,
    flags: HashMap<String, Words>,
    /// Of all probes that have their arguments.
    attributes: Vec<CommonAttribute>,
    probes: Vec<ProbeSchema>,
}

/// Facts about a lock besides the operation on it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct LockFlags {
    shared: bool,
    group: bool,
    contended: bool,
}

/// An attribute as the file has it.
struct WrittenAttribute {
    /// Offset in the file, bytes.
    at: usize,
    name: String,
    value: String,
}

/// An attribute of all probes that have its arguments.
struct CommonAttribute {
    attribute: WrittenAttribute,
    /// Whether there is such a probe.
    is_used: bool,
}

/// An error that was already reported.
struct Reported;

type Entry<'a, 'i> = (
    &'a Spanned<std::borrow::Cow<'i, str>>,
    &'a Spanned<DeValue<'i>>,
);

impl Reader<'_> {
    fn file(&mut self, table: &DeTable<'_>) {
        for entry in table {
            let (key, value) = entry;
            // Errors are reported, and affect only their item.
            let _: Result<(), Reported> = match key.get_ref().as_ref() {
                "provider" => self
                    .text(value)
                    .map(|provider| self.provider = Some(provider)),
                "needs" => self.text(value).map(|needs| self.needs = Some(needs)),
                "enum" => self.all_words(value).map(|words| self.words = words),
                "flags" => self.all_words(value).map(|flags| self.flags = flags),
                "attributes" => self.common_attributes(value),
                "probe" => Ok(()),
                _ => self.unknown(
                    entry,
                    "provider, needs, enum, flags, attributes or [[probe]]",
                ),
            };
        }
        let Some(probes) = table.get("probe") else {
            return;
        };
        let Some(array) = probes.get_ref().as_array() else {
            let _: Result<(), Reported> =
                self.wrong(probes, "a list of probes, each beginning with [[probe]]");
            return;
        };
        for probe in array.iter() {
            if let Ok(schema) = self.probe(probe) {
                self.probes.push(schema);
            }
        }
        if self.probes.len() == array.len() {
            self.unused_attributes();
        }
    }

    fn probe(&mut self, value: &Spanned<DeValue<'_>>) -> Result<ProbeSchema, Reported> {
        let table = self.table(value)?;
        let mut schema = ProbeSchema {
            provider: self.provider.clone().unwrap_or_default(),
            needs: self.needs.clone(),
            ..ProbeSchema::default()
        };
        let (mut calls, mut returns, mut source) = (None, None, None);
        let mut attributes = Vec::new();
        let mut locks = Vec::new();
        let mut lock = LockFlags::default();
        for entry in table {
            let (key, value) = entry;
            match key.get_ref().as_ref() {
                "provider" => schema.provider = self.text(value)?,
                "name" => schema.name = note_name(&self.text(value)?),
                "description" => schema.description = Some(self.text(value)?),
                // An empty text overrides the file's value for all probes.
                "needs" => schema.needs = Some(self.text(value)?),
                "more" => schema.more = self.truth(value)?,
                "shared" => lock.shared = self.truth(value)?,
                "group" => lock.group = self.truth(value)?,
                "contended" => lock.contended = self.truth(value)?,
                "calls" => calls = Some(self.text(value)?),
                "returns" => returns = Some(self.text(value)?),
                "source" => source = Some(self.text(value)?),
                "span_kind" => {
                    let kind = self.text(value)?.parse();
                    schema.telemetry.kind = Some(self.said(value, kind)?);
                }
                "attributes" => attributes = self.attributes(value)?,
                "arguments" => schema.arguments = self.arguments(value)?,
                name => match LockAction::ALL.iter().find(|(key, _)| *key == name) {
                    Some((_, action)) => locks.push((*action, self.text(value)?)),
                    None => self.unknown(
                        entry,
                        "provider, name, description, needs, calls, returns, source, waits, waited, acquires, releases, shared, group, contended, span_kind, attributes, arguments or more",
                    )?,
                },
            }
        }
        schema.lock = self.lock_use(value, locks, lock)?;
        schema.needs.take_if(|needs| needs.is_empty());
        self.add_attributes(attributes, &mut schema);
        let at = value.span().start;
        let called = |enters: bool, function: String| ScriptCall {
            enters,
            function,
            file: source.clone(),
        };
        let has_source = source.is_some();
        schema.call = match (calls, returns) {
            (Some(_), Some(_)) => {
                return self.wrong(
                    value,
                    "either calls or returns: a function is called, or returns",
                );
            }
            (None, None) if has_source => {
                return self.wrong(
                    value,
                    "calls or returns with source, the file of the function",
                );
            }
            (Some(function), None) => Some(called(true, function)),
            (None, Some(function)) => Some(called(false, function)),
            (None, None) => None,
        };
        let mut faults = schema.faults();
        for (part, what) in [(&schema.name, "name"), (&schema.provider, "provider")] {
            if part.is_empty() {
                faults.push(format!("the probe has no {what}"));
            }
        }
        for fault in &faults {
            self.problems.error(at, fault);
        }
        if faults.is_empty() {
            Ok(schema)
        } else {
            Err(Reported)
        }
    }

    /// Gives a probe the attributes of the file whose arguments it has, and its own in place of these. An empty text overrides
    /// the file's value.
    fn add_attributes(&mut self, own: Vec<WrittenAttribute>, schema: &mut ProbeSchema) {
        let mut all = BTreeMap::new();
        for common in &mut self.attributes {
            let WrittenAttribute { name, value, .. } = &common.attribute;
            let parts = name_parts(value).unwrap_or_default();
            if arguments_of(&parts).all(|name| schema.argument_index(name).is_some()) {
                common.is_used = true;
                all.insert(name.clone(), value.clone());
            }
        }
        for WrittenAttribute { name, value, .. } in own {
            if value.is_empty() {
                all.remove(&name);
            } else {
                all.insert(name, value);
            }
        }
        schema.telemetry.attributes = all;
    }

    fn common_attributes(&mut self, value: &Spanned<DeValue<'_>>) -> Result<(), Reported> {
        for attribute in self.attributes(value)? {
            let WrittenAttribute { at, name, value } = &attribute;
            if value.is_empty() || name_parts(value).is_none() {
                self.problems.error(
                    *at,
                    format!("{name}: {value:?}: expected a text with arguments in braces"),
                );
                return Err(Reported);
            }
            self.attributes.push(CommonAttribute {
                attribute,
                is_used: false,
            });
        }
        Ok(())
    }

    /// Reports attributes of the file for which no probe has the arguments.
    fn unused_attributes(&mut self) {
        for common in self.attributes.iter().filter(|common| !common.is_used) {
            let WrittenAttribute { at, name, value } = &common.attribute;
            let words = format!("{name}: no probe of the file has all arguments of {value:?}");
            self.problems.error(*at, words);
        }
    }

    /// The attributes in a table; a point in a name may be written as a point of TOML, which makes tables in tables.
    fn attributes(
        &mut self,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<WrittenAttribute>, Reported> {
        let mut all = Vec::new();
        self.flatten(value, "", &mut all)?;
        let mut names = HashSet::new();
        for WrittenAttribute { at, name, .. } in &all {
            let error = match attribute_name::check(name) {
                Ok(()) if names.insert(name) => continue,
                Ok(()) => format!("duplicate attribute {name}"),
                Err(error) => error.to_string(),
            };
            self.problems.error(*at, error);
            return Err(Reported);
        }
        Ok(all)
    }

    fn flatten(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        before: &str,
        all: &mut Vec<WrittenAttribute>,
    ) -> Result<(), Reported> {
        for (key, value) in self.table(value)? {
            let name = format!("{before}{}", key.get_ref());
            if value.get_ref().is_table() {
                self.flatten(value, &format!("{name}."), all)?;
                continue;
            }
            all.push(WrittenAttribute {
                at: key.span().start,
                name,
                value: self.text(value)?,
            });
        }
        Ok(())
    }

    fn arguments(&mut self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Argument>, Reported> {
        let Some(array) = value.get_ref().as_array() else {
            return self.wrong(value, "a list of arguments");
        };
        let mut arguments = Vec::new();
        let mut result = Ok(());
        for (place, value) in array.iter().enumerate() {
            let argument = match value.get_ref() {
                DeValue::String(line) => self.line(value, line, place),
                DeValue::Table(table) => self.argument(value, table, place),
                _ => self.wrong(value, "\"NAME: TYPE\" or { name = …, type = … }"),
            };
            match argument {
                Ok(argument) => arguments.push(argument),
                Err(error) => result = Err(error),
            }
        }
        result.map(|()| arguments)
    }

    fn line(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        line: &str,
        place: usize,
    ) -> Result<Argument, Reported> {
        let parts = shorthand::split(line);
        let parts = self.said(value, parts)?;
        let Shorthand {
            name,
            kind,
            unit,
            words,
            flags,
            capture,
            description,
        } = parts;
        let kind = kind.map(str::parse::<ArgumentType>).transpose();
        let labels = match (words, flags) {
            (Some(name), None) => Some(Labels::Enum(self.named(value, name, Self::words_of)?)),
            (None, Some(name)) => Some(Labels::Flags(self.named(value, name, Self::flags_of)?)),
            (None, None) => None,
            _ => return self.wrong(value, "either enum(…) or flags(…)"),
        };
        Ok(Argument {
            name: self.name(value, name, place)?,
            kind: self.said(value, kind)?,
            unit: unit.map(Unit::from_name),
            labels,
            description: description.map(str::to_owned),
            capture: capture
                .map(|capture| self.capture(value, capture))
                .transpose()?,
        })
    }

    fn argument(
        &mut self,
        whole: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
        place: usize,
    ) -> Result<Argument, Reported> {
        let mut argument = Argument::default();
        for entry in table {
            let (key, value) = entry;
            match key.get_ref().as_ref() {
                "name" => {
                    let name = self.text(value)?;
                    argument.name = self.name(value, &name, place)?;
                }
                "type" => {
                    let kind = self.text(value)?.parse::<ArgumentType>();
                    argument.kind = Some(self.said(value, kind)?);
                }
                "unit" => argument.unit = Some(Unit::from_name(&self.text(value)?)),
                "description" => argument.description = Some(self.text(value)?),
                "capture" => {
                    let capture = self.text(value)?;
                    argument.capture = Some(self.capture(value, &capture)?);
                }
                "enum" => {
                    let words = self.words_here(value, Self::words_of)?;
                    argument.labels = Some(Labels::Enum(words));
                }
                "flags" => {
                    let words = self.words_here(value, Self::flags_of)?;
                    argument.labels = Some(Labels::Flags(words));
                }
                _ => self.unknown(
                    entry,
                    "name, type, unit, enum, flags, capture or description",
                )?,
            }
        }
        if argument.name.is_empty() {
            return self.wrong(whole, "an argument with a name");
        }
        Ok(argument)
    }

    /// What is done with a lock.
    fn lock_use(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        mut locks: Vec<(LockAction, String)>,
        flags: LockFlags,
    ) -> Result<Option<LockUse>, Reported> {
        let LockFlags {
            shared,
            group,
            contended,
        } = flags;
        match (locks.pop(), locks.pop()) {
            (Some(_), Some(_)) => self.wrong(
                value,
                "one of waits, waited, acquires and releases: one thing is done with a lock",
            ),
            (None, _) if flags != LockFlags::default() => self.wrong(
                value,
                "waits, waited, acquires or releases with shared, group and contended, which are about locks",
            ),
            (lock, _) => Ok(lock.map(|(action, lock)| LockUse {
                action,
                lock,
                shared,
                group,
                contended,
            })),
        }
    }

    /// Parses a capture expression.
    fn capture(&mut self, value: &Spanned<DeValue<'_>>, text: &str) -> Result<String, Reported> {
        let parsed = Expr::parse(text);
        let parsed = parsed.map(|_| text.trim().to_owned());
        self.said(
            value,
            parsed.map_err(|error| format!("capture {text:?}: {error}")),
        )
    }

    fn words_of(&self, name: &str) -> Option<Words> {
        self.words.get(name).cloned()
    }

    fn flags_of(&self, name: &str) -> Option<Words> {
        self.flags.get(name).cloned()
    }

    fn named(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        name: &str,
        find: impl Fn(&Self, &str) -> Option<Words>,
    ) -> Result<Words, Reported> {
        let found = find(self, name);
        self.said(
            value,
            found.ok_or_else(|| format!("no table of words is named {name:?}")),
        )
    }

    /// Words written inline, or the name of words.
    fn words_here(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        find: impl Fn(&Self, &str) -> Option<Words>,
    ) -> Result<Words, Reported> {
        match value.get_ref() {
            DeValue::String(name) => self.named(value, name, find),
            _ => self.words(value),
        }
    }

    fn all_words(
        &mut self,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<HashMap<String, Words>, Reported> {
        let mut all = HashMap::new();
        for (name, words) in self.table(value)? {
            if let Ok(words) = self.words(words) {
                all.insert(name.get_ref().to_string(), words);
            }
        }
        Ok(all)
    }

    fn words(&mut self, value: &Spanned<DeValue<'_>>) -> Result<Words, Reported> {
        let mut words = BTreeMap::new();
        for (key, word) in self.table(value)? {
            let Some(number) = number(key.get_ref()) else {
                self.problems.error(
                    key.span().start,
                    format!(
                        "expected a number such as 1 or 0x10, found {:?}",
                        key.get_ref()
                    ),
                );
                return Err(Reported);
            };
            words.insert(number, self.text(word)?);
        }
        Ok(words.into())
    }

    /// Parses an argument's name; `_` means `argN`.
    fn name(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        name: &str,
        place: usize,
    ) -> Result<String, Reported> {
        match name {
            "_" => Ok(Argument::unnamed(place).name),
            name if is_name(name) => Ok(name.to_owned()),
            _ => self.wrong(value, "a name of letters, digits and underscores"),
        }
    }

    fn text(&mut self, value: &Spanned<DeValue<'_>>) -> Result<String, Reported> {
        match value.get_ref().as_str() {
            Some(text) => Ok(text.to_owned()),
            None => self.wrong(value, "text in quotes"),
        }
    }

    fn truth(&mut self, value: &Spanned<DeValue<'_>>) -> Result<bool, Reported> {
        match value.get_ref().as_bool() {
            Some(truth) => Ok(truth),
            None => self.wrong(value, "true or false"),
        }
    }

    fn table<'a, 'i>(
        &mut self,
        value: &'a Spanned<DeValue<'i>>,
    ) -> Result<&'a DeTable<'i>, Reported> {
        match value.get_ref().as_table() {
            Some(table) => Ok(table),
            None => self.wrong(value, "a table"),
        }
    }

    fn said<T>(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        result: Result<T, impl ToString>,
    ) -> Result<T, Reported> {
        result.map_err(|reason| {
            self.problems.error(value.span().start, reason.to_string());
            Reported
        })
    }

    fn wrong<T>(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) -> Result<T, Reported> {
        let found = match value.get_ref() {
            DeValue::String(string) => format!("{string:?}"),
            other => other.type_str().to_owned(),
        };
        self.said(value, Err(format!("expected {expected}, found {found}")))
    }

    /// Reports an unknown key, of a later version or misspelt, and ignores it.
    fn unknown(&mut self, (key, _): Entry<'_, '_>, expected: &str) -> Result<(), Reported> {
        self.problems.note(
            key.span().start,
            format!("unknown key {:?}: expected {expected}", key.get_ref()),
        );
        Ok(())
    }
}

/// Parses a key that is a number.
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?.cast_signed(),
        None => digits.parse().ok()?,
    };
    Some(if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}
