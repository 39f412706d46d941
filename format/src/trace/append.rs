//! Appends the names of functions to a trace.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::code_names::{EncodedNames, MAGIC, MAX_JSON, MAX_VALUES, encode};
use super::read_error::ReadError;
use super::reader::Trace;
use crate::code_names::CodeNames;

/// Why names cannot be appended to a trace.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Not a file that a recorder of usdtrec ended, or one that has names.
    #[error(
        "expected the end of a trace that is complete and has no names of functions, found {found} bytes after its index"
    )]
    NotAtEnd {
        /// Bytes.
        found: u64,
    },
    /// The recorder did not end, or the file is not one of usdtrec.
    #[error("expected a trace whose recorder has ended, found one without an end")]
    NotFinished,
    /// There are more names than a trace may have.
    #[error(
        "expected at most {MAX_JSON} bytes of names of functions, with at most {MAX_VALUES} values, found {found} bytes"
    )]
    TooMany {
        /// Bytes.
        found: u64,
    },
    /// Writing failed.
    #[error("names of functions cannot be written at offset {offset}: {source}")]
    Write {
        /// File offset.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
}

/// Appends names to a trace in a file that is open for reading and writing.
///
/// # Errors
/// [`AppendError`]; the trace is as before.
pub fn append_code_names(file: &File, names: &CodeNames) -> Result<(), AppendError> {
    let again = file
        .try_clone()
        .map_err(|source| AppendError::Write { offset: 0, source })?;
    let trace = Trace::from_file(again)?;
    let end = trace.index_end.filter(|_| trace.is_finished());
    let end = end.ok_or(AppendError::NotFinished)?;
    if end != trace.file_len() {
        let found = trace.file_len() - end;
        return Err(AppendError::NotAtEnd { found });
    }
    let write_error = |source| AppendError::Write {
        offset: end,
        source,
    };
    let EncodedNames {
        section: bytes,
        json: found,
        fits,
    } = encode(names).map_err(write_error)?;
    if !fits {
        return Err(AppendError::TooMany { found });
    }
    let magic = MAGIC.len();
    let (head, rest) = bytes.split_at(magic);
    let written = file
        .write_all_at(rest, end + magic as u64)
        .and_then(|()| file.write_all_at(head, end));
    written.map_err(|source| {
        // Bytes after the index are ignored, so a failure is harmless.
        let _ = file.set_len(end);
        write_error(source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_names::{
        FileCode, KnownSymbols, LinedFrame, LinedPlace, MadeCode, NamedPlace, StringInFile,
        TimedPlace,
    };
    use crate::perf::{Attr, EventAttr, SampleType};
    use crate::trace::{Compression, TraceInfo, TraceWriter};

    fn names() -> CodeNames {
        let place = |at| NamedPlace {
            at,
            function: (at % 2) as u32,
            within: 3,
        };
        CodeNames {
            functions: vec!["main".to_owned(), "ns::work".to_owned()],
            sources: vec!["/src/app.c".to_owned()],
            files: vec![FileCode {
                path: "/bin/app".into(),
                build_id: "abcd".parse().ok(),
                symbols: KnownSymbols::All,
                places: (0..90).map(place).collect(),
                lines: vec![LinedPlace {
                    at: 7,
                    frames: vec![
                        LinedFrame {
                            function: Some(1),
                            source: Some(0),
                            line: 12,
                        },
                        LinedFrame::default(),
                    ],
                }],
                strings: vec![
                    StringInFile {
                        at: u64::MAX,
                        bytes: b"a text".to_vec(),
                        cut: false,
                    },
                    StringInFile {
                        at: 8,
                        bytes: vec![0xff, 0x80],
                        cut: true,
                    },
                ],
            }],
            made: vec![MadeCode {
                pid: 17,
                began: 5,
                places: (90..95).map(place).collect(),
                timed: vec![TimedPlace {
                    since: 7,
                    place: place(96),
                }],
            }],
        }
    }

    /// A trace without events whose recorder has ended, or not.
    fn trace(ended: bool) -> File {
        let file = tempfile::tempfile().unwrap();
        let again = file.try_clone().unwrap();
        let attr = Attr {
            sample_type: SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU,
            flags: Attr::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let event = EventAttr {
            attr,
            name: "sdt_app:start".to_owned(),
            ids: vec![7],
        };
        let info = TraceInfo {
            events: vec![event],
            ..TraceInfo::default()
        };
        let writer = TraceWriter::create(again, &info, Compression::Zstd(1)).unwrap();
        if ended {
            writer.finish(&[]).unwrap();
        }
        file
    }

    fn found(file: &File) -> Trace {
        Trace::from_file(file.try_clone().unwrap()).unwrap()
    }

    #[test]
    fn names_are_read_back_and_any_flip_shows() {
        let file = trace(true);
        let end = file.metadata().unwrap().len();
        assert_eq!(found(&file).code_names(), None);
        append_code_names(&file, &names()).unwrap();
        assert_eq!(found(&file).code_names(), Some(&names()));
        assert!(found(&file).damage().is_empty());
        let whole = file.metadata().unwrap().len();
        // The version says nothing yet.
        for at in (end..whole).filter(|at| !(end + 8..end + 12).contains(at)) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
            assert_eq!(found(&file).code_names(), None, "byte {at}");
            assert_eq!(found(&file).damage().is_empty(), at < end + 8, "byte {at}");
            file.write_all_at(&byte, at).unwrap();
        }
        for len in end..whole {
            file.set_len(len).unwrap();
            assert_eq!(found(&file).code_names(), None, "{len} bytes");
        }
    }

    #[test]
    fn names_are_appended_once_and_to_complete_traces_alone() {
        let file = trace(true);
        append_code_names(&file, &names()).unwrap();
        let again = append_code_names(&file, &names()).unwrap_err();
        assert!(matches!(again, AppendError::NotAtEnd { .. }), "{again}");
        assert_eq!(found(&file).code_names(), Some(&names()));
        let killed = trace(false);
        let len = killed.metadata().unwrap().len();
        let error = append_code_names(&killed, &names()).unwrap_err();
        assert!(matches!(error, AppendError::NotFinished), "{error}");
        assert_eq!(killed.metadata().unwrap().len(), len);
    }
}
