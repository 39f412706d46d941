//! Frames of stacks in text and JSON.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value as Json, json};
use usdtrec_analysis::stats::keys::stack::{CallStack, FrameName};
use usdtrec_format::escape::escape_bytes;
use usdtrec_trace::unwind::known_cut::KnownCut;

use crate::stack_cut::reason;

/// Between a frame and its caller.
pub(crate) const CALLED_BY: &str = " <- ";

/// A frame in text, not escaped: the function, else the file with the offset, else the address.
pub fn frame_text(frame: &FrameName) -> String {
    match frame {
        FrameName::Function { name, inlined, .. } => match inlined {
            true => format!("{name} (inlined)"),
            false => name.to_string(),
        },
        FrameName::Offset { file, offset } => {
            let base = file.file_name().unwrap_or(file.as_os_str());
            format!("{}+{offset:#x}", base.to_string_lossy())
        }
        FrameName::Address(address) => format!("{address:#x}"),
        FrameName::Script { name, file } => match file {
            Some(file) => {
                let base = file.file_name().unwrap_or(file.as_os_str());
                format!("{name} ({})", base.to_string_lossy())
            }
            None => name.to_string(),
        },
    }
}

/// Why a stack is cut, in brackets, as `script` prints it.
pub fn cut_text(cut: &KnownCut) -> String {
    format!("[cut: {}]", reason(cut))
}

/// A stack in a line, the innermost frame first.
pub(crate) fn stack_line(stack: &CallStack) -> String {
    let frames = stack.frames.iter().map(frame_text);
    let parts: Vec<String> = frames.chain(stack.cut.iter().map(cut_text)).collect();
    parts.join(CALLED_BY)
}

/// The frames of a stack in JSON, the innermost first.
pub(crate) fn stack_json(stack: &CallStack) -> Json {
    stack.frames.iter().map(frame_json).collect()
}

pub(crate) fn frame_json(frame: &FrameName) -> Json {
    match frame {
        FrameName::Function {
            name,
            file,
            inlined: true,
        } => json!({"sym": **name, "dso": path(file), "inlined": true}),
        FrameName::Function { name, file, .. } => json!({"sym": **name, "dso": path(file)}),
        FrameName::Offset { file, offset } => {
            json!({"sym": null, "dso": path(file), "offset": format!("{offset:#x}")})
        }
        FrameName::Address(address) => {
            json!({"sym": null, "dso": null, "ip": format!("{address:#x}")})
        }
        FrameName::Script { name, file } => {
            json!({"sym": **name, "file": file.as_deref().map(path)})
        }
    }
}

fn path(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => escape_bytes(path.as_os_str().as_bytes()).into_owned(),
    }
}
