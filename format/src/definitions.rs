//! Probe definitions: the description of the events in a trace, stored in the trace.
//!
//! They are stored as JSON (UTF-8, compressed with zstd; see [`crate::trace`]). Readers ignore members
//! that they do not know.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::arch::Arch;
use crate::build_id::BuildId;
use crate::perf::EventAttr;
use crate::probe::Site;
use crate::raw::RawLayout;
use crate::schema::telemetry::Telemetry;
use crate::schema::{Argument, LockUse, ScriptCall};

/// The description of all probes of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definitions {
    /// Version of the format; [`Definitions::VERSION`].
    pub version: u32,
    /// The program that wrote the trace (`usdtrec 0.1.0`).
    pub producer: String,
    /// Capture engine (`perf`, `bpf`).
    pub engine: String,
    /// Why hits may be missing or duplicated without being counted as lost; `None` if losses are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<String>,
    /// The recording host's boot (`/proc/sys/kernel/random/boot_id`); `None` if it is not known. Clocks of two boots have nothing in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The files with the probes.
    pub files: Vec<FileDefinition>,
    /// The probes, one for each attr of the trace and in the same order, without the metadata event.
    pub probes: Vec<ProbeDefinition>,
}

impl Definitions {
    /// The current version.
    pub const VERSION: u32 = 1;

    /// Maps each sample id to the index of its probe in [`probes`](Self::probes).
    #[must_use]
    pub fn by_id(&self) -> HashMap<u64, usize> {
        let probes = self.probes.iter().enumerate();
        probes
            .flat_map(|(number, probe)| {
                let ids = probe.sites.iter().flat_map(|site| &site.ids);
                ids.map(move |&id| (id, number))
            })
            .collect()
    }

    /// The index of the probe of each event; each probe is one event's. Names of events may be damaged, so ids decide. Where definitions have no
    /// ids, they are in the order of the events, some of which have none.
    #[must_use]
    pub fn probes_of(&self, events: &[EventAttr]) -> Vec<Option<usize>> {
        let by_id = self.by_id();
        let mut is_taken = vec![false; self.probes.len()];
        let mut next = 0;
        let probes = events.iter().map(|event| {
            let mut named = event.ids.iter().filter_map(|id| by_id.get(id).copied());
            let named = named.find(|&probe| !is_taken[probe]);
            let probe = named.or_else(|| {
                let in_order = self.probes.get(next);
                let in_order = in_order.filter(|probe| probe.event == event.name);
                in_order.map(|_| next)
            })?;
            is_taken[probe] = true;
            next = probe + 1;
            Some(probe)
        });
        probes.collect()
    }
}

/// A file with probes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileDefinition {
    /// Absolute path at the time of recording. In JSON it is a string, or a list of bytes if it is not UTF-8.
    #[serde(with = "path_bytes")]
    pub path: PathBuf,
    /// GNU build-id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<BuildId>,
    /// Architecture; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<Arch>,
    /// Whether patterns selected its probes that name no provider, probe or file, as `*:*`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_any_pattern: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A path in JSON.
pub(crate) mod path_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// UTF-8 text, or bytes.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(serializer),
            None => path.as_os_str().as_bytes().serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

/// An event of the trace: the sites of one probe in one file that have the same capture plan. A probe whose
/// sites need different registers or stack sizes has one definition, and one attr, for each such plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeDefinition {
    /// perf's event name, `sdt_PROVIDER:NAME`.
    pub event: String,
    /// Provider as written in the note.
    pub provider: String,
    /// Name as written in the note.
    pub name: String,
    /// When the probe is hit, in one line, from the schema used at recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a program needs for the probe to be hit at all, in one line, from the same schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// Which function of a script is called or returns at a hit, from the same schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ScriptCall>,
    /// What is done with a lock at a hit, from the same schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockUse>,
    /// What a span that begins or ends there is in OpenTelemetry, from the same schema.
    #[serde(default, skip_serializing_if = "Telemetry::is_empty")]
    pub telemetry: Telemetry,
    /// The recording filter, as written; `None` if all hits were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Index into [`Definitions::files`].
    pub file: usize,
    /// What is captured at a hit.
    pub plan: CapturePlan,
    /// The arguments, with names (`arg1`, … if unknown) and types from the schema used at recording;
    /// as many as there are operands at the site with the most.
    pub arguments: Vec<Argument>,
    /// The arguments that are shown, in this order, if an argument list names, chooses or orders them; `None` for all of them. A list
    /// that computes values has a layout of its own ([`RawLayout::listed`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Vec<ShownArgument>>,
    /// The sites.
    pub sites: Vec<SiteDefinition>,
}

/// What is captured at a hit: registers and stack with the perf engine, values with the bpf engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CapturePlan {
    /// `sample_regs_user`: perf's register bits of the recording machine; 0 for none.
    pub registers: u64,
    /// `sample_stack_user`: bytes of stack copied from the stack pointer upwards, a multiple of 8; 0 for none.
    pub stack: u32,
    /// Layout of the values in the sample's raw part; `None` with the perf engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawLayout>,
    /// Whether samples have the user ([`Sample::uid`](crate::perf::Sample::uid)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user: bool,
}

/// Where an address is, as far as symbols and debugging information say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePlace {
    /// The function, from symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionPlace>,
    /// The line, from debugging information (DWARF 5, 6.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceLine>,
}

/// A place in a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionPlace {
    /// The function's name, demangled, without parameters.
    pub name: String,
    /// Bytes from its start.
    pub offset: u64,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Path of the file, as the compiler wrote it; bytes that are not UTF-8 are replaced.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
}

impl CodePlace {
    /// Whether neither function nor line is known.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.function.is_none() && self.source.is_none()
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A site and its sample ids (`PERF_SAMPLE_IDENTIFIER`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteDefinition {
    /// Addresses and argument string.
    #[serde(flatten)]
    pub site: Site,
    /// Ids of the perf events attached to it, one for each CPU, or for each thread and CPU.
    pub ids: Vec<u64>,
    /// Where in the code it is, as the recording host's files say.
    #[serde(default, skip_serializing_if = "CodePlace::is_unknown")]
    pub place: CodePlace,
}

/// An argument of such a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShownArgument {
    /// Index among the probe's own arguments.
    pub argument: usize,
    /// Name in place of the argument's own; `None` for its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ShownArgument {
    /// The argument as it is shown. `arguments` are the probe's own.
    #[must_use]
    pub fn argument_from(&self, arguments: &[Argument]) -> Argument {
        let own = arguments.get(self.argument).cloned();
        let mut argument = own.unwrap_or_else(|| Argument::unnamed(self.argument));
        if let Some(name) = &self.name {
            argument.name.clone_from(name);
        }
        argument
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_replaces_the_own_one_and_nothing_else() {
        let own = [Argument {
            description: Some("where".to_owned()),
            ..Argument::named("port")
        }];
        let shown = |argument, name: Option<&str>| {
            let name = name.map(str::to_owned);
            ShownArgument { argument, name }.argument_from(&own)
        };
        assert_eq!(shown(0, None), own[0]);
        let renamed = shown(0, Some("p"));
        assert_eq!(renamed.name, "p");
        assert_eq!(renamed.description, own[0].description);
        assert_eq!(shown(3, None), Argument::unnamed(3), "of a damaged file");
    }
}
