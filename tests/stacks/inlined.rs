//! Frames of functions whose code was inlined, and lines of source, against stock perf and addr2line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::without_address;
use crate::common::{Build, Lab, Perf, need_tool, run, sites_of, test};

/// Programs whose addresses are those of their files.
pub(super) fn programs(lab: &Lab) -> [PathBuf; 2] {
    let build = Build {
        compiler: "g++",
        options: &["-O2", "-g", "-no-pie"],
    };
    let cpp = build.make(lab, "inlined.cc", "inlined-cc");
    need_tool("rustc");
    let rust = lab.file("inlined-rs");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/targets/inlined.rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2021", "-O", "-Cdebuginfo=2"]);
    rustc.args(["-Crelocation-model=static", "-o"]);
    rustc.arg(&rust).arg(source);
    run(rustc).success();
    [cpp, rust]
}

#[track_caller]
pub(super) fn record(lab: &Lab, program: &Path, options: &[&str]) {
    let event = format!("inlined:hit@{}", program.display());
    let program = program.to_str().expect("a path");
    let start = ["record", "-q", "-o", "stacks", "-e", &event];
    lab.usdtrec([&start[..], options, &["--", program]].concat())
        .success();
}

/// Records with copies of stacks, which perf unwinds itself. Its 6.1 adds one event of a probe with several sites: each site has an event here, by its offset
/// in the file.
#[track_caller]
fn record_with_perf(perf: &Perf<'_>, lab: &Lab, program: &Path) {
    let mut probes = perf.plant(program, "inlined", &[]);
    for (number, site) in sites_of(lab, program).iter().enumerate() {
        let definition = format!("hit{number}={:#x}", site.offset);
        probes.add(program, "sdt_inlined", &definition);
    }
    let program = program.to_str().expect("a path");
    let start = ["record", "-q", "-B", "-m", "1024", "-o", "stacks"];
    let events = ["--call-graph", "dwarf", "-e", "sdt_inlined:hit*"];
    perf.run([&start[..], &events, &["--", program]].concat())
        .success();
}

/// The frames of all events up to `main`, with their lines, without addresses: perf names no alias of functions of the C library as symbols do.
fn frames(text: &str) -> Vec<String> {
    let mut frames: Vec<String> = Vec::new();
    let mut is_event = true;
    for line in text.lines() {
        if std::mem::replace(&mut is_event, line.is_empty()) {
            continue;
        }
        match line
            .strip_prefix("  ")
            .filter(|line| !line.starts_with(' '))
        {
            Some("??:0") => {}
            // A line of source, after which perf says that the function is inlined.
            Some(source) => frames.last_mut().expect("a frame").push_str(source),
            None if line.starts_with('\t') => frames.push(without_address(line)),
            None => {}
        }
    }
    frames.retain(|frame| !frame.starts_with("__libc_start"));
    frames
}

#[test]
fn inlined_frames_and_lines_are_those_of_stock_perf() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    for program in programs(&lab) {
        record_with_perf(&perf, &lab, &program);
        for fields in ["event,ip,sym,symoff,dso", "event,ip,sym,dso,srcline"] {
            for option in ["--inline", "--no-inline"] {
                let words = ["script", "-i", "stacks", option, "-F", fields];
                let theirs = frames(&perf.run(words).success().stdout);
                let ours = frames(&lab.usdtrec(words).success().silent().stdout);
                assert_eq!(theirs, ours, "{fields} {option}");
                let inlined = ours.iter().filter(|frame| frame.ends_with(" (inlined)"));
                assert_eq!(inlined.count() > 8, option == "--inline", "{ours:?}");
            }
        }
    }
}

/// A frame in JSON.
struct Frame {
    address: u64,
    name: String,
    source: String,
}

/// The frames of each address of stacks, by an address within its instruction, the innermost first.
fn chains(lab: &Lab) -> BTreeMap<u64, Vec<Frame>> {
    let json = ["--format", "json", "-F", "ip,sym,srcline"];
    let script = lab.usdtrec([&["script", "-i", "stacks"][..], &json].concat());
    let mut chains = BTreeMap::new();
    for line in script.success().silent().stdout.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let stack = event["stack"].as_array().expect("a stack");
        let frames = stack.iter().map(|frame| {
            let ip = frame["ip"].as_str().expect("an address");
            let text = |member: &str| frame[member].as_str().unwrap_or("??:?").to_owned();
            Frame {
                address: u64::from_str_radix(ip.trim_start_matches("0x"), 16).expect(ip),
                name: text("sym"),
                source: text("srcline"),
            }
        });
        let frames: Vec<Frame> = frames.collect();
        let inlined = stack.iter().filter(|frame| frame["inlined"] == true);
        let hit = frames[0].address;
        let of_addresses = frames.into_iter().fold(BTreeMap::new(), |mut all, frame| {
            let within = frame.address - u64::from(frame.address != hit);
            all.entry(within).or_insert_with(Vec::new).push(frame);
            all
        });
        assert_eq!(inlined.count(), stack.len() - of_addresses.len());
        chains.extend(of_addresses);
    }
    chains
}

#[test]
fn inlined_frames_and_lines_are_those_of_addr2line() {
    let lab = Lab::privileged();
    need_tool("addr2line");
    need_tool("c++filt");
    for program in programs(&lab) {
        for graph in ["auto", "dwarf,16K"] {
            record(&lab, &program, &["--call-graph", graph]);
            let mut compared = 0;
            for (address, ours) in chains(&lab) {
                // Libraries are far above the program.
                if address > u64::from(u32::MAX) {
                    continue;
                }
                let theirs = addr2line(&program, address);
                let sources: Vec<&str> = ours.iter().map(|frame| &*frame.source).collect();
                let expected: Vec<&str> = theirs.iter().map(|(_, source)| &**source).collect();
                assert_eq!(sources, expected, "{address:#x}");
                for (frame, (name, _)) in ours.iter().zip(&theirs) {
                    // Names of the C++ library have the types that they return, and those of Rust's are mangled in two ways.
                    if ["work::", "inlined::"]
                        .iter()
                        .any(|own| name.starts_with(own))
                    {
                        assert_eq!(frame.name, *name);
                        compared += 1;
                    }
                }
            }
            assert!(compared >= 10, "{compared}");
        }
    }
}

/// Names and lines as addr2line prints them, the innermost first.
#[track_caller]
fn addr2line(program: &Path, address: u64) -> Vec<(String, String)> {
    let mut command = Command::new("addr2line");
    command.args(["-i", "-f", "-e"]).arg(program);
    command.arg(format!("{address:#x}"));
    let printed = run(command).success().stdout;
    let lines: Vec<&str> = printed.lines().collect();
    let pairs = lines.chunks_exact(2).map(|pair| {
        let mut filter = Command::new("c++filt");
        filter.args(["-p", pair[0]]);
        let name = run(filter).success().stdout;
        let name = name.trim();
        // The hash at the end of a Rust name.
        let name = match name.rsplit_once("::h") {
            Some((name, hash)) if hash.len() == 16 => name,
            _ => name,
        };
        let source = pair[1].split(" (discriminator").next().expect("a line");
        (name.to_owned(), source.replace("??:0", "??:?"))
    });
    pairs.collect()
}

#[test]
fn reports_have_inlined_frames_unless_it_is_said() {
    let lab = Lab::privileged();
    let [program, _] = programs(&lab);
    record(&lab, &program, &["-g"]);
    let inlined = "main;work::second;work::calls (inlined);work::first;work::twice<int> (inlined);work::hit (inlined) 2";
    let outer = "main;work::second;work::first 2";
    let ask = |words: &[&str]| {
        let words = [words, &["-i", "stacks"]].concat();
        lab.usdtrec(words).success().silent().stdout
    };
    let folded = ask(&["export", "--to", "folded", "-o", "-"]);
    assert!(
        folded.lines().any(|line| line.ends_with(inlined)),
        "{folded}"
    );
    let folded = ask(&["export", "--to", "folded", "-o", "-", "--no-inline"]);
    assert!(folded.lines().any(|line| line.ends_with(outer)), "{folded}");
    let tree = ask(&["report", "-g"]);
    assert!(tree.contains("work::calls (inlined)"), "{tree}");
    let tree = ask(&["report", "-g", "--no-inline"]);
    assert!(!tree.contains("inlined)"), "{tree}");
    for (key, name) in [
        ("sym", "work::hit (inlined)"),
        ("caller", "work::twice<int> (inlined)"),
        ("stack", "work::hit (inlined) <- "),
    ] {
        let groups = ask(&["report", "--sort", key]);
        assert!(groups.contains(name), "{groups}");
        let groups = ask(&["report", "--sort", key, "--no-inline"]);
        assert!(
            groups.contains("work::") && !groups.contains("inlined)"),
            "{groups}"
        );
    }
    let file = lab.file("flame.svg");
    let draw = |options: &[&str]| {
        let picture = file.to_str().expect("a path");
        ask(&[&["flame", picture], options].concat());
        std::fs::read_to_string(&file).expect("a picture")
    };
    assert!(draw(&[]).contains("work::calls (inlined)"));
    assert!(!draw(&["--no-inline"]).contains("(inlined)"));
    for refused in [
        &["report", "--no-inline"][..],
        &["report", "--sort", "comm", "--no-inline"],
        &["script", "--format", "csv", "--no-inline"],
    ] {
        let refusal = lab.usdtrec([refused, &["-i", "stacks"]].concat());
        assert!(refusal.stderr.contains("--no-inline"), "{}", refusal.stderr);
    }
}

/// Inlined frames and lines are the same whether their entries are in the program, in a `.dwo` file, or in the package of these.
#[test]
fn inlined_frames_of_split_units() {
    need_tool("g++");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/targets/inlined.cc");
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let lab = Lab::privileged();
        let shown = |options: &[&str]| {
            let mut compiler = Command::new("g++");
            compiler.current_dir(lab.path());
            compiler
                .args(["-O2", version, "-o", "inlined", source])
                .args(options);
            run(compiler).success();
            let program = lab.file("inlined");
            record(&lab, &program, &["-g"]);
            let fields = ["script", "-i", "stacks", "-F", "event,ip,sym,srcline"];
            frames(&lab.usdtrec(fields).success().stdout)
        };
        let whole = shown(&[]);
        let inlined = whole.iter().filter(|frame| frame.contains(" (inlined)"));
        assert!(inlined.count() > 8, "{whole:?}");
        assert_eq!(shown(&["-gsplit-dwarf"]), whole, "{version}");
        // The dwp of Debian 12 knows DWARF 4 alone.
        if version == "-gdwarf-4" {
            need_tool("dwp");
            let mut dwp = Command::new("dwp");
            dwp.current_dir(lab.path())
                .args(["-e", "inlined", "-o", "inlined.dwp"]);
            run(dwp).success();
            let files = std::fs::read_dir(lab.path()).expect("a directory");
            let files = files.map(|entry| entry.expect("an entry").path());
            for file in files.filter(|file| file.extension().is_some_and(|end| end == "dwo")) {
                std::fs::remove_file(file).expect("removed");
            }
            record(&lab, &lab.file("inlined"), &["-g"]);
            let fields = ["script", "-i", "stacks", "-F", "event,ip,sym,srcline"];
            assert_eq!(frames(&lab.usdtrec(fields).success().stdout), whole);
        }
    }
}
