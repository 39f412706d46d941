//! A reader of Firefox Profiler's processed profiles, which refuses tables that are not whole.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value as Json, json};

/// Kinds of columns: what their cells may be.
enum Cells<'c> {
    /// Indices of a table of so many rows.
    Indices(usize),
    /// Indices, or `null`.
    IndicesOrNull(usize),
    /// One of these values.
    OneOf(&'c [Json]),
    Any,
}

/// A profile whose tables are whole.
pub(super) struct Profile {
    pub(super) json: Json,
}

/// Rows of a table by column.
fn column<'t>(table: &'t Json, name: &str, cells: &Cells<'_>) -> &'t [Json] {
    let length = table["length"].as_u64().expect("a length") as usize;
    let column = table[name].as_array();
    let column = column.unwrap_or_else(|| panic!("{name}: {table}"));
    assert_eq!(column.len(), length, "{name}");
    for cell in column {
        let is_below = |rows: usize| cell.as_u64().is_some_and(|index| (index as usize) < rows);
        let fits = match cells {
            Cells::Indices(rows) => is_below(*rows),
            Cells::IndicesOrNull(rows) => cell.is_null() || is_below(*rows),
            Cells::OneOf(known) => known.contains(cell),
            Cells::Any => true,
        };
        assert!(fits, "{name}: {cell}");
    }
    column
}

fn rows(table: &Json) -> usize {
    table["length"].as_u64().expect("a length") as usize
}

impl Profile {
    pub(super) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("a file");
        let text = match bytes.starts_with(&[0x1f, 0x8b]) {
            true => {
                let unpacked = Command::new("gzip").arg("-dc").arg(path).output();
                unpacked.expect("gzip").stdout
            }
            false => bytes,
        };
        let json = serde_json::from_slice(&text);
        let profile = Self {
            json: json.expect("JSON"),
        };
        profile.check();
        profile
    }

    fn check(&self) {
        let Json::Object(members) = &self.json else {
            panic!("no object");
        };
        let names: Vec<&str> = members.keys().map(String::as_str).collect();
        assert_eq!(names, ["libs", "meta", "shared", "threads"]);
        assert_eq!(self.json["meta"]["preprocessedProfileVersion"], 60);
        self.check_shared();
        let schemas = self.schemas();
        let categories = self.json["meta"]["categories"]
            .as_array()
            .expect("categories");
        assert_eq!(categories[0]["color"], "grey");
        let strings = self.json["shared"]["stringArray"]
            .as_array()
            .expect("strings");
        for thread in self.threads() {
            let stacks = rows(&self.json["shared"]["stackTable"]);
            column(&thread["samples"], "stack", &Cells::IndicesOrNull(stacks));
            let times = column(&thread["samples"], "time", &Cells::Any);
            let times = times.iter().map(|time| time.as_f64().expect("a time"));
            assert!(times.is_sorted());
            let markers = &thread["markers"];
            column(markers, "name", &Cells::Indices(strings.len()));
            column(markers, "category", &Cells::Indices(categories.len()));
            column(
                markers,
                "phase",
                &Cells::OneOf(&[json!(0), json!(1), json!(2)]),
            );
            for data in column(markers, "data", &Cells::Any) {
                let kind = data["type"].as_str().expect("a type");
                let fields = schemas[kind]["fields"].as_array().expect("fields");
                for key in data.as_object().expect("an object").keys() {
                    let is_known = fields.iter().any(|field| field["key"] == **key);
                    assert!(is_known || key == "type" || key == "cause", "{key}");
                }
                if let Some(cause) = data.get("cause") {
                    assert!((cause["stack"].as_u64().expect("a stack") as usize) < stacks);
                }
            }
            for time in ["startTime", "endTime"] {
                column(markers, time, &Cells::Any);
            }
        }
    }

    fn check_shared(&self) {
        let shared = &self.json["shared"];
        let strings = shared["stringArray"].as_array().expect("strings").len();
        let table = |name: &str| &shared[name];
        let rows_of = |name: &str| rows(table(name));
        let libs = self.json["libs"].as_array().expect("libs").len();
        for (name, columns) in [
            (
                "stackTable",
                vec![
                    ("frame", Cells::Indices(rows_of("frameTable"))),
                    ("prefix", Cells::IndicesOrNull(rows_of("stackTable"))),
                ],
            ),
            (
                "frameTable",
                vec![
                    ("func", Cells::Indices(rows_of("funcTable"))),
                    ("address", Cells::OneOf(&[json!(-1)])),
                    ("nativeSymbol", Cells::OneOf(&[Json::Null])),
                    ("inlineDepth", Cells::Any),
                    ("category", Cells::OneOf(&[Json::Null])),
                    ("subcategory", Cells::OneOf(&[Json::Null])),
                    ("innerWindowID", Cells::OneOf(&[json!(0)])),
                    ("line", Cells::Any),
                    ("column", Cells::Any),
                ],
            ),
            (
                "funcTable",
                vec![
                    ("name", Cells::Indices(strings)),
                    ("source", Cells::IndicesOrNull(rows_of("sources"))),
                    ("resource", Cells::Any),
                    ("isJS", Cells::OneOf(&[json!(false)])),
                    ("relevantForJS", Cells::OneOf(&[json!(false)])),
                    ("lineNumber", Cells::Any),
                    ("columnNumber", Cells::Any),
                ],
            ),
            (
                "resourceTable",
                vec![
                    ("lib", Cells::Indices(libs)),
                    ("name", Cells::Indices(strings)),
                    ("type", Cells::OneOf(&[json!(1)])),
                    ("host", Cells::OneOf(&[Json::Null])),
                ],
            ),
            (
                "sources",
                vec![("filename", Cells::Indices(strings)), ("id", Cells::Any)],
            ),
        ] {
            for (known, cells) in &columns {
                column(table(name), known, cells);
            }
            let members = table(name).as_object().expect("a table");
            assert_eq!(members.len(), columns.len() + 1, "{name}");
        }
        // A frame's caller comes before it.
        let callers = shared["stackTable"]["prefix"].as_array().expect("callers");
        for (stack, caller) in callers.iter().enumerate() {
            assert!(
                caller
                    .as_u64()
                    .is_none_or(|caller| (caller as usize) < stack)
            );
        }
    }

    pub(super) fn threads(&self) -> &[Json] {
        self.json["threads"].as_array().expect("threads")
    }

    /// Schemas of markers by their names.
    pub(super) fn schemas(&self) -> Map<String, Json> {
        let schemas = self.json["meta"]["markerSchema"].as_array();
        let schemas = schemas.expect("schemas").iter();
        let named = schemas.map(|schema| {
            let name = schema["name"].as_str().expect("a name");
            (name.to_owned(), schema.clone())
        });
        let named: Vec<(String, Json)> = named.collect();
        let map: Map<String, Json> = named.iter().cloned().collect();
        assert_eq!(map.len(), named.len(), "one schema of a name");
        map
    }

    pub(super) fn string(&self, index: &Json) -> &str {
        let index = index.as_u64().expect("an index") as usize;
        self.json["shared"]["stringArray"][index]
            .as_str()
            .expect("a string")
    }

    /// Nanoseconds of the trace's clock.
    pub(super) fn time(&self, milliseconds: &Json) -> u64 {
        let first = self.json["meta"]["startTimeAsClockMonotonicNanosecondsSinceBoot"].as_u64();
        let since = milliseconds.as_f64().expect("a time") * 1e6;
        first.expect("the monotonic clock") + since.round() as u64
    }

    /// Names of the frames of a stack, the innermost first.
    pub(super) fn stack(&self, stack: &Json) -> Vec<String> {
        let shared = &self.json["shared"];
        let mut names = Vec::new();
        let mut at = stack.as_u64();
        while let Some(stack) = at {
            let stack = stack as usize;
            let frame = shared["stackTable"]["frame"][stack]
                .as_u64()
                .expect("a frame") as usize;
            let function = shared["frameTable"]["func"][frame]
                .as_u64()
                .expect("a function");
            names.push(
                self.string(&shared["funcTable"]["name"][function as usize])
                    .to_owned(),
            );
            at = shared["stackTable"]["prefix"][stack].as_u64();
        }
        names
    }
}
