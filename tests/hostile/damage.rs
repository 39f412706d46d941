//! Small traces damaged everywhere, shown in every way.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use usdtrec_format::trace::Compression;
use usdtrec_report::Format;
use usdtrec_report::question::Question;
use usdtrec_report::report::{self as answers, ReportOptions};
use usdtrec_report::script::{self, ScriptOptions};
use usdtrec_report::{
    AnswerQuestions as _, EventSelection, HintWords, Sentences, Sources, TraceSession,
};

use usdtrec_testing::is_deep;

use crate::fuzz::{compact::compact, records, report};

fn traces() -> [Vec<u8>; 2] {
    [
        compact(records::trace(Compression::Zstd(1), false)),
        compact(records::trace(Compression::None, true)),
    ]
}

#[test]
fn every_prefix_is_shown() {
    let step = if is_deep() { 5 } else { 11 };
    for bytes in traces() {
        for len in (0..bytes.len()).step_by(step) {
            report::run(&bytes[..len]);
        }
    }
}

#[test]
fn every_flip_is_shown() {
    // More bytes of the one than of the other, whose records are not compressed and repeat.
    let steps = if is_deep() { [1, 3] } else { [7, 19] };
    for (bytes, step) in traces().into_iter().zip(steps) {
        let mut bytes = bytes;
        for at in (0..bytes.len()).step_by(step) {
            let mask = [0x01, 0x80, 0xff][at / step % 3];
            bytes[at] ^= mask;
            report::run(&bytes);
            bytes[at] ^= mask;
        }
    }
}

#[test]
fn every_extreme_is_shown() {
    let steps = if is_deep() { [4, 8] } else { [20, 36] };
    for (bytes, step) in traces().into_iter().zip(steps) {
        let mut bytes = bytes;
        for (number, at) in (0..bytes.len() - 8).step_by(step).enumerate() {
            let before = *bytes[at..].first_chunk::<8>().unwrap();
            let word = u32::from_le_bytes([before[0], before[1], before[2], before[3]]);
            let extremes = [
                0,
                1,
                u32::MAX,
                u32::MAX >> 1,
                word.wrapping_add(1),
                word.wrapping_sub(1),
            ];
            bytes[at..at + 4].copy_from_slice(&extremes[number % 6].to_le_bytes());
            report::run(&bytes);
            bytes[at..at + 8].copy_from_slice(&[0xff; 8]);
            report::run(&bytes);
            bytes[at..at + 8].copy_from_slice(&before);
        }
    }
}

/// All that is printed of a trace, and the notices beside it. An error is a notice.
fn shown(file: &File) -> (String, Vec<String>) {
    let opened = TraceSession::from_file(
        file.try_clone().unwrap(),
        Path::new("trace"),
        &Sources::default(),
    );
    let session = match opened {
        Ok(session) => session,
        Err(error) => return (String::new(), vec![error.to_string()]),
    };
    let mut out = Vec::new();
    let options = ScriptOptions {
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let selection = EventSelection::default();
    let scripted = script::print(&session, &selection, &options, &mut out).unwrap();
    let options = ReportOptions {
        format: Format::Json,
        ..ReportOptions::default()
    };
    let reported = session.answer(&selection, &Question::Summary).unwrap();
    answers::write(&reported, &options, &mut out).unwrap();
    let sentences = [&scripted, &reported.notices];
    let sentences = sentences
        .iter()
        .flat_map(|notices| notices.sentences(HintWords::default()));
    (String::from_utf8(out).unwrap(), sentences.collect())
}

/// Bytes of the head, of the last feature table and of the last node (each byte in deep tests): what is printed is the same, or there is a notice, and
/// no flip costs an event or an argument.
#[test]
fn no_flip_in_the_head_is_silent() {
    // More bytes of the one than of the other.
    let steps = if is_deep() { [1, 7] } else { [5, 29] };
    let traces = [(Compression::Zstd(1), true), (Compression::None, false)];
    for ((compression, finish), step) in traces.into_iter().zip(steps) {
        let bytes = records::trace(compression, finish);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        let (whole, notices) = shown(&file);
        let arguments = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.contains("\"args\":{"));
            let tail = |line: &str| line.split_once("\"args\":{").unwrap().1.to_owned();
            lines.map(tail).collect()
        };
        let values = arguments(&whole);
        assert!(values.len() >= 10, "{}", values.len());
        let head_end = bytes[..65536].iter().rposition(|&byte| byte != 0).unwrap();
        let data_end = 65536 + u64::from_le_bytes(*bytes[48..].first_chunk().unwrap()) as usize;
        for at in (0..=head_end).chain(data_end..bytes.len()).step_by(step) {
            let mask = [0x01, 0x20, 0x80][at % 3];
            file.write_all_at(&[bytes[at] ^ mask], at as u64).unwrap();
            let (text, told) = shown(&file);
            file.write_all_at(&[bytes[at]], at as u64).unwrap();
            if text == whole {
                continue;
            }
            assert_ne!(told, notices, "offset {at}: {text:.2000}");
            // The first bytes say what the file is, and the place and size of the data where they are.
            if at >= 16 && !(40..56).contains(&at) {
                assert!(
                    arguments(&text) == values,
                    "offset {at}: {told:?}: {text:.2000}"
                );
            }
        }
    }
}
