//! What a file takes.

use std::collections::HashSet;

use usdtrec_format::Probe;

/// Numbers of what is planted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceCount {
    /// Number of files.
    pub files: usize,
    /// A site has at most one link.
    pub sites: usize,
    /// Forms of probes: each is an event of the trace.
    pub events: usize,
    /// Different argument strings: each takes a part of a program, which the kernel verifies.
    pub forms: usize,
    /// Arguments of all sites.
    pub arguments: usize,
}

impl PlaceCount {
    /// That of a file with these probes.
    pub fn of_probes<'p>(probes: impl Iterator<Item = &'p Probe>) -> Self {
        let mut need = Self {
            files: 1,
            ..Self::default()
        };
        let mut all_forms: HashSet<&str> = HashSet::new();
        for probe in probes {
            let forms: HashSet<&str> = probe.sites.iter().map(|site| &*site.args).collect();
            need.events += forms.len();
            all_forms.extend(forms);
            need.sites += probe.sites.len();
            let arguments = probe.sites.iter().map(|site| words(&site.args));
            need.arguments = arguments.fold(need.arguments, usize::saturating_add);
        }
        need.forms = all_forms.len();
        need
    }

    /// Each number, with what it is of.
    pub(super) const fn parts(self) -> [(&'static str, usize); 5] {
        [
            ("files", self.files),
            ("sites", self.sites),
            ("events", self.events),
            ("different lists of arguments", self.forms),
            ("arguments", self.arguments),
        ]
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_add(other.files),
            sites: self.sites.saturating_add(other.sites),
            events: self.events.saturating_add(other.events),
            forms: self.forms.saturating_add(other.forms),
            arguments: self.arguments.saturating_add(other.arguments),
        }
    }

    pub(super) const fn minus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_sub(other.files),
            sites: self.sites.saturating_sub(other.sites),
            events: self.events.saturating_sub(other.events),
            forms: self.forms.saturating_sub(other.forms),
            arguments: self.arguments.saturating_sub(other.arguments),
        }
    }

    /// What is free again when its probes are detached.
    pub(super) const fn given_back(self) -> Self {
        Self {
            events: 0,
            arguments: 0,
            ..self
        }
    }

    /// The number that exceeds that of a maximum, what it is of, and the maximum.
    pub fn beyond(self, most: Self) -> Option<(usize, &'static str, usize)> {
        let mut parts = self.parts().into_iter().zip(most.parts());
        parts
            .find_map(|((what, number), (_, most))| (number > most).then_some((number, what, most)))
    }
}

/// Number of operands of an argument string, or more.
fn words(arguments: &str) -> usize {
    arguments.split_ascii_whitespace().count()
}
