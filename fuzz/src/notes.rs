//! SDT notes: a byte for class and byte order, then a section.

use usdtrec_format::{Arch, NoteLayout, notes, parse_operands};

/// Decodes every note, and the operands of each.
pub fn run(bytes: &[u8]) {
    let Some((&flags, section)) = bytes.split_first() else {
        return;
    };
    let layout = NoteLayout {
        class64: flags & 1 != 0,
        big_endian: flags & 2 != 0,
    };
    let mut ended = false;
    let mut count = 0;
    for note in notes(section, layout) {
        assert!(!ended, "an error in the walk is the last item");
        count += 1;
        match note {
            Ok(note) => {
                assert!(!note.provider.is_empty() && !note.name.is_empty());
                let text = note.provider.len() + note.name.len() + note.args.len();
                // A byte that is no UTF-8 becomes three.
                assert!(text <= 3 * section.len());
                assert!(parse_operands(&note.args, Some(Arch::X86_64)).len() <= note.args.len());
            }
            Err(error) => {
                assert!(error.offset < section.len());
                assert!(!error.to_string().is_empty());
                ended = error.expected.contains("section") || error.expected.contains("header");
            }
        }
    }
    assert!(count <= section.len() / 12 + 1);
}
