//! Everything that the report can show of a trace, checked for what any reader of it may rely on.

use std::path::Path;

use usdtrec_report::Format;
use usdtrec_report::question::{
    GroupOrder, Question, Scale, SpanQuestion, StackKind, StackWeight, Subject,
};
use usdtrec_report::report::{self, ReportOptions, StackStyle, TextRoom};
use usdtrec_report::script::{self, ScriptOptions, TimeOrigin};
use usdtrec_report::{
    AnswerQuestions as _, EventSelection, HintWords, Sentences, Sources, TraceSession,
};

const FORMATS: [Format; 3] = [Format::Text, Format::Json, Format::Csv];

/// Shows the trace as lines and summed up, each in one of the many ways, which `seed` chooses.
pub(crate) fn some(path: &Path, seed: u32) {
    let session = match TraceSession::open(path, &Sources::default()) {
        Ok(session) => session,
        Err(error) => return harmless(&error.to_string(), "an error"),
    };
    let seed = seed as usize;
    match seed % 8 {
        0 => parts(&session),
        1..4 => reported(&session, seed / 8),
        _ => {
            let fields = [
                "+ip,+sym,+symoff,+dso,+period",
                "comm,tid,event,args",
                "+args",
            ];
            let template = "{comm:?} {deltatime:>9.3} {sym:.9} {dso:^20} {args:40}";
            let template = (seed / 576 % 2 == 1).then(|| template.parse().unwrap());
            let format = match template {
                Some(_) => Format::Text,
                None => FORMATS[seed / 48 % 3],
            };
            let options = ScriptOptions {
                fields: fields[seed / 8 % 3].parse().unwrap(),
                nanoseconds: (seed / 24).is_multiple_of(2),
                format,
                times: [TimeOrigin::Clock, TimeOrigin::First, TimeOrigin::Previous][seed / 192 % 3],
                template,
                script_stacks: false,
                max_stack: [None, Some(1), Some(3)][seed % 3],
                hide_call_graph: seed.is_multiple_of(5),
                ..ScriptOptions::default()
            };
            check(
                &scripted(&session, &EventSelection::default(), &options),
                options.format,
            );
        }
    }
}

pub(crate) fn scripted(
    session: &TraceSession,
    selection: &EventSelection,
    options: &ScriptOptions,
) -> String {
    let mut out = Vec::new();
    let notices = script::print(session, selection, options, &mut out).unwrap();
    for sentence in notices.sentences(HintWords::default()) {
        harmless(&sentence, "a notice");
    }
    String::from_utf8(out).unwrap()
}

fn reported(session: &TraceSession, seed: usize) {
    let argument = session
        .events()
        .events
        .iter()
        .find_map(|event| event.arguments.first());
    let keys = ["event", "comm", "pid", "tid", "cpu", "dso", "sym"].map(str::to_owned);
    let argument = argument.map_or_else(String::new, |argument| argument.name.clone());
    let groups = |sort: &[String], value: Option<&String>| Question::Groups {
        sort: sort.to_vec(),
        value: value.cloned(),
        top: seed.is_multiple_of(3).then_some(2),
        order: GroupOrder::default(),
    };
    let names = session.events().events.iter();
    let mut names = names.map(|event| event.name.clone());
    let (first, second) = (names.next(), names.next_back());
    let spans = SpanQuestion {
        spans: vec![[first.unwrap_or_default(), second.unwrap_or_default()].join("..")],
        key: if seed.is_multiple_of(5) {
            vec![argument.clone()]
        } else {
            Vec::new()
        },
        by: keys[1..3].to_vec(),
        min: 0,
        top: Some(3),
        order: GroupOrder::P99,
        ..SpanQuestion::default()
    };
    let scales = [Scale::Auto, Scale::Log2, Scale::Linear, Scale::Value];
    let subject = if seed.is_multiple_of(3) {
        Subject::Span(spans.clone())
    } else {
        Subject::Argument(argument.clone())
    };
    let stacks = match seed / 9 % 3 {
        0 => StackWeight::Hits,
        1 => StackWeight::Sum(argument.clone()),
        _ => StackWeight::Spans(spans.clone()),
    };
    let by_stack = ["stack".to_owned(), "caller".to_owned()];
    let question = match seed % 10 {
        0 => Question::Summary,
        1 => groups(&keys, None),
        2 => groups(&keys[1..], Some(&argument)),
        3 => groups(std::slice::from_ref(&argument), Some(&argument)),
        4 => Question::Spans(spans),
        5 => Question::Histogram {
            of: subject,
            scale: scales[seed / 8 % 4],
        },
        6 => Question::Heatmap(subject),
        7 => groups(&by_stack, None),
        8 => Question::Stacks {
            weight: stacks,
            of: StackKind::Auto,
        },
        _ => Question::Rate {
            interval: 1 << (seed % 40),
            sort: keys[..seed % 3].to_vec(),
        },
    };
    let options = ReportOptions {
        format: match question {
            Question::Stacks { .. } => Format::Text,
            _ => FORMATS[seed / 8 % 3],
        },
        stacks: match seed / 30 % 2 {
            0 => StackStyle::Folded,
            _ => StackStyle::default(),
        },
        colours: false,
        hints: HintWords(|hint| format!("{hint:?}")),
        trace: Some(String::new()),
        times_of_day: None,
        room: TextRoom {
            columns: (!seed.is_multiple_of(5)).then_some(40 + seed % 200),
            lines: seed.is_multiple_of(7).then_some(seed % 60),
        },
    };
    let mut out = Vec::new();
    // The name of an argument of an event that never fires is refused, and so are stacks where there are none.
    if let Ok(answer) = session.answer(&EventSelection::default(), &question) {
        report::write(&answer, &options, &mut out).unwrap();
        check(&String::from_utf8(out).unwrap(), options.format);
    }
}

/// What is asked for in parts adds up to no more than the whole.
fn parts(session: &TraceSession) {
    let Some(time) = session.time().filter(|time| time.first < time.last) else {
        return;
    };
    let middle = time.first + (time.last - time.first) / 2;
    let part = |from: Option<u64>, to: Option<u64>| {
        let selection = EventSelection {
            time: Some(usdtrec_report::TimeSpan::Times(from, to)),
            ..EventSelection::default()
        };
        scripted(session, &selection, &ScriptOptions::default())
            .lines()
            .count()
    };
    let parts = part(None, Some(middle)) + part(Some(middle + 1), None);
    let whole = part(None, None);
    assert!(parts <= whole, "{parts} of {whole}");
}

pub(crate) fn check(text: &str, format: Format) {
    for line in text.lines() {
        harmless(line, "a line");
        if format == Format::Json {
            let value: serde_json::Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(value.is_object());
        }
    }
    assert!(text.is_empty() || text.ends_with('\n'));
}

/// Nothing that moves a cursor or turns text around reaches the terminal.
pub(crate) fn harmless(line: &str, what: &str) {
    // perf's lines of callers begin with a tab.
    let line = line.trim_start_matches('\t');
    let harmful =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!line.contains(harmful), "{what}: {line:?}");
}
