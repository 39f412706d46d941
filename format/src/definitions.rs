//! Probe definitions: what a trace file says of the events in it, so that opening it needs nothing else.
//!
//! They are stored as JSON (UTF-8, compressed with zstd; see [`crate::trace`]). Readers ignore members
//! that they do not know.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::schema::Argument;
use crate::{Arch, BuildId, RawLayout, Site};

/// Everything a trace says of its probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definitions {
    /// Version of this form; [`Definitions::VERSION`].
    pub version: u32,
    /// The program that wrote the trace (`usdtrec 0.1.0`).
    pub producer: String,
    /// Engine that captured (`perf`, `bpf`).
    pub engine: String,
    /// Why hits may be missing, or there twice, that are not counted as lost; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncounted: Option<String>,
    /// The files that carry the probes.
    pub files: Vec<FileDefinition>,
    /// The probes, one for each attr of the trace and in their order, without the metadata event.
    pub probes: Vec<ProbeDefinition>,
}

impl Definitions {
    /// The version written here.
    pub const VERSION: u32 = 1;

    /// Which probe, as an index in [`probes`](Self::probes), each sample id belongs to.
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
}

/// A file that carries probes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDefinition {
    /// Absolute path at the time of recording; in JSON text, or the list of its bytes where it is no UTF-8.
    #[serde(with = "path_bytes")]
    pub path: PathBuf,
    /// GNU build-id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<BuildId>,
    /// Architecture; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<Arch>,
}

/// A path in JSON.
mod path_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Text, or bytes that are none.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(serializer),
            None => path.as_os_str().as_bytes().serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

/// One event of the trace: the sites of one probe in one file that are captured alike. A probe whose
/// sites need different registers or stack sizes has one definition, and one attr, for each such plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeDefinition {
    /// perf's event name, `sdt_PROVIDER:NAME`.
    pub event: String,
    /// Provider as written in the note.
    pub provider: String,
    /// Name as written in the note.
    pub name: String,
    /// When it fires, in a line, as the schema in force when the trace was recorded says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a program needs so that the probe fires at all, in a line, as that schema says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// The filter that decided which hits were recorded, as it was written; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Index into [`Definitions::files`].
    pub file: usize,
    /// What a hit hands over.
    pub plan: CapturePlan,
    /// The arguments with their names (`arg1`, … where nothing is known) and what else the schema in force when the
    /// trace was recorded says; as many as the site with the most operands has.
    pub arguments: Vec<Argument>,
    /// The sites.
    pub sites: Vec<SiteDefinition>,
}

/// What a hit of a site hands over: registers and stack with the perf engine, values with the bpf engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CapturePlan {
    /// `sample_regs_user`: perf's register bits of the recording machine; 0 for none.
    pub registers: u64,
    /// `sample_stack_user`: bytes of stack copied from the stack pointer upwards, a multiple of 8; 0 for none.
    pub stack: u32,
    /// Where the values stand in the sample's raw part; `None` with the perf engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawLayout>,
}

/// One site and the sample ids (`PERF_SAMPLE_IDENTIFIER`) that belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteDefinition {
    /// Where it is and its argument string.
    #[serde(flatten)]
    pub site: Site,
    /// Ids of the perf events that watch it, one for each CPU or each thread and CPU.
    pub ids: Vec<u64>,
}
