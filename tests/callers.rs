//! Stacks in reports: groups by function, caller and stack, against what the program counts itself and what stock perf finds.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::common::{Build, Lab, Perf, run, test};

pub(crate) const BUILD: Build = Build {
    compiler: "g++",
    options: &["-O2", "-fno-omit-frame-pointer"],
};

const ROUNDS: &str = "9";

/// Calls of a function, and the sum of their argument, as the program prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) count: u64,
    bytes: u64,
}

/// Records testdata/targets/callers.cc as perf's options say; what the program printed.
#[track_caller]
pub(crate) fn record(lab: &Lab, events: &[&str], options: &[&str]) -> BTreeMap<String, Calls> {
    record_build(lab, &BUILD, events, options, &[ROUNDS])
}

/// The same of another build, run with arguments.
#[track_caller]
pub(crate) fn record_build(
    lab: &Lab,
    build: &Build,
    events: &[&str],
    options: &[&str],
    arguments: &[&str],
) -> BTreeMap<String, Calls> {
    let perf = Perf::new(lab);
    let program = build.make(lab, "callers.cc", "callers");
    let probes = perf.plant(&program, "callers", &["hit", "work__begin", "work__end"]);
    let mut command = perf.command(["record", "-q", "-B", "-m", "1024", "-o", "trace"]);
    command.args(options);
    for event in events {
        command.args(["-e", &format!("sdt_callers:{event}")]);
    }
    command.arg("--").arg(&program).args(arguments);
    let printed = run(command).success().stdout;
    drop(probes);
    self::printed(&printed)
}

/// What the program printed, by callers.
#[track_caller]
fn printed(text: &str) -> BTreeMap<String, Calls> {
    let lines = text.lines().map(|line| {
        let mut words = line.rsplitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let bytes = number().expect("a sum");
        let count = number().expect("a count");
        let name = words.next().expect("a name").to_owned();
        (name, Calls { count, bytes })
    });
    let printed: BTreeMap<String, Calls> = lines.collect();
    assert_eq!(printed.len(), 3, "{printed:?}");
    printed
}

/// The JSON lines of `report`.
#[track_caller]
fn report(lab: &Lab, options: &[&str]) -> Vec<Value> {
    let start = ["report", "-i", "trace", "--format", "json"];
    let report = lab.usdtrec([&start[..], options].concat());
    let lines = report.success().silent().stdout;
    let lines = lines.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

/// The functions of a stack, the outermost first, with `;` between.
fn folded(frames: &Value) -> String {
    let frames = frames.as_array().expect("a list").iter().rev();
    let names: Vec<&str> = frames
        .map(|frame| frame["sym"].as_str().expect("a function"))
        .collect();
    names.join(";")
}

/// How often stock perf finds each stack.
fn perfs_stacks(lab: &Lab) -> BTreeMap<String, u64> {
    let script = ["script", "-i", "trace", "--no-inline", "-F", "ip,sym"];
    let script = Perf::new(lab).run(script).success().stdout;
    let mut stacks = BTreeMap::new();
    for event in script
        .split("\n\n")
        .filter(|event| !event.trim().is_empty())
    {
        let frames = event.lines().rev().filter_map(|line| {
            let (_, name) = line.trim().split_once(' ')?;
            Some(without_parameters(name))
        });
        let stack: Vec<&str> = frames.collect();
        *stacks.entry(stack.join(";")).or_insert(0) += 1;
    }
    stacks
}

/// perf prints the parameters of functions of C++.
fn without_parameters(name: &str) -> &str {
    name.split_once('(').map_or(name, |(name, _)| name)
}

/// What is in a trace by callers is what the program counted.
#[track_caller]
fn check_callers(lab: &Lab, printed: &BTreeMap<String, Calls>) {
    let groups = report(
        lab,
        &["-e", "*:hit", "--sort", "sym,caller", "--value", "arg1"],
    );
    let groups = groups.iter().map(|group| {
        assert_eq!(group["sym"], "emit");
        let calls = Calls {
            count: group["samples"].as_u64().expect("a count"),
            bytes: group["arg1.sum"].as_u64().expect("a sum"),
        };
        (group["caller"].as_str().expect("a name").to_owned(), calls)
    });
    assert_eq!(groups.collect::<BTreeMap<_, _>>(), *printed);
}

#[test]
fn are_those_that_the_program_counts() {
    let lab = Lab::privileged();
    let printed = record(&lab, &["*"], &["--call-graph", "dwarf,8192"]);
    check_callers(&lab, &printed);
    let spans = report(&lab, &["--span", "work", "--by", "caller"]);
    let groups = spans[0]["spans"][0]["groups"].as_array().expect("groups");
    let counts = groups
        .iter()
        .map(|group| (group["caller"].as_str(), group["count"].as_u64()));
    let counts: BTreeMap<_, _> = counts.collect();
    let expected = [(Some("quick"), Some(9)), (Some("slow"), Some(3))];
    assert_eq!(counts, expected.into());
    for keys in ["stack", "sym"] {
        let spans = report(&lab, &["--span", "work", "--by", keys]);
        let groups = spans[0]["spans"][0]["groups"].as_array().expect("groups");
        let expected = if keys == "stack" { 2 } else { 1 };
        assert_eq!(groups.len(), expected, "{spans:?}");
    }
}

#[test]
fn stacks_are_those_of_stock_perf() {
    let lab = Lab::privileged();
    let printed = record(&lab, &["hit*"], &["--call-graph", "dwarf,8192"]);
    let theirs = perfs_stacks(&lab);
    let groups = report(&lab, &["--sort", "stack", "--no-inline"]);
    let ours: BTreeMap<String, u64> = groups
        .iter()
        .map(|group| {
            assert_eq!(group.get("stack_cut"), None, "{group}");
            let count = group["samples"].as_u64().expect("a count");
            (folded(&group["stack"]), count)
        })
        .collect();
    assert_eq!(ours, theirs);
    assert!(ours.len() > 5, "{ours:?}");
    let all: u64 = printed.values().map(|calls| calls.count).sum();
    assert_eq!(ours.values().sum::<u64>(), all);
    let recursive = ours
        .keys()
        .filter(|stack| stack.contains("shop::descend;shop::descend;"));
    assert_eq!(recursive.count(), 2);
}

/// Chains that the kernel finds by frame pointers.
#[test]
fn callers_by_frame_pointers_are_those_that_the_program_counts() {
    let lab = Lab::privileged();
    let printed = record(&lab, &["hit*"], &["-g"]);
    check_callers(&lab, &printed);
}

#[test]
fn callers_of_our_own_recordings_are_those_that_the_program_counts() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "callers.cc", "callers");
    let event = format!("sdt_callers:*@{}", program.display());
    let mut command = lab.command(["record", "-q", "-g", "-o", "trace", "-e", &event, "--"]);
    command.arg(&program).arg(ROUNDS);
    let printed = printed(&run(command).success().stdout);
    check_callers(&lab, &printed);
    let sums = folded_lines(&lab, &["-e", "*:hit", "--value", "arg1"]);
    let expected = printed
        .iter()
        .map(|(name, calls)| (name.clone(), calls.bytes));
    assert_eq!(by_caller(&sums), expected.collect());
}

#[test]
fn a_cut_stack_is_another_one_and_says_so() {
    let lab = Lab::privileged();
    record(&lab, &["hit*"], &["--call-graph", "dwarf,512"]);
    let why = "the next frame is beyond the 512 bytes of stack that were copied";
    let groups = report(&lab, &["--sort", "stack"]);
    let cut = groups.iter().filter(|group| group["stack_cut"] == why);
    let cut = cut.count();
    assert!(cut > 0 && cut < groups.len(), "{groups:?}");
    let text = lab.usdtrec(["report", "-i", "trace", "--sort", "stack"]);
    let text = text.success().stdout;
    let lines = text
        .lines()
        .filter(|line| line.ends_with(&format!(" <- [cut: {why}]")));
    assert_eq!(lines.count(), cut);
}

#[test]
fn answers_are_the_same_with_any_number_of_threads() {
    let lab = Lab::privileged();
    record(&lab, &["*"], &["--call-graph", "dwarf,512"]);
    for options in [
        &["--sort", "caller,stack"][..],
        &["--sort", "stack", "--format", "json"],
        &["--sort", "stack", "--value", "arg1", "--format", "csv"],
        &["--span", "work", "--by", "stack,caller"],
        &["-g", "callee,0"],
        &["-g", "--span", "work"],
    ] {
        let said = |threads: &str| {
            let mut command = lab.command(["report", "-i", "trace"]);
            command.args(options).env("RAYON_NUM_THREADS", threads);
            run(command).success().stdout
        };
        let one = said("1");
        assert!(!one.is_empty());
        assert!(said("2") == one && said("7") == one, "{options:?}");
    }
}

#[test]
fn a_trace_without_stacks_has_no_callers() {
    let lab = Lab::new();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    for key in ["caller", "stack"] {
        let mut command = lab.command(["report", "--sort", key, "-i"]);
        command.arg(&demo);
        let said = run(command).exits(1).stderr;
        let why = format!("no selected event was recorded with stacks: {key} needs them");
        assert!(said.contains(&why), "{said}");
        assert!(said.contains("--call-graph dwarf"), "{said}");
    }
}

/// Weights of the lines of `export --to folded`.
#[track_caller]
pub(crate) fn folded_lines(lab: &Lab, options: &[&str]) -> BTreeMap<String, u64> {
    let start = ["export", "-i", "trace", "--to", "folded", "-o", "-"];
    let export = lab.usdtrec([&start[..], options].concat()).success();
    // Where very many events come at once, some are lost, which is said.
    let said = &export.stderr;
    let is_expected = said.is_empty() || said.contains("events were lost while recording");
    assert!(is_expected, "{said}");
    let lines = export.stdout.lines().map(|line| {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        (stack.to_owned(), weight.parse().expect("an integer"))
    });
    lines.collect()
}

/// Sums by the function that called the one with the probe.
fn by_caller(folded: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (stack, weight) in folded {
        let caller = stack.rsplit(';').nth(1).expect("a caller");
        *sums.entry(caller.to_owned()).or_insert(0) += weight;
    }
    sums
}

#[test]
fn folded_stacks_weigh_what_the_program_and_stock_perf_count() {
    let lab = Lab::privileged();
    let printed = record(&lab, &["*"], &["--call-graph", "dwarf,8192"]);
    let of_hit = ["-e", "*:hit"];
    let expected = |figure: fn(&Calls) -> u64| {
        let calls = printed
            .iter()
            .map(|(name, calls)| (name.clone(), figure(calls)));
        calls.collect::<BTreeMap<_, _>>()
    };
    let hits = folded_lines(&lab, &of_hit);
    assert_eq!(by_caller(&hits), expected(|calls| calls.count));
    let sums = folded_lines(&lab, &[&of_hit[..], &["--value", "arg1"]].concat());
    assert_eq!(by_caller(&sums), expected(|calls| calls.bytes));
    // Stacks of several events begin with the event.
    let all = folded_lines(&lab, &[]);
    let of_hit = all.iter().filter_map(|(stack, weight)| {
        let stack = stack.strip_prefix("sdt_callers:hit;")?;
        Some((stack.to_owned(), *weight))
    });
    assert_eq!(of_hit.collect::<BTreeMap<_, _>>(), hits);
    assert!(
        all.keys()
            .any(|stack| stack.starts_with("sdt_callers:work__begin;_start;"))
    );

    let spans = report(&lab, &["--span", "work", "--by", "caller"]);
    let groups = spans[0]["spans"][0]["groups"].as_array().expect("groups");
    let times = groups.iter().map(|group| {
        let name = group["caller"].as_str().expect("a name").to_owned();
        (name, group["self_ns"].as_u64().expect("ns"))
    });
    let folded = folded_lines(&lab, &["--span", "work"]);
    assert_eq!(by_caller(&folded), times.collect());
    let least = ["--span", "work", "--min", "1h"];
    assert_eq!(folded_lines(&lab, &least), BTreeMap::new());
}

/// A line of `report -g`: its path, its number, its percentage.
#[derive(Debug)]
struct Branch {
    path: Vec<String>,
    weight: u64,
    percent: String,
}

/// The numbered lines of a tree, each with the frames from the first one.
fn branches(text: &str) -> Vec<Branch> {
    let is_tree = |line: &&str| !line.starts_with('#') && !line.is_empty();
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut branches = Vec::new();
    for line in text.lines().filter(is_tree).skip(1) {
        let (figures, rest) = line.split_at(15);
        let rest = rest.strip_prefix("  ").expect("two blanks");
        let rest: Vec<char> = rest.chars().collect();
        let is_line = |c: &char| " │├└─".contains(*c);
        let depth = rest.iter().take_while(|c| is_line(c)).count();
        let name: String = rest[depth..].iter().collect();
        let mut figures = figures.split_whitespace();
        if let Some(weight) = figures.next() {
            path.retain(|(at, _)| *at < depth);
            path.push((depth, name));
            branches.push(Branch {
                path: path.iter().map(|(_, name)| name.clone()).collect(),
                weight: weight.parse().expect("a number"),
                percent: figures.next().expect("a percentage").to_owned(),
            });
        } else {
            path.push((depth, name));
        }
    }
    branches
}

#[test]
fn trees_have_the_percentages_of_stock_perf() {
    let lab = Lab::privileged();
    let printed = record(&lab, &["hit*"], &["--call-graph", "dwarf,8192"]);
    let theirs = perfs_stacks(&lab);
    let all: u64 = theirs.values().sum();
    for order in ["caller", "callee"] {
        let order_and_least = format!("{order},0");
        let tree = ["report", "-i", "trace", "--no-inline", "-g"];
        let tree = [&tree[..], &[&order_and_least]].concat();
        let text = lab.usdtrec(tree).success().silent().stdout;
        let branches = branches(&text);
        assert!(branches.len() > 6, "{text}");
        for branch in branches {
            let path = branch.path.join(";");
            let is_in = |stack: &str| match order {
                "caller" => format!("{stack};").starts_with(&format!("{path};")),
                _ => {
                    let stack: Vec<&str> = stack.rsplit(';').collect();
                    format!("{};", stack.join(";")).starts_with(&format!("{path};"))
                }
            };
            let stacks = theirs.iter().filter(|(stack, _)| is_in(stack));
            let weight: u64 = stacks.map(|(_, count)| count).sum();
            assert_eq!(branch.weight, weight, "{branch:?} of {text}");
            let percent = format!("{:.2}%", 100.0 * weight as f64 / all as f64);
            assert_eq!(branch.percent, percent);
        }
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
    let callers = lab.usdtrec(["report", "-i", "trace", "-g", "callee"]);
    for branch in branches(&callers.success().stdout) {
        if let [emit, caller] = &branch.path[..] {
            assert_eq!(emit, "emit");
            assert_eq!(branch.weight, printed[caller].count);
        }
    }
    // As stock perf adds branches up.
    let options = ["--stdio", "--no-children", "--no-inline", "-s", "sym"];
    let start = ["report", "-i", "trace", "-g", "folded,0,caller"];
    let perfs = [&start[..], &options].concat();
    let perfs = Perf::new(&lab).run(perfs).success().stdout;
    let perfs = perfs.lines().filter_map(|line| line.split_once("% "));
    let perfs: BTreeMap<String, String> = perfs
        .filter(|(_, stack)| stack.contains(';'))
        .map(|(percent, stack)| (stack.to_owned(), percent.to_owned()))
        .collect();
    let ours = folded_lines(&lab, &["--no-inline"])
        .into_iter()
        .map(|(stack, count)| (stack, format!("{:.2}", 100.0 * count as f64 / all as f64)));
    assert_eq!(ours.collect::<BTreeMap<_, _>>(), perfs);
}

#[test]
fn smaller_branches_are_summed_up() {
    let lab = Lab::privileged();
    record(&lab, &["hit*"], &["--call-graph", "dwarf,8192"]);
    let tree = lab.usdtrec(["report", "-i", "trace", "-g", "callee,30"]);
    let branches = branches(&tree.success().stdout);
    let smaller = branches
        .iter()
        .filter(|branch| branch.path.last().is_some_and(|name| name.starts_with('[')));
    assert!(smaller.count() > 0, "{branches:?}");
    let direct = branches.iter().filter(|branch| branch.path.len() == 2);
    let direct: u64 = direct.map(|branch| branch.weight).sum();
    assert_eq!(direct, branches[0].weight, "{branches:?}");
}

#[test]
fn frames_without_a_name_are_summed_up_by_file() {
    let lab = Lab::privileged();
    let stripped = Build {
        compiler: "g++",
        options: &["-O2", "-s"],
    };
    record_build(
        &lab,
        &stripped,
        &["hit*"],
        &["--call-graph", "dwarf,8192"],
        &[ROUNDS],
    );
    let folded = folded_lines(&lab, &[]);
    for stack in folded.keys() {
        let hit = stack.rsplit(';').next().expect("a frame");
        assert!(hit.starts_with("callers+0x"), "{stack}");
    }
    let count = |stack: &str| {
        stack
            .split(';')
            .filter(|frame| frame.starts_with("callers+0x"))
            .count() as u64
    };
    let unnamed: u64 = folded.iter().map(|(stack, hits)| hits * count(stack)).sum();
    let all: u64 = folded
        .iter()
        .map(|(stack, hits)| hits * stack.split(';').count() as u64)
        .sum();
    let share = format!("{:.1}%", 100.0 * unnamed as f64 / all as f64);
    let tree = lab
        .usdtrec(["report", "-i", "trace", "-g"])
        .success()
        .stdout;
    let (_, end) = tree
        .split_once("\nFrames without a name: ")
        .expect("a section");
    assert!(
        end.starts_with(&format!("{share} of all frames\n  {share}  ")),
        "{end}"
    );
    let end = end.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        end.contains("callers: it has no symbols for its own functions; install"),
        "{end}"
    );
    let stacks = report(&lab, &["--sort", "stack"]);
    let hit = &stacks[0]["stack"][0];
    assert_eq!(hit["sym"], Value::Null);
    let offset = hit["offset"].as_str().expect("an offset");
    assert!(
        folded
            .keys()
            .any(|stack| stack.ends_with(&format!(";callers+{offset}")))
    );
}

#[test]
fn options_without_effect_on_stacks_are_refused() {
    let lab = Lab::new();
    let refused = |options: &[&str], why: &str| {
        let report = lab.usdtrec([&["report", "-i", "absent"], options].concat());
        assert!(!report.status.success());
        assert!(
            report.stderr.contains(why),
            "{options:?}: {}",
            report.stderr
        );
    };
    refused(&["-g", "--format", "json"], "use --sort stack");
    refused(&["--folded"], "use export --to folded -o -");
    refused(&["-g", "--sort", "comm"], "cannot be used with");
    refused(
        &["-g", "--key", "tid"],
        "--key has no effect on --call-graph",
    );
    refused(&["-g", "--by", "comm"], "cannot be used with");
    refused(&["-g", "--top", "3"], "--top has no effect on --call-graph");
    refused(
        &["-g", "--span", "a", "--value", "b"],
        "cannot be used with",
    );
    refused(&["-g", "fractal"], "expected caller");
}
