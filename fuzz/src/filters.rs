//! Expressions: what is to be captured, and what samples must fit.

use std::sync::OnceLock;

use tempfile::NamedTempFile;
use usdtrec_format::expr::{Capture, EventSpec, Expr};
use usdtrec_format::trace::Compression;
use usdtrec_report::script::ScriptOptions;
use usdtrec_report::{EventSelection, Sources, TraceSession, script};

use super::records;

/// Parses the text as each of them, and filters samples by it.
pub fn run(bytes: &[u8]) {
    static SESSION: OnceLock<(NamedTempFile, TraceSession)> = OnceLock::new();
    let text = String::from_utf8_lossy(bytes);
    if let Ok(expression) = Expr::parse(&text) {
        // Places in the text may move; what it says may not. All its brackets can be more than are taken.
        let said = expression.to_string();
        if let Ok(again) = Expr::parse(&said) {
            assert_eq!(again.to_string(), said);
        }
    }
    let _ = Capture::parse_list(&text);
    let _ = EventSpec::parse(&text);
    let (_, session) = SESSION.get_or_init(|| {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), records::trace(Compression::None, true)).unwrap();
        let session = TraceSession::open(file.path(), &Sources::default()).unwrap();
        (file, session)
    });
    let selection = EventSelection {
        filter: Some(text.into_owned()),
        ..EventSelection::default()
    };
    let mut out = Vec::new();
    if let Err(error) = script::print(session, &selection, &ScriptOptions::default(), &mut out) {
        assert!(!error.to_string().is_empty());
    }
}
