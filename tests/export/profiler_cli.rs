//! `--to firefox` as the Firefox Profiler's own loader reads it: its program for terminals, a package of npm.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value as Json, json};

use super::firefox_profile::Profile;
use super::nasty::Nasty;
use crate::common::{Lab, fetch, fetched, need_tool, run, test, wait_until};

/// The package, of the version that was tried.
const PACKAGE: &str = "@firefox-devtools/profiler-cli@0.10.0";

/// The loader with a profile.
struct Loaded<'l> {
    lab: &'l Lab,
    program: PathBuf,
}

impl<'l> Loaded<'l> {
    #[track_caller]
    fn new(lab: &'l Lab, profile: &Path) -> Self {
        need_tool("npm");
        let folder = fetched("profiler-cli", PACKAGE, |folder| {
            let install = ["install", "--silent", "--prefix"];
            let mut npm = lab.at_home(Path::new("npm"), install);
            npm.arg(folder).arg(PACKAGE);
            fetch(npm)
        });
        let folder = folder.join("node_modules/@firefox-devtools/profiler-cli");
        let program = folder.join("dist/profiler-cli.js");
        let loaded = Self { lab, program };
        // A busy machine is slower than it waits for its own process.
        wait_until("the loader", || {
            let mut load = loaded.command(&["load"]);
            load.arg(profile);
            let output = load.output().expect("node");
            let said = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                eprintln!("{said}");
                loaded.stop();
            }
            output.status.success()
        });
        loaded
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.lab.at_home(Path::new("node"), [&self.program]);
        command.args(words);
        command
    }

    fn stop(&self) {
        let _ = self.command(&["stop", "--all"]).output();
    }

    /// Its answer.
    #[track_caller]
    fn ask(&self, words: &[&str]) -> Json {
        let mut command = self.command(words);
        command.arg("--json");
        let answer = run(command).success().stdout;
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A marker: its thread, name, begin in ns after that of the first, length in ns, and fields.
type Seen = (i64, String, u64, Option<u64>, Map<String, Json>);

fn nanoseconds(milliseconds: &Json) -> u64 {
    (milliseconds.as_f64().expect("a time") * 1e6).round() as u64
}

/// The markers as the loader has them.
fn loaded_markers(loaded: &Loaded<'_>) -> Vec<Seen> {
    let info = loaded.ask(&["profile", "info"]);
    let processes = info["processes"].as_array().expect("processes").iter();
    let threads = processes.flat_map(|process| process["threads"].as_array().expect("threads"));
    let mut all = Vec::new();
    for thread in threads {
        let handle = thread["threadHandle"].as_str().expect("a handle");
        let tid = thread["tid"].as_i64().expect("a tid");
        let list = [
            "thread", "markers", "--thread", handle, "--list", "--limit", "0",
        ];
        let answer = loaded.ask(&list);
        for marker in answer["flatMarkers"].as_array().expect("markers") {
            let fields = marker["fields"].as_array().expect("fields").iter();
            let fields = fields.map(|field| {
                let key = field["key"].as_str().expect("a key");
                (key.to_owned(), field["value"].clone())
            });
            let fields: Map<String, Json> = fields.collect();
            // What has no end is as long as the profile.
            let is_open = fields.get("span").is_some_and(|span| *span == "open");
            let length = Some(&marker["duration"]).filter(|length| length.is_number() && !is_open);
            all.push((
                tid,
                marker["name"].as_str().expect("a name").to_owned(),
                nanoseconds(&marker["start"]),
                length.map(nanoseconds),
                fields,
            ));
        }
    }
    in_order(all)
}

/// Those of the file, whose tables are read here.
fn written_markers(profile: &Profile) -> Vec<Seen> {
    let mut all = Vec::new();
    for thread in profile.threads() {
        let table = &thread["markers"];
        for row in 0..table["length"].as_u64().expect("a length") as usize {
            let begin = profile.time(&table["startTime"][row]);
            let end = &table["endTime"][row];
            let mut fields = table["data"][row].as_object().expect("data").clone();
            fields.retain(|key, _| !["type", "cause"].contains(&key.as_str()));
            for value in fields.values_mut() {
                // JSON.stringify writes -0 as 0.
                if value.as_f64() == Some(0.0) {
                    *value = json!(0);
                }
            }
            all.push((
                thread["tid"].as_i64().expect("a tid"),
                profile.string(&table["name"][row]).to_owned(),
                begin,
                (!end.is_null()).then(|| profile.time(end) - begin),
                fields,
            ));
        }
    }
    let first = all.iter().map(|marker| marker.2).min().expect("markers");
    for marker in &mut all {
        marker.2 -= first;
    }
    in_order(all)
}

fn in_order(mut all: Vec<Seen>) -> Vec<Seen> {
    all.sort_by_cached_key(|(tid, name, begin, length, fields)| {
        (
            *tid,
            *begin,
            name.clone(),
            *length,
            json!(fields).to_string(),
        )
    });
    all
}

/// The loader refuses no table, and has every marker with its time and its values.
#[test]
fn the_profilers_own_loader_has_every_marker() {
    let nasty = Nasty::record(100, &["-g"]);
    let exported = nasty.export("firefox", &[]);
    let loaded = Loaded::new(&nasty.lab, &exported);
    let (found, expected) = (
        loaded_markers(&loaded),
        written_markers(&Profile::read(&exported)),
    );
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}
