//! Writes TOML schema files.

use std::fmt::Write as _;

use crate::escape::is_hidden;
use crate::schema::telemetry::Telemetry;
use crate::schema::{Argument, Labels, ProbeSchema};

/// Writes probes as a file, which [`parse`](super::parse) reads.
#[must_use]
pub fn write(probes: &[ProbeSchema]) -> String {
    let mut out = String::new();
    let first = probes.first().map(|probe| &probe.provider);
    let common = first.filter(|first| probes.iter().all(|probe| probe.provider == **first));
    if let Some(provider) = common {
        let _ = writeln!(out, "provider = {}\n", quoted(provider));
    }
    for (at, probe) in probes.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str("[[probe]]\n");
        if common.is_none() {
            let _ = writeln!(out, "provider = {}", quoted(&probe.provider));
        }
        let _ = writeln!(out, "name = {}", quoted(&probe.name));
        if let Some(description) = &probe.description {
            let _ = writeln!(out, "description = {}", quoted(description));
        }
        if let Some(needs) = &probe.needs {
            let _ = writeln!(out, "needs = {}", quoted(needs));
        }
        if let Some(call) = &probe.call {
            let key = if call.enters { "calls" } else { "returns" };
            let _ = writeln!(out, "{key} = {}", quoted(&call.function));
            if let Some(file) = &call.file {
                let _ = writeln!(out, "source = {}", quoted(file));
            }
        }
        if let Some(lock) = &probe.lock {
            let _ = writeln!(out, "{} = {}", lock.action.key(), quoted(&lock.lock));
            for (key, is_so) in [
                ("shared", lock.shared),
                ("group", lock.group),
                ("contended", lock.contended),
            ] {
                if is_so {
                    let _ = writeln!(out, "{key} = true");
                }
            }
        }
        write_telemetry(&probe.telemetry, &mut out);
        if !probe.arguments.is_empty() {
            out.push_str("arguments = [\n");
            for argument in &probe.arguments {
                let _ = writeln!(out, "    {},", one(argument));
            }
            out.push_str("]\n");
        }
        if probe.more {
            out.push_str("more = true\n");
        }
    }
    out
}

fn write_telemetry(telemetry: &Telemetry, out: &mut String) {
    if let Some(kind) = telemetry.kind {
        let _ = writeln!(out, "span_kind = {}", quoted(&kind.to_string()));
    }
    let attributes = telemetry.attributes.iter();
    let attributes: Vec<String> = attributes
        .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)))
        .collect();
    if !attributes.is_empty() {
        let _ = writeln!(out, "attributes = {{ {} }}", attributes.join(", "));
    }
}

/// Writes an argument as a line if possible, else as a table.
fn one(argument: &Argument) -> String {
    let unit = argument.unit.as_ref().map(ToString::to_string);
    // In a line the first word is the type, blanks separate words and a semicolon starts the description.
    let plain = |text: &String| {
        !text.is_empty()
            && !text.contains([' ', ';', '(', ':', '='])
            && !text.contains(char::is_whitespace)
    };
    let description = argument.description.as_ref();
    let fits = argument.labels.is_none()
        && unit
            .as_ref()
            .is_none_or(|unit| plain(unit) && argument.kind.is_some())
        && argument
            .capture
            .as_ref()
            .is_none_or(|capture| !capture.contains(';'))
        && description.is_none_or(|words| words.trim() == words && !words.is_empty());
    if !fits {
        return table(argument, unit.as_deref());
    }
    let mut line = argument.name.clone();
    if let Some(kind) = &argument.kind {
        let _ = write!(line, ": {kind}");
    }
    if let Some(unit) = &unit {
        let _ = write!(line, " {unit}");
    }
    if let Some(capture) = &argument.capture {
        let _ = write!(line, " = {capture}");
    }
    if let Some(description) = description {
        let _ = write!(line, "; {description}");
    }
    quoted(&line)
}

fn table(argument: &Argument, unit: Option<&str>) -> String {
    let mut parts = vec![format!("name = {}", quoted(&argument.name))];
    if let Some(kind) = &argument.kind {
        parts.push(format!("type = {}", quoted(&kind.to_string())));
    }
    if let Some(unit) = unit {
        parts.push(format!("unit = {}", quoted(unit)));
    }
    if let Some(labels) = &argument.labels {
        let key = match labels {
            Labels::Enum(_) => "enum",
            Labels::Flags(_) => "flags",
        };
        let words = labels.words().iter();
        let words: Vec<String> = words
            .map(|(number, word)| format!("{number} = {}", quoted(word)))
            .collect();
        parts.push(format!("{key} = {{ {} }}", words.join(", ")));
    }
    if let Some(capture) = &argument.capture {
        parts.push(format!("capture = {}", quoted(capture)));
    }
    if let Some(description) = &argument.description {
        parts.push(format!("description = {}", quoted(description)));
    }
    format!("{{ {} }}", parts.join(", "))
}

/// Writes a basic string of TOML: a JSON string in which characters that cannot be printed are escaped.
fn quoted(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap_or_default();
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match u32::from(c) {
            _ if !is_hidden(c) => out.push(c),
            number @ ..=0xffff => {
                let _ = write!(out, "\\u{number:04x}");
            }
            number => {
                let _ = write!(out, "\\U{number:08x}");
            }
        }
    }
    out
}
