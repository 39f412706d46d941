//! The functions and lines of sites that a trace names: what symbols and debugging information said on the recording host.

use std::path::PathBuf;

use foldhash::HashMap;
use usdtrec_format::{BuildId, CodePlace, Definitions};

use crate::process::Dso;

/// Functions by file and file offset.
#[derive(Debug, Default)]
pub(crate) struct RecordedFunctions {
    files: Vec<FileFunctions>,
}

#[derive(Debug)]
struct FileFunctions {
    path: PathBuf,
    build_id: Option<BuildId>,
    at: HashMap<u64, CodePlace>,
}

impl RecordedFunctions {
    /// The functions in a trace's definitions.
    pub(crate) fn new(definitions: &Definitions) -> Self {
        let files = definitions.files.iter().map(|file| FileFunctions {
            path: file.path.clone(),
            build_id: file.build_id,
            at: HashMap::default(),
        });
        let mut files: Vec<FileFunctions> = files.collect();
        for probe in &definitions.probes {
            let Some(file) = files.get_mut(probe.file) else {
                continue;
            };
            for site in &probe.sites {
                if let Some(offset) = site.site.offset
                    && !site.place.is_unknown()
                {
                    file.at.insert(offset, site.place.clone());
                }
            }
        }
        Self { files }
    }

    /// The function and the line at an offset of a file that processes mapped.
    pub(crate) fn find(&self, dso: &Dso, offset: u64) -> Option<&CodePlace> {
        let is_it = |file: &&FileFunctions| match (file.build_id, dso.build_id) {
            (Some(recorded), Some(mapped)) => recorded == mapped,
            _ => file.path == dso.path,
        };
        let mut files = self.files.iter().filter(is_it);
        files.find_map(|file| file.at.get(&offset))
    }
}
