//! Which fields a line has, in the words of perf script's `-F`.

use std::str::FromStr;

use usdtrec_trace::field_error::FieldError;
use usdtrec_trace::fields::{FIELDS, Field, Fields};
use usdtrec_trace::session::events::Event;

use crate::script::arguments::ArgumentChoice;

/// Fields of perf script that are not supported, as in its `-F`, with the reason.
const OTHERS: [(&str, &str); 8] = [
    (
        "addr,weight,data_src,phys_addr,data_page_size,code_page_size,ins_lat,retire_lat",
        "hits of probes are recorded without it",
    ),
    (
        "brstack,brstacksym,brstackoff,brstackinsn,brstackinsnlen,brstackdisasm,brcntr",
        "hits of probes are recorded without the branches before them",
    ),
    (
        "flags,callindent,insn,insnlen,disasm,ipc,synth",
        "it is decoded from traces of instructions",
    ),
    ("srccode", "source files are not read; there is srcline"),
    (
        "iregs,uregs",
        "registers are shown as the arguments that they hold; perf script -F uregs shows those in the file",
    ),
    (
        "misc",
        "the mode of the CPU is not kept; hits of probes are in user mode",
    ),
    (
        "metric,bpf-output",
        "it is of events that count or write, not of probes",
    ),
    (
        "machine_pid,vcpu,dsoff",
        "traces of guests and offsets in files are not shown",
    ),
];

/// Kinds of events that may precede a list in perf, with a colon.
const KINDS: [&str; 5] = ["hw", "sw", "trace", "raw", "synth"];

/// Which fields are requested: a list, or changes of what is shown by default (`+ip,-cpu`). In both,
/// `args.NAME` is an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChoice {
    only: Option<Fields>,
    added: Fields,
    removed: Fields,
    pub(crate) arguments: ArgumentChoice,
}

impl FieldChoice {
    /// The fields, given those that are shown by default.
    #[must_use]
    pub fn apply(&self, default: Fields) -> Fields {
        let chosen = self.only.unwrap_or(default);
        chosen.with(self.added).without(self.removed)
    }

    /// The fields that text shows of an event: those requested, else perf's, without what its samples do not have.
    /// `chain` says whether its call chains are shown.
    pub(crate) fn of_event(&self, event: &Event, chain: bool) -> Fields {
        let default = if event.probe.is_some() || event.is_tracepoint() {
            Fields::TRACEPOINT
        } else {
            Fields::OTHER
        };
        let places = if chain { Fields::PLACE.0 } else { 0 };
        let chosen = self.apply(Fields(default.0 | places));
        Fields(chosen.0 & event.sampled_fields().0)
    }

    /// Whether a field is left out on request.
    pub(crate) const fn removes(&self, field: Field) -> bool {
        self.removed.has(field)
    }

    /// Whether a field is shown on request.
    pub(crate) fn asks_for(&self, field: Field) -> bool {
        self.only.is_some_and(|only| only.has(field)) || self.added.has(field)
    }

    /// Whether it is a list of all that is shown.
    #[must_use]
    pub const fn is_list(&self) -> bool {
        self.only.is_some()
    }

    /// This choice, changed by a later one: a list replaces it, signs change it.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        if later.is_list() {
            return later;
        }
        Self {
            added: self.added.without(later.removed).with(later.added),
            removed: self.removed.without(later.added).with(later.removed),
            only: self.only,
            arguments: self.arguments.then(later.arguments),
        }
    }
}

impl FromStr for FieldChoice {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let mut choice = Self::default();
        let mut all = false;
        for word in text.split(',').map(str::trim) {
            let (set, name, removed) = if let Some(name) = word.strip_prefix('+') {
                (&mut choice.added, name, false)
            } else if let Some(name) = word.strip_prefix('-') {
                (&mut choice.removed, name, true)
            } else {
                (choice.only.get_or_insert_default(), word, false)
            };
            if let Some(argument) = name.strip_prefix("args.") {
                choice.arguments.push(argument, removed)?;
                if !removed {
                    *set = set.with(Fields::from_slice(&[Field::Args]));
                }
                continue;
            }
            let field = Field::named(name).ok_or_else(|| unknown(name))?;
            all |= field == Field::Args;
            *set = set.with(Fields::from_slice(&[field]));
        }
        if all && choice.arguments.is_list() {
            return Err(FieldError::AllArguments);
        }
        if choice.only.is_some() && choice.added.with(choice.removed) != Fields::default() {
            return Err(FieldError::Mixed);
        }
        Ok(choice)
    }
}

/// Why a name of perf's is not supported here.
pub(crate) fn refused(name: &str) -> Option<FieldError> {
    let is_it = |names: &str| names.split(',').any(|known| known == name);
    let (_, reason) = OTHERS.iter().find(|(names, _)| is_it(names))?;
    Some(FieldError::OfPerf {
        name: name.to_owned(),
        reason,
    })
}

/// The names of the fields.
pub(crate) fn names() -> Vec<&'static str> {
    let names = FIELDS.iter().map(|spec| spec.name);
    names.chain(["trace"]).collect()
}

fn unknown(name: &str) -> FieldError {
    let kind = name.split_once(':').map(|(kind, _)| kind);
    if kind.is_some_and(|kind| KINDS.contains(&kind)) {
        return FieldError::OfOneKind(name.to_owned());
    }
    refused(name).unwrap_or_else(|| FieldError::Unknown {
        name: name.to_owned(),
        known: names().join(","),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> FieldChoice {
        text.parse().unwrap()
    }

    #[test]
    fn a_list_replaces_and_signs_change() {
        let expected = Fields::from_slice(&[Field::Comm, Field::Ip, Field::Args]);
        assert_eq!(choice("comm,ip,trace").apply(Fields::OTHER), expected);
        let expected = Fields::from_slice(&[
            Field::Comm,
            Field::Tid,
            Field::Pid,
            Field::Cpu,
            Field::Event,
        ]);
        let changed = choice("+pid,-time,-args");
        assert_eq!(changed.apply(Fields::TRACEPOINT), expected);
        assert_eq!(FieldChoice::default().apply(Fields::DATA), Fields::DATA);
    }

    #[test]
    fn a_later_list_replaces_and_later_signs_change() {
        let apply = |choices: [&str; 2]| {
            let [first, later] = choices.map(choice);
            first.then(later).apply(Fields::DATA)
        };
        let of = Fields::from_slice;
        assert_eq!(apply(["pid,time", "comm"]), of(&[Field::Comm]));
        assert_eq!(
            apply(["pid,time", "+comm,-pid"]),
            of(&[Field::Comm, Field::Time])
        );
        let expected = Fields::DATA.without(of(&[Field::Cpu]));
        assert_eq!(apply(["-cpu,-pid", "+pid"]), expected);
    }

    #[test]
    fn arguments_are_chosen_one_by_one() {
        for text in ["args.url,comm,args.arg3", "+args.url,+args.arg3"] {
            let choice = choice(text);
            assert!(choice.apply(Fields::default()).has(Field::Args));
            assert_eq!(choice.arguments.names(), ["url", "arg3"]);
        }
        let without = choice("-args.url");
        assert_eq!(without.apply(Fields::DATA), Fields::DATA);
        assert_eq!(without.arguments.names(), ["url"]);
        for text in ["args.url,args", "args,args.url", "args.", "+args.a,-args.b"] {
            assert!(text.parse::<FieldChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_and_mixed_fields_are_refused() {
        let refused = |text: &str| text.parse::<FieldChoice>().unwrap_err().to_string();
        let error = refused("comm,foo");
        assert!(
            error.contains("\"foo\"") && error.contains("symoff"),
            "{error}"
        );
        refused("comm,+pid");
        refused("");
        assert!(refused("trace:comm").contains("TYPE:FIELDS"));
    }

    /// The names that perf script 6.1 lists.
    #[test]
    fn each_of_perfs_fields_is_shown_or_refused_in_words() {
        let perfs = "comm,tid,pid,time,cpu,event,trace,ip,sym,dso,addr,symoff,srcline,period,iregs,uregs,brstack,brstacksym,\
                     flags,data_src,weight,bpf-output,brstackinsn,brstackinsnlen,brstackoff,callindent,insn,insnlen,synth,\
                     phys_addr,metric,misc,srccode,ipc,tod,data_page_size,code_page_size,ins_lat,machine_pid,vcpu";
        for name in perfs.split(',') {
            if let Err(error) = name.parse::<FieldChoice>() {
                assert!(matches!(error, FieldError::OfPerf { .. }), "{error}");
            }
        }
    }
}
