//! Schemas: a byte for the language, then a text.

use usdtrec_format::schema::{Language, toml};

/// Reads the text; what was read is the same after writing and reading it again.
pub fn run(bytes: &[u8]) {
    let Some((&language, text)) = bytes.split_first() else {
        return;
    };
    let language = [Language::Toml, Language::Dtrace][usize::from(language) % 2];
    let text = String::from_utf8_lossy(text);
    let parsed = language.parse(&text);
    for problem in &parsed.problems {
        assert!(!problem.to_string().is_empty());
    }
    let again = toml::parse(&toml::write(&parsed.probes));
    assert_eq!(again.problems, []);
    assert_eq!(again.probes, parsed.probes);
}
