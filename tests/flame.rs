//! Flame graphs of real stacks: frames weigh what folded lines weigh, and pictures need nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::callers::{BUILD, Calls, folded_lines, record, record_build};
use crate::common::{Lab, copy_program, need_tool, run, test};

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
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    let mut command = lab.command(["flame", "out.svg", "-i"]);
    command.arg(demo);
    let said = run(command).exits(1).stderr;
    assert!(
        said.contains("stack needs them") && said.contains("--call-graph dwarf"),
        "{said}"
    );
    assert!(!lab.file("out.svg").exists());
}

/// Records the program by frame pointers, as a trace of this name.
#[track_caller]
fn record_as(lab: &Lab, name: &str, arguments: &[&str]) -> BTreeMap<String, Calls> {
    let printed = record_build(lab, &BUILD, &["hit*"], &["-g"], arguments);
    fs::rename(lab.file("trace"), lab.file(name)).expect("a trace");
    printed
}

/// The share of hits of a caller, as titles have it.
fn share(printed: &BTreeMap<String, Calls>, caller: &str) -> String {
    let all: u64 = printed.values().map(|calls| calls.count).sum();
    format!("{:.2}%", 100.0 * printed[caller].count as f64 / all as f64)
}

/// The colours of the frames with a title of this start.
fn fills<'p>(picture: &'p str, title: &str) -> Vec<&'p str> {
    let frames = picture.split("<title>").skip(1);
    let frames = frames.filter(|frame| frame.starts_with(title));
    let fills = frames.filter_map(|frame| frame.split_once("fill=\"")?.1.split_once('"'));
    fills.map(|(fill, _)| fill).collect()
}

#[test]
fn what_differs_beyond_noise_is_coloured() {
    const GREY: &str = "rgb(205,205,205)";
    let lab = Lab::privileged();
    // Each slice of a recording's time has to have hits, also where the program has to wait for a CPU.
    let rounds = |more| ["200", more, "1000"];
    let a = record_as(&lab, "a", &rounds("0"));
    record_as(&lab, "same", &rounds("0"));
    let b = record_as(&lab, "b", &rounds("2"));
    let draw = |other: &str| {
        lab.usdtrec(["flame", "diff.svg", "--diff", "a", other])
            .success()
            .silent();
        fs::read_to_string(lab.file("diff.svg")).expect("a picture")
    };
    let same = draw("same");
    let fills_of_all = fills(&same, "");
    assert!(fills_of_all.len() > 4, "{same}");
    assert!(
        fills_of_all.iter().all(|fill| *fill == GREY),
        "{fills_of_all:?}"
    );
    let picture = draw("b");
    let frame = |name: &str, caller: &str| {
        let (a, b) = (share(&a, caller), share(&b, caller));
        format!("{name} (A {a}, B {b}: beyond noise)")
    };
    let add = fills(
        &picture,
        &frame("shop::Cart&lt;long&gt;::add", "shop::Cart<long>::add"),
    );
    assert!(
        matches!(&add[..], [red] if red.starts_with("rgb(255,")),
        "{add:?} {picture}"
    );
    let compare = fills(&picture, &frame("compare", "compare"));
    assert!(
        matches!(&compare[..], [blue] if blue.ends_with(",255)")),
        "{compare:?} {picture}"
    );
    assert_eq!(picture, draw("b"));
    let hits =
        |printed: &BTreeMap<String, Calls>| printed.values().map(|calls| calls.count).sum::<u64>();
    let title = format!("sdt_callers:hit: {} hits in A, {} in B", hits(&a), hits(&b));
    assert!(picture.contains(&title), "{title}");
    assert!(picture.contains("; A: ") && picture.contains(" lost</text>"));
    let refused = lab.usdtrec(["flame", "out.svg", "--diff", "a", "b", "--value", "arg1"]);
    assert!(refused.exits(2).stderr.contains("cannot be used with"));
}

/// Functions are compared by their names, and code without names by its build, wherever the file is.
#[test]
fn a_program_under_another_path_has_the_same_frames() {
    const GREY: &str = "rgb(205,205,205)";
    let lab = Lab::privileged();
    let arguments = ["200", "0", "1000"];
    let program = BUILD.make(&lab, "callers.cc", "callers");
    for is_stripped in [false, true] {
        if is_stripped {
            need_tool("strip");
            run(lab.at_home(Path::new("strip"), [&program])).success();
        }
        for (name, copy) in [("a", "releases-1"), ("b", "other-name")] {
            copy_program(&program, lab.file(copy));
            let event = format!("sdt_callers:hit*@{}", lab.file(copy).display());
            let mut record = lab.command(["record", "-q", "-g", "-o", name, "-e", &event, "--"]);
            record.arg(lab.file(copy)).args(arguments);
            run(record).success();
        }
        lab.usdtrec(["flame", "diff.svg", "--diff", "a", "b"])
            .success()
            .silent();
        let picture = fs::read_to_string(lab.file("diff.svg")).expect("a picture");
        let fills = fills(&picture, "");
        assert!(fills.len() > 4, "{picture}");
        assert!(fills.iter().all(|fill| *fill == GREY), "{picture}");
        assert!(!picture.contains("B 0.00%"), "{picture}");
        assert!(!picture.contains("A 0.00%"), "{picture}");
    }
}
