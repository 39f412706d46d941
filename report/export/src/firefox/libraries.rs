//! The files that frames are in.

use std::path::Path;

use foldhash::HashMap;
use usdtrec_format::BuildId;
use usdtrec_trace::process::{Dso, DsoId};
use usdtrec_trace::session::TraceSession;
use usdtrec_view::text::buffer::Text;

use crate::firefox::json_table::put_list;
use crate::frame_file::path_text;

/// Files by number.
#[derive(Default)]
pub(crate) struct Libraries {
    numbers: HashMap<DsoId, u32>,
    files: Vec<Dso>,
}

impl Libraries {
    /// The number of a file.
    pub(crate) fn number(&mut self, file: DsoId, session: &TraceSession) -> u32 {
        let next = self.files.len() as u32;
        let files = &mut self.files;
        *self.numbers.entry(file).or_insert_with(|| {
            let known = session.mappings().file(file).cloned();
            files.push(known.unwrap_or_else(|| Dso {
                path: Path::new("").into(),
                build_id: None,
                is_data: false,
            }));
            next
        })
    }

    /// Names of all files without their directories.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + use<> {
        let names: Vec<String> = self.files.iter().map(name).collect();
        names.into_iter()
    }

    /// Appends the member `libs`.
    pub(crate) fn put(&self, machine: &str, out: &mut Text) {
        out.string("\"libs\":");
        put_list(&self.files, out, |file, out| {
            let (name, path) = (name(file), path_text(&file.path));
            let id = file.build_id.as_ref();
            for (key, value) in [
                ("{\"arch\":", machine),
                (",\"name\":", &name),
                (",\"path\":", &path),
                (",\"debugName\":", &name),
                (",\"debugPath\":", &path),
                (
                    ",\"breakpadId\":",
                    &id.map_or_else(String::new, breakpad_id),
                ),
            ] {
                out.string(key);
                out.json_string(value);
            }
            out.string(",\"codeId\":");
            match id {
                Some(id) => out.json_string(&hex(id.as_bytes())),
                None => out.fixed(b"null"),
            }
            out.byte(b'}');
        });
    }
}

fn name(file: &Dso) -> String {
    let name = file.path.file_name().unwrap_or(file.path.as_os_str());
    path_text(Path::new(name)).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = Text::default();
    text.hex_bytes(bytes);
    text.into_string()
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
