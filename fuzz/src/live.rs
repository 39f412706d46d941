//! A stream that is shown while it is written, beside the same bytes as a file.

use std::io::Read;
use std::path::Path;

use usdtrec_report::script::{self, ScriptOptions, StreamOutput};
use usdtrec_report::{
    ContextQuestion, EventSelection, HintWords, Sentences, Sources, TraceSession,
};

use super::file::Scratch;
use super::{repair, shown};

/// Shows the stream; where nothing is wrong with it, the file has as many lines.
pub fn run(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    repair::checksums(&mut bytes);
    let options = ScriptOptions::default();
    let selection = EventSelection::default();
    let sources = Sources::default();
    let mut out = Vec::new();
    // It comes in pieces of all lengths.
    let input = Pieces {
        rest: &bytes,
        len: 1,
    };
    let to = StreamOutput {
        out: &mut out,
        lost: &mut |_, _| {},
    };
    let path = Path::new("-");
    let context = ContextQuestion::default();
    let streamed = script::print_stream(input, path, &sources, &selection, &context, &options, to);
    let Ok(streamed) = streamed else {
        return;
    };
    for sentence in streamed.notices.sentences(HintWords::default()) {
        shown::harmless(&sentence, "a notice");
    }
    let text = String::from_utf8(out).unwrap();
    shown::check(&text, options.format);
    let sound = streamed.notices.sentences(HintWords::default()).is_empty();
    let scratch = Scratch::new(&bytes);
    if let (true, Ok(session)) = (sound, TraceSession::open(&scratch.path(), &sources))
        && session.damage().is_empty()
    {
        let file = shown::scripted(&session, &selection, &options);
        assert_eq!(text.lines().count(), file.lines().count());
    }
}

struct Pieces<'a> {
    rest: &'a [u8],
    len: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.len = self.len * 3 % 4093 + 1;
        let len = self.len.min(out.len()).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(len);
        out[..len].copy_from_slice(piece);
        self.rest = rest;
        Ok(len)
    }
}
