//! Flame graphs of real stacks: frames weigh what folded lines weigh, and pictures need nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::callers::{folded_lines, record};
use crate::common::{Lab, run, test};

/// The widths of the frames of a picture, by the names of frames from the outermost one.
#[track_caller]
fn widths(picture: &str) -> BTreeMap<String, u64> {
    let (_, picture) = picture.split_once("id=\"frames\"").expect("frames");
    let mut frames: Vec<Frame> = picture.split("<title>").skip(1).map(Frame::parse).collect();
    // The lowest first: its name is that of all.
    frames.sort_by_key(|frame| (std::cmp::Reverse(frame.y), frame.x));
    let mut paths: Vec<(Frame, String)> = Vec::new();
    for frame in frames {
        let below = paths.iter().rev().find(|(below, _)| {
            below.y > frame.y
                && below.x <= frame.x
                && frame.x + frame.width <= below.x + below.width
        });
        let path = match below {
            None => String::new(),
            Some((_, path)) if path.is_empty() => frame.name.clone(),
            Some((_, path)) => format!("{path};{}", frame.name),
        };
        paths.push((frame, path));
    }
    paths
        .into_iter()
        .map(|(frame, path)| (path, frame.width))
        .collect()
}

#[derive(Debug)]
struct Frame {
    name: String,
    y: u64,
    x: u64,
    width: u64,
}

impl Frame {
    /// Of what follows `<title>`.
    #[track_caller]
    fn parse(rest: &str) -> Self {
        let (title, rest) = rest.split_once("</title>").expect("a title");
        let (name, _) = title.rsplit_once(" (").expect("a weight");
        let attribute = |name: &str| {
            let (_, rest) = rest.split_once(&format!(" {name}=\"")).expect(name);
            let (value, _) = rest.split_once('"').expect("a quote");
            value.parse().expect("an integer")
        };
        Self {
            name: name.replace("&lt;", "<").replace("&gt;", ">"),
            y: attribute("y"),
            x: attribute("fg:x"),
            width: attribute("fg:w"),
        }
    }
}

/// The same of folded lines.
fn expected(folded: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut widths = BTreeMap::from([(String::new(), folded.values().sum())]);
    for (stack, weight) in folded {
        let ends = stack.match_indices(';').map(|(at, _)| at);
        for end in ends.chain([stack.len()]) {
            *widths.entry(stack[..end].to_owned()).or_insert(0) += weight;
        }
    }
    widths
}

#[track_caller]
fn draw(lab: &Lab, file: &str, options: &[&str]) -> String {
    let flame = lab.usdtrec([&["flame", file, "-i", "trace"], options].concat());
    flame.success().silent();
    fs::read_to_string(lab.file(file)).expect("a picture")
}

#[test]
fn frames_weigh_what_folded_lines_weigh() {
    let lab = Lab::privileged();
    record(&lab, &["*"], &["--call-graph", "dwarf,8192"]);
    for options in [
        &["-e", "*:hit"][..],
        &["-e", "*:hit", "--value", "arg1"],
        &["--span", "work"],
        &["--span", "work", "--min", "1us"],
        &[],
    ] {
        let picture = draw(&lab, "out.svg", options);
        assert_eq!(
            widths(&picture),
            expected(&folded_lines(&lab, options)),
            "{options:?}"
        );
        assert!(picture.contains(" lost</text>"), "{options:?}");
        let again = draw(&lab, "again.svg", options);
        assert_eq!(picture, again);
    }
    let picture = draw(&lab, "out.svg", &["-e", "*:hit"]);
    let hits: u64 = folded_lines(&lab, &["-e", "*:hit"]).values().sum();
    assert!(picture.contains(&format!(">{hits} hits of sdt_callers:hit</text>")));
    let page = draw(&lab, "out.html", &["-e", "*:hit"]);
    assert_eq!(widths(&page), widths(&picture));
    for text in [&picture, &page] {
        assert!(!text.contains(" src=") && !text.contains("@import") && !text.contains("url(http"));
        assert!(text.contains("function search("));
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let lab = Lab::new();
    let refused = |options: &[&str], why: &str| {
        let flame = lab.usdtrec([&["flame"], options].concat());
        assert!(!flame.status.success());
        assert!(flame.stderr.contains(why), "{options:?}: {}", flame.stderr);
    };
    refused(&["out.png"], "expected a name that ends with .svg or .html");
    refused(
        &["out.svg", "--value", "a", "--span", "b"],
        "cannot be used with",
    );
    refused(&["out.svg", "--min", "1ms"], "--span");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    let mut command = lab.command(["flame", "out.svg", "-i"]);
    command.arg(demo);
    let said = run(command).exits(1).stderr;
    assert!(
        said.contains("stack needs stacks") && said.contains("--call-graph dwarf"),
        "{said}"
    );
    assert!(!lab.file("out.svg").exists());
}
