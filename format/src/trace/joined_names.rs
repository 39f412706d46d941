//! Puts the names of functions in several files together.

use std::collections::HashMap;
use std::path::PathBuf;

use indexmap::IndexSet;

use crate::build_id::BuildId;
use crate::code_names::{CodeNames, FileCode, LinedFrame, LinedPlace, NamedPlace, TimedPlace};

/// The names of several files, which are one trace.
#[derive(Debug, Default)]
pub(crate) struct JoinedNames {
    all: CodeNames,
    functions: IndexSet<String>,
    sources: IndexSet<String>,
    files: HashMap<(PathBuf, Option<BuildId>), usize>,
}

impl JoinedNames {
    /// Adds the names of the next file, whose recording began at a time; `None` for the first file.
    pub(crate) fn add(&mut self, names: CodeNames, began: Option<u64>) {
        let functions = numbers(names.functions, &mut self.functions);
        let sources = numbers(names.sources, &mut self.sources);
        // Numbers that a damaged file does not have stay without a name.
        let function = |number: u32| functions.get(number as usize).copied().unwrap_or(u32::MAX);
        let source = |number: u32| sources.get(number as usize).copied().unwrap_or(u32::MAX);
        let named = |place: NamedPlace| NamedPlace {
            function: function(place.function),
            ..place
        };
        let lined = |frame: LinedFrame| LinedFrame {
            function: frame.function.map(function),
            source: frame.source.map(source),
            ..frame
        };
        for file in names.files {
            let renumbered = FileCode {
                places: file.places.into_iter().map(named).collect(),
                lines: file
                    .lines
                    .into_iter()
                    .map(|place| LinedPlace {
                        frames: place.frames.into_iter().map(lined).collect(),
                        ..place
                    })
                    .collect(),
                ..file
            };
            self.add_file(renumbered);
        }
        for mut made in names.made {
            made.places = made.places.into_iter().map(named).collect();
            for timed in &mut made.timed {
                timed.place = named(timed.place);
            }
            if let (Some(began), 0) = (began, made.began) {
                // The process ran already: another one may have had its number in an earlier file.
                let places = made.places.drain(..);
                made.timed.extend(places.map(|place| TimedPlace {
                    since: began,
                    place,
                }));
                for timed in &mut made.timed {
                    timed.since = timed.since.max(began);
                }
            }
            self.all.made.push(made);
        }
    }

    fn add_file(&mut self, file: FileCode) {
        let key = (file.path.clone(), file.build_id);
        let known = self.files.get(&key).copied();
        let known = known.and_then(|at| self.all.files.get_mut(at));
        let Some(known) = known else {
            self.files.insert(key, self.all.files.len());
            self.all.files.push(file);
            return;
        };
        known.symbols = known.symbols.max(file.symbols);
        add_new(&mut known.places, file.places, |place| place.at);
        add_new(&mut known.lines, file.lines, |place| place.at);
        add_new(&mut known.strings, file.strings, |string| string.at);
    }

    /// All names.
    pub(crate) fn into_names(self) -> CodeNames {
        CodeNames {
            functions: self.functions.into_iter().collect(),
            sources: self.sources.into_iter().collect(),
            ..self.all
        }
    }
}

/// The numbers of strings among those of all files.
fn numbers(strings: Vec<String>, known: &mut IndexSet<String>) -> Vec<u32> {
    let strings = strings.into_iter();
    strings
        .map(|string| known.insert_full(string).0 as u32)
        .collect()
}

/// Adds the entries of places that are not known; both are sorted by place.
fn add_new<T>(known: &mut Vec<T>, new: Vec<T>, at: impl Fn(&T) -> u64) {
    let before = known.len();
    for entry in new {
        let of_known = known.get(..before).unwrap_or_default();
        let found = of_known.binary_search_by_key(&at(&entry), &at);
        if found.is_err() {
            known.push(entry);
        }
    }
    if known.len() > before {
        known.sort_by_key(&at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code_names::{KnownSymbols, MadeCode};

    fn file(path: &str, places: &[(u64, u32)]) -> FileCode {
        FileCode {
            path: path.into(),
            build_id: None,
            symbols: KnownSymbols::All,
            places: places
                .iter()
                .map(|&(at, function)| NamedPlace {
                    at,
                    function,
                    within: 0,
                })
                .collect(),
            lines: Vec::new(),
            strings: Vec::new(),
        }
    }

    fn names(functions: &[&str], files: Vec<FileCode>, made: Vec<MadeCode>) -> CodeNames {
        CodeNames {
            functions: functions.iter().map(|&name| name.to_owned()).collect(),
            sources: Vec::new(),
            files,
            made,
        }
    }

    #[test]
    fn each_name_has_one_number() {
        let mut joined = JoinedNames::default();
        joined.add(
            names(&["a", "b"], vec![file("/x", &[(1, 0), (5, 1)])], vec![]),
            None,
        );
        let made = MadeCode {
            pid: 7,
            began: 0,
            places: vec![NamedPlace {
                at: 9,
                function: 1,
                within: 0,
            }],
            timed: Vec::new(),
        };
        let second = names(
            &["b", "c"],
            vec![file("/x", &[(1, 0), (3, 1)]), file("/y", &[(2, 0)])],
            vec![made],
        );
        joined.add(second, Some(100));
        let all = joined.into_names();
        assert_eq!(all.functions, ["a", "b", "c"]);
        let places = |at: usize| -> Vec<(u64, u32)> {
            let places = all.files[at].places.iter();
            places.map(|place| (place.at, place.function)).collect()
        };
        assert_eq!(places(0), [(1, 0), (3, 2), (5, 1)]);
        assert_eq!(places(1), [(2, 1)]);
        assert!(all.made[0].places.is_empty());
        let timed = all.made[0].timed[0];
        assert_eq!((timed.since, timed.place.function), (100, 2));
    }
}
