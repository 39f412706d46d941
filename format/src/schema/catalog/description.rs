//! The description of a probe, from schemas.

use std::fmt;

use crate::arch::Arch;
use crate::grammar::parse_operands;
use crate::operand::Operand;
use crate::probe::Probe;
use crate::schema::{Argument, Choice, Schemas, conflict};

/// The description of a probe, from schemas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The arguments, as many as there are operands at the site with the most. The type of an argument is removed if a note
    /// contradicts it.
    pub arguments: Vec<Argument>,
    /// The schema and its source.
    pub choice: Choice,
    /// Disagreements between schemas and notes.
    pub disagreements: Vec<Disagreement>,
}

/// A disagreement between a schema and a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// perf's event name.
    pub event: String,
    /// The source of the schema: a file, or [`Schemas::BUNDLED`].
    pub place: String,
    /// Message: both statements, and which one is used.
    pub words: String,
}

impl Schemas {
    /// Describes a probe of a file with this architecture. Parses the argument strings of its sites.
    #[must_use]
    pub fn describe(&self, probe: &Probe, arch: Option<Arch>) -> Description {
        let sites = probe.sites.iter();
        let operands: Vec<_> = sites.map(|site| parse_operands(&site.args, arch)).collect();
        let operands: Vec<&[Operand]> = operands.iter().map(Vec::as_slice).collect();
        self.describe_operands(probe, &operands, arch)
    }

    /// As [`describe`](Self::describe), with the operands of each site, which are parsed already.
    #[must_use]
    pub fn describe_operands(
        &self,
        probe: &Probe,
        operands: &[&[Operand]],
        arch: Option<Arch>,
    ) -> Description {
        let count = operands.iter().map(|site| site.len());
        let count = count.max().unwrap_or(0);
        let choice = self.choose(&probe.provider, &probe.name, count);
        let mut arguments = choice.arguments(count);
        let mut contradicted = vec![false; count];
        let disagreement = |place: &str, words: String| Disagreement {
            event: probe.event(),
            place: place.to_owned(),
            words,
        };
        let misfits = choice.misfits.iter();
        let mut disagreements: Vec<_> = misfits
            .map(|misfit| disagreement(&misfit.place, misfit.to_string()))
            .collect();
        for operands in operands.iter().filter(|_| arch.is_some()) {
            for ((argument, operand), wrong) in
                arguments.iter().zip(*operands).zip(&mut contradicted)
            {
                let conflict = arch.and_then(|arch| conflict(argument, operand, arch));
                *wrong |= conflict.is_some();
                let found = conflict
                    .map(|conflict| disagreement(&choice.place, conflict))
                    .filter(|found| !disagreements.contains(found));
                disagreements.extend(found);
            }
        }
        let wrong = arguments
            .iter_mut()
            .zip(contradicted)
            .filter(|(_, wrong)| *wrong);
        for (argument, _) in wrong {
            argument.kind = None;
        }
        Description {
            arguments,
            choice,
            disagreements,
        }
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.event, self.place, self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Site;
    use crate::schema::toml;

    #[test]
    fn what_the_schema_claims_beyond_the_note_is_told_once() {
        let site = |args: &str| Site {
            pc: 0,
            base: 0,
            semaphore: 0,
            offset: None,
            semaphore_offset: None,
            args: args.to_owned(),
        };
        let probe = Probe {
            provider: "p".to_owned(),
            name: "n".to_owned(),
            sites: vec![
                site("4@%eax -4@%ebx 8@%rcx 1@%dl -4@$0"),
                site("4@%ecx -4@%ebx 8@%rdx 1@%al -4@%edx"),
            ],
        };
        let mut schemas = Schemas::default();
        let one = |arguments: &str| {
            toml::parse(&format!(
                "[[probe]]\nprovider = \"p\"\nname = \"n\"\narguments = [{arguments}]"
            ))
        };
        schemas.add("other", one("\"a\"").probes);
        let text = r#""text: str", "wide: u64", "f: f64", "flag: bool", "long: s64""#;
        schemas.add("file", one(text).probes);
        let described = schemas.describe(&probe, Some(Arch::X86_64));
        let sentences: Vec<_> = described
            .disagreements
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            sentences,
            [
                "sdt_p:n: file: text: the schema says str, the note an integer of 4 bytes, which is taken",
                "sdt_p:n: file: wide: the schema says u64, the note an integer of 4 bytes, which is taken",
                "sdt_p:n: file: f: the schema says f64, the note an integer of 8 bytes, which is taken",
                "sdt_p:n: file: long: the schema says s64, the note an integer of 4 bytes, which is taken",
            ]
        );
        let kinds: Vec<_> = described
            .arguments
            .iter()
            .map(|argument| argument.type_words())
            .collect();
        assert_eq!(kinds, ["?", "?", "?", "bool", "?"]);
        schemas.add("best", one("\"a\"").probes);
        let described = schemas.describe(&probe, Some(Arch::X86_64));
        assert_eq!(described.choice.place, "file");
        assert_eq!(
            described.disagreements[0].words,
            "the schema is for 1 argument, the note has 5: not used"
        );
    }
}
