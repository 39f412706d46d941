//! Prints the slowest spans of a name, with the arguments of their beginning: `cargo run -p usdtrec-report --example slowest -- FILE SPAN`.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

use usdtrec_format::escape::escape;
use usdtrec_report::rows::{LossCounts, RowQuestion, RowReader, RowValue, TraceRow};
use usdtrec_report::{EventSelection, HintWords, Sentences, Sources, TraceSession};

/// Spans that are printed.
const MAX_SPANS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(span)) = (arguments.next(), arguments.next()) else {
        return Err("expected a trace and the name of a span".into());
    };
    let session = TraceSession::open(Path::new(&file), &Sources::default())?;
    let question = RowQuestion {
        spans: vec![span],
        ..RowQuestion::default()
    };
    let reader = RowReader::new(&session, &EventSelection::default(), &question)?;
    let mut slowest: Vec<(u64, String)> = Vec::new();
    let notices = reader.read(|row| {
        if let TraceRow::Span(span) = row
            && let Some(duration) = span.duration_ns()
        {
            let least = slowest.last().map_or(0, |(duration, _)| *duration);
            if slowest.len() < MAX_SPANS || duration > least {
                let arguments = span.begin().arguments();
                let arguments =
                    arguments.map(|known| format!(" {}={}", known.name(), shown(&known.value())));
                let line = format!("{} pid {}", span.name(), span.begin().pid());
                slowest.push((duration, line + &arguments.collect::<String>()));
                slowest.sort_by_key(|(duration, _)| std::cmp::Reverse(*duration));
                slowest.truncate(MAX_SPANS);
            }
        }
        ControlFlow::Continue(())
    })?;
    for (duration, line) in slowest {
        println!("{duration:>12} ns  {}", escape(&line));
    }
    for sentence in notices.sentences(HintWords::default()) {
        eprintln!("{sentence}");
    }
    match LossCounts::new(&session).lost() {
        Some(0) => {}
        Some(lost) => eprintln!("{lost} events were lost"),
        None => eprintln!("the number of lost events is not known"),
    }
    Ok(())
}

fn shown(value: &RowValue<'_>) -> String {
    match value {
        RowValue::Signed(number) => number.to_string(),
        RowValue::Unsigned(number) => number.to_string(),
        RowValue::Float32(number) => number.to_string(),
        RowValue::Float64(number) => number.to_string(),
        RowValue::Bool(is) => is.to_string(),
        RowValue::Address(address) => format!("{address:#x}"),
        RowValue::Word { word, .. } => word.clone(),
        RowValue::String(string) => string.text().into_owned(),
        RowValue::Bytes { bytes, .. } => format!("{bytes:02x?}"),
        RowValue::Missing(reason) => format!("<{reason}>"),
    }
}
