//! A program that hits a probe below a number of frames.

use std::path::PathBuf;

use crate::common::{Build, Lab};

/// The program without frame pointers, as distributions build theirs, and with.
pub(crate) struct Deep {
    pub(crate) without_frame_pointers: PathBuf,
    pub(crate) with_frame_pointers: PathBuf,
}

impl Deep {
    /// Builds both.
    pub(crate) fn make(lab: &Lab) -> Self {
        let omit = Build {
            compiler: "gcc",
            options: &["-O2", "-fomit-frame-pointer"],
        };
        let keep = Build {
            compiler: "gcc",
            options: &["-O2", "-fno-omit-frame-pointer"],
        };
        Self {
            without_frame_pointers: omit.make(lab, "deep.c", "deep"),
            with_frame_pointers: keep.make(lab, "deep.c", "deep-fp"),
        }
    }
}
