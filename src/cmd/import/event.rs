//! An event, and its text in the output of bpftrace: `TIME CPU PROBE PID TID COMM NAME=VALUE…` with tabs between.

use std::borrow::Cow;

use super::bad_line::BadLine;

/// Maximum number of arguments of an event.
pub(super) const MAX_ARGUMENTS: usize = 100;
/// Maximum length of a name, bytes.
pub(super) const MAX_NAME: usize = 256;

/// An event of the input. What the input does not say is `None`.
#[derive(Debug, PartialEq)]
pub(super) struct ImportedEvent<'a> {
    /// ns.
    pub(super) time: u64,
    pub(super) cpu: Option<u32>,
    pub(super) probe: ProbeName<'a>,
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    pub(super) comm: Option<Cow<'a, [u8]>>,
    pub(super) arguments: Vec<ImportedArgument<'a>>,
}

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProbeName<'a> {
    /// The program, if the name has it.
    pub(super) file: &'a str,
    pub(super) provider: &'a str,
    pub(super) name: &'a str,
    /// Whether it is an SDT probe.
    pub(super) is_sdt: bool,
}

/// An argument.
#[derive(Debug, PartialEq)]
pub(super) struct ImportedArgument<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) value: ImportedValue<'a>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ImportedValue<'a> {
    /// A decimal integer; its text is the shortest one of the number.
    Integer(i128),
    /// An integer of at most six digits, as `%g` prints floats without a fraction, too.
    Whole(i32),
    /// An integer in hexadecimal.
    Hex(u64),
    /// An integer of an enumeration.
    Labelled { number: i128, label: String },
    /// A float.
    Float(f64),
    /// Anything else.
    Text(Cow<'a, [u8]>),
}

impl<'a> ImportedEvent<'a> {
    /// Parses the text of a `printf`.
    pub(super) fn parse(text: &'a str) -> Result<Self, BadLine> {
        let text = text.strip_suffix('\n').ok_or(BadLine::NoEnd)?;
        let mut fields = text.split('\t');
        let mut next = |what| {
            fields.next().ok_or(BadLine::Field {
                what,
                found: String::new(),
            })
        };
        let time = number(next("a time in ns")?, "a time in ns")?;
        let cpu = number(next("a CPU")?, "a CPU")?;
        let probe = next("a probe")?;
        let probe = ProbeName::parse(probe).ok_or_else(|| BadLine::field("a probe", probe))?;
        let pid = number(next("a process id")?, "a process id")?;
        let tid = number(next("a thread id")?, "a thread id")?;
        let mut comm = Cow::Borrowed(next("the name of a thread")?.as_bytes());
        let mut arguments: Vec<ImportedArgument<'a>> = Vec::new();
        for field in fields {
            match ImportedArgument::parse(field) {
                Some(argument) => {
                    if arguments.iter().any(|known| known.name == argument.name) {
                        return Err(BadLine::field(
                            "another name of an argument",
                            &argument.name,
                        ));
                    }
                    arguments.push(argument);
                }
                // A tab in a text.
                None => match arguments.last_mut() {
                    Some(last) => last.value.append(field),
                    None => append(&mut comm, field),
                },
            }
            if arguments.len() > MAX_ARGUMENTS {
                return Err(BadLine::TooManyArguments);
            }
        }
        Ok(Self {
            time,
            cpu: Some(cpu),
            probe,
            pid: Some(pid),
            tid: Some(tid),
            comm: Some(comm),
            arguments,
        })
    }
}

impl<'a> ProbeName<'a> {
    /// `usdt:PATH:PROVIDER:NAME`, `usdt:PATH:NAME`, `sdt_PROVIDER:NAME`, or another kind of probe: `KIND:…:NAME`.
    fn parse(text: &'a str) -> Option<Self> {
        let (rest, name) = text.rsplit_once(':')?;
        let (kind, place) = rest.split_once(':').unwrap_or((rest, ""));
        let sdt = |file, provider| Self {
            file,
            provider,
            name,
            is_sdt: true,
        };
        let found = if let Some(provider) = rest.strip_prefix("sdt_") {
            sdt("", provider)
        } else if kind == "usdt" {
            match place.rsplit_once(':') {
                Some((file, provider)) => sdt(file, provider),
                None => sdt(place, "usdt"),
            }
        } else if kind == "tracepoint" {
            Self {
                file: "",
                provider: place,
                name,
                is_sdt: false,
            }
        } else {
            Self {
                file: place,
                provider: kind,
                name,
                is_sdt: false,
            }
        };
        found.is_usable().then_some(found)
    }

    /// `sdt_PROVIDER:NAME`, `PROVIDER:NAME`, or a name alone.
    pub(super) fn of_event(text: &'a str) -> Option<Self> {
        const NO_PROVIDER: &str = "ctf";
        let (provider, name) = text.split_once(':').unwrap_or((NO_PROVIDER, text));
        let sdt = provider.strip_prefix("sdt_");
        let found = Self {
            file: "",
            provider: sdt.unwrap_or(provider),
            name,
            is_sdt: sdt.is_some(),
        };
        found.is_usable().then_some(found)
    }

    fn is_usable(&self) -> bool {
        let is_short = |part: &str| (1..=MAX_NAME).contains(&part.len());
        is_short(self.provider) && is_short(self.name)
    }

    /// The name of its event.
    pub(super) fn event(&self) -> String {
        let prefix = if self.is_sdt { "sdt_" } else { "" };
        format!("{prefix}{}:{}", self.provider, self.name)
    }
}

impl<'a> ImportedArgument<'a> {
    /// `NAME=VALUE`, `NAME:s=TEXT` or `NAME:f=FLOAT`; `None` if it does not begin so.
    fn parse(field: &'a str) -> Option<Self> {
        let (left, value) = field.split_once('=')?;
        let (name, kind) = left.split_once(':').unwrap_or((left, ""));
        if !is_name(name) {
            return None;
        }
        let value = match kind {
            "" => ImportedValue::guess(value),
            "s" => ImportedValue::Text(Cow::Borrowed(value.as_bytes())),
            "f" => ImportedValue::Float(value.parse().ok()?),
            _ => return None,
        };
        Some(Self {
            name: Cow::Borrowed(name),
            value,
        })
    }
}

impl<'a> ImportedValue<'a> {
    fn guess(text: &'a str) -> Self {
        let number: Option<i128> = text.parse().ok();
        // Other texts, such as 007 and +1, could not be shown again.
        match number
            .filter(fits)
            .filter(|number| number.to_string() == text)
        {
            Some(number) => Self::Integer(number),
            None => Self::Text(Cow::Borrowed(text.as_bytes())),
        }
    }

    /// Appends a tab and more: the value is a text with a tab.
    fn append(&mut self, more: &str) {
        let mut text = self.text().into_owned();
        text.push(b'\t');
        text.extend(more.as_bytes());
        *self = Self::Text(Cow::Owned(text));
    }

    /// As written.
    pub(super) fn text(&self) -> Cow<'_, [u8]> {
        let owned = |text: String| Cow::Owned(text.into_bytes());
        match self {
            Self::Integer(number) => owned(number.to_string()),
            Self::Whole(number) => owned(number.to_string()),
            Self::Hex(number) => owned(format!("{number:#x}")),
            Self::Labelled { label, .. } => Cow::Borrowed(label.as_bytes()),
            Self::Float(number) => owned(number.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }

    /// The integer, if it is one.
    pub(super) fn integer(&self) -> Option<i128> {
        match *self {
            Self::Integer(number) | Self::Labelled { number, .. } => Some(number),
            Self::Whole(number) => Some(number.into()),
            Self::Hex(number) => Some(number.into()),
            Self::Float(_) | Self::Text(_) => None,
        }
    }
}

/// Whether an argument can have this name.
pub(super) fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(is_inner) && name.len() <= MAX_NAME
}

/// Whether 64 bits can have this value.
pub(super) fn fits(number: &i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number)
}

fn append(text: &mut Cow<'_, [u8]>, more: &str) {
    let text = text.to_mut();
    text.push(b'\t');
    text.extend(more.as_bytes());
}

fn number<T: std::str::FromStr>(text: &str, what: &'static str) -> Result<T, BadLine> {
    text.parse().map_err(|_| BadLine::field(what, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event() {
        let text =
            "123\t1\tusdt:/usr/bin/a:b:c:d\t7\t8\tmy\tname\tn=-5\tq=a\tb\tm:s=12\tx:f=1.5\to=007\n";
        let event = ImportedEvent::parse(text).unwrap();
        assert_eq!(
            (event.time, event.cpu, event.pid, event.tid),
            (123, Some(1), Some(7), Some(8))
        );
        assert_eq!(event.comm.as_deref(), Some(&b"my\tname"[..]));
        assert_eq!(event.probe.file, "/usr/bin/a:b");
        assert_eq!(event.probe.event(), "sdt_c:d");
        let values: Vec<_> = event.arguments.iter().map(|one| &one.value).collect();
        let text = |text: &'static str| ImportedValue::Text(Cow::Borrowed(text.as_bytes()));
        let expected = [
            ImportedValue::Integer(-5),
            text("a\tb"),
            text("12"),
            ImportedValue::Float(1.5),
            text("007"),
        ];
        assert_eq!(values, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn probes_of_other_kinds() {
        let event = |text| ProbeName::parse(text).map(|probe| probe.event());
        for (text, expected) in [
            ("tracepoint:sched:sched_switch", "sched:sched_switch"),
            ("uprobe:/bin/bash:readline", "uprobe:readline"),
            ("kprobe:vfs_read", "kprobe:vfs_read"),
            ("sdt_app:done", "sdt_app:done"),
            ("usdt:/bin/x:done", "sdt_usdt:done"),
        ] {
            assert_eq!(event(text).as_deref(), Some(expected));
        }
        for wrong in ["", "BEGIN", ":", "usdt:/x:", "tracepoint:x"] {
            assert_eq!(event(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn probes_by_the_names_of_events() {
        let event = |text| ProbeName::of_event(text).map(|probe| (probe.event(), probe.is_sdt));
        for (text, expected, is_sdt) in [
            ("app:request__start", "app:request__start", false),
            ("sdt_app:done", "sdt_app:done", true),
            ("a:b:c", "a:b:c", false),
            ("sched_switch", "ctf:sched_switch", false),
        ] {
            assert_eq!(event(text), Some((expected.to_owned(), is_sdt)));
        }
        for wrong in ["", ":", "a:", ":b", "sdt_:b"] {
            assert_eq!(event(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_event() {
        for wrong in [
            "",
            "\n",
            "hello\n",
            "1\t2\n",
            "1\t0\tkprobe:x\t1\t1\ta",
            "-1\t0\tkprobe:x\t1\t1\ta\n",
            "1\t0\tkprobe:x\t1\t1\ta\tn=1\tn=2\n",
            "1\t0\tkprobe:x\t99999999999\t1\ta\n",
        ] {
            assert!(ImportedEvent::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
