//! The files that frames are in.

use std::path::Path;

use serde_json::{Value as Json, json};
use usdtrec_format::BuildId;
use usdtrec_trace::process::Dso;

use crate::argument_parts::hex;
use crate::frame_file::path_text;

/// A file, as a member of `libs`.
pub(crate) fn library(file: &Dso, machine: &str) -> Json {
    let (name, path) = (file_name(file), path_text(&file.path));
    let id = file.build_id.as_ref();
    json!({
        "arch": machine,
        "name": name,
        "path": path,
        "debugName": name,
        "debugPath": path,
        "breakpadId": id.map_or_else(String::new, breakpad_id),
        "codeId": id.map(|id| hex(id.as_bytes())),
    })
}

/// The name of a file without its directories.
pub(crate) fn file_name(file: &Dso) -> String {
    let name = file.path.file_name().unwrap_or(file.path.as_os_str());
    path_text(Path::new(name)).into_owned()
}

/// Breakpad's id of an ELF file: the first 16 bytes of its build-id as a GUID of little-endian numbers, and its age, which is 0.
fn breakpad_id(id: &BuildId) -> String {
    let mut guid = [0; 16];
    for (to, from) in guid.iter_mut().zip(id.as_bytes()) {
        *to = *from;
    }
    let [a, b, c, d, e, f, g, h, rest @ ..] = guid;
    let first = [d, c, b, a, f, e, h, g];
    (hex(&first) + &hex(&rest) + "0").to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_little_endian() {
        let id = BuildId::new(&[
            0xb6, 0x74, 0x96, 0xb9, 0x3a, 0xa7, 0x83, 0x34, 0x29, 0x08, 0x63, 0x21, 0x25, 0xa7,
            0x56, 0x74, 0x7d, 0xb6, 0x21, 0xb9,
        ]);
        let id = id.expect("a build-id");
        assert_eq!(breakpad_id(&id), "B99674B6A73A34832908632125A756740");
        let short = BuildId::new(&[1]).expect("a build-id");
        assert_eq!(breakpad_id(&short), "000000010000000000000000000000000");
    }
}
