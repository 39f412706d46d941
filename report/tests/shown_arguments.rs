//! Arguments that a list names, chooses and orders: all views have these names, and the values of the probe's own arguments.

use std::ops::ControlFlow;
use std::path::Path;

use serde_json::json;
use usdtrec_format::ShownArgument;
use usdtrec_format::schema::{Argument, Schemas, toml};
use usdtrec_report::rows::{RowQuestion, RowReader, TraceRow};
use usdtrec_report::{EventSelection, Format, Sources, TraceSession};

use usdtrec_testing::test;

use crate::support::{HIT, REQUEST_INLINED, Recorded, Recording};

/// Two hits, at sites with different operands, of a probe with these arguments shown.
fn recorded(shown: &[(usize, Option<&str>)]) -> Recorded {
    let shown = shown.iter().map(|(argument, name)| ShownArgument {
        argument: *argument,
        name: name.map(str::to_owned),
    });
    let mut recording = Recording::with(Path::new("/opt/app"), |info| {
        let definitions = info.definitions.as_mut().unwrap();
        let request = &mut definitions.probes[0];
        request.arguments[2] = Argument::named("count");
        request.shown = Some(shown.collect());
    });
    recording.hit(HIT);
    recording.hit(crate::support::Hit {
        id: REQUEST_INLINED,
        time: HIT.time + 1,
        ..HIT
    });
    recording.finish()
}

#[test]
fn names_order_and_choice_are_those_of_the_list() {
    let trace = recorded(&[(2, None), (0, Some("status"))]);
    let events = trace.json(&EventSelection::default());
    let args: Vec<_> = events
        .iter()
        .map(|event| event["args"].to_string())
        .collect();
    assert_eq!(
        args,
        [r#"{"count":2,"status":7}"#, r#"{"count":3,"status":-5}"#]
    );
    let text = trace.script_as(Format::Text);
    assert!(text.contains(" count=2 status=7\n"), "{text}");
    let report = trace.report_as(Format::Text, &[]);
    for shown in ["request.count", "request.status"] {
        assert!(report.contains(shown), "{report}");
    }
    for hidden in ["request.arg", "xmm0"] {
        assert!(!report.contains(hidden), "{report}");
    }
    let grouped = trace.report_as(Format::Json, &["event", "status"]);
    assert!(grouped.contains(r#""status":-5"#), "{grouped}");
}

/// What the Python package has are these rows.
#[test]
fn rows_have_the_names_and_types() {
    let trace = recorded(&[
        (1, Some("b")),
        (3, None),
        (0, Some("a")),
        (0, Some("again")),
    ]);
    let session = trace.session();
    let selection = EventSelection::default();
    let reader = RowReader::new(&session, &selection, &RowQuestion::default()).unwrap();
    let mut seen = Vec::new();
    let read = reader.read(|row| {
        if let TraceRow::Event(event) = row {
            let arguments = event.arguments();
            let arguments =
                arguments.map(|argument| format!("{}:{}", argument.name(), argument.kind()));
            seen.push(arguments.collect::<Vec<_>>());
        }
        ControlFlow::Continue(())
    });
    read.unwrap();
    let expected = ["b:u64", "arg4:f64/u32", "a:s32", "again:s32"];
    assert_eq!(seen, [expected; 2]);
}

#[test]
fn filters_know_the_names_of_the_list() {
    let trace = recorded(&[(2, Some("n")), (0, None)]);
    for (filter, count) in [("n == 3", 1), ("arg1 == 7", 1), ("arg1 >= -5", 2)] {
        let selection = EventSelection {
            filter: Some(filter.to_owned()),
            ..EventSelection::default()
        };
        assert_eq!(trace.json(&selection).len(), count, "{filter}");
    }
}

/// A schema that is given says the types of the own arguments, and names those that the list does not.
#[test]
fn a_schema_is_of_the_own_arguments() {
    let trace = recorded(&[(2, Some("n")), (0, None)]);
    let schema = "provider = \"app\"\n[[probe]]\nname = \"request\"\n\
                  arguments = [\"code: u8\", \"size: u64\", \"words: s64\", \"ratio: f64\"]\n";
    let mut schemas = Schemas::default();
    schemas.add("app.toml".to_owned(), toml::parse(schema).probes);
    let sources = Sources {
        schemas,
        ..Sources::default()
    };
    let session = TraceSession::open(&trace.path, &sources).unwrap();
    let request = &session.events().events[0];
    let names: Vec<_> = request.arguments.iter().map(|known| &*known.name).collect();
    assert_eq!(names, ["n", "code"]);
    let values = session.events().sites[1].decoder.values();
    assert_eq!(values[1], usdtrec_format::Value::Unsigned(251));
}

#[test]
fn an_empty_list_shows_none() {
    let trace = recorded(&[]);
    let events = trace.json(&EventSelection::default());
    assert!(events.iter().all(|event| event["args"] == json!({})));
}
