//! Options about frames: which ones have no effect, and what others show.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use object::elf;
use object::read::elf::{ElfFile64, FileHeader as _};
use serde_json::Value;

use super::inlined::{programs, record};
use super::recorded::{FRAME_POINTERS, path, record_ours};
use super::{BUILD, count, frames, ours};
use crate::common::{Build, Lab, test};

#[test]
fn no_inline_without_effect_is_refused() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    record_ours(&lab, &program, &[], &[path(&program)]);
    fs::rename(lab.file("stacks"), lab.file("none")).expect("a trace without stacks");
    record_ours(&lab, &program, &["-g"], &[path(&program)]);
    let refused = |words: &[&str], why: &str| {
        let words = [words, &["--no-inline"]].concat();
        let errors = lab.usdtrec(words).exits(2).stderr;
        assert!(
            errors.contains("--no-inline") && errors.contains(why),
            "{errors}"
        );
    };
    let why = "none, which has no stacks";
    refused(&["script", "-i", "none"], why);
    refused(&["report", "-i", "none", "--sort", "sym"], why);
    refused(&["diff", "none", "none", "--by", "stack"], why);
    refused(
        &["export", "-i", "none", "--to", "perfetto", "-o", "out"],
        why,
    );
    let why = "cannot be used with '--stacks script'";
    refused(&["script", "-i", "stacks", "--stacks", "script"], why);
    refused(&["report", "-i", "stacks", "-g", "--stacks", "script"], why);
    refused(
        &["flame", "-i", "stacks", "out.svg", "--stacks", "script"],
        why,
    );
    refused(&["diff", "stacks", "stacks"], "diff without stacks");
    refused(
        &["diff", "stacks", "stacks", "--by", "comm"],
        "diff without stacks",
    );
    lab.usdtrec(["script", "-i", "stacks", "--no-inline", "-G"])
        .exits(2)
        .complains("cannot be used with");
}

#[test]
fn differences_have_inlined_functions_unless_it_is_said() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options: &["-O2", "-g"],
    };
    let program = build.make(&lab, "within.c", "within");
    record_ours(&lab, &program, &["-g"], &[path(&program)]);
    let diff = |options: &[&str]| {
        let words = ["diff", "stacks", "stacks", "--by", "stack", "--all"];
        lab.usdtrec([&words[..], options].concat()).success().stdout
    };
    assert!(diff(&[]).contains("(inlined)"), "{}", diff(&[]));
    let without = diff(&["--no-inline"]);
    assert!(
        without.contains("serves") && !without.contains("(inlined)"),
        "{without}"
    );
}

#[test]
fn groups_of_lines_are_those_of_the_events() {
    let lab = Lab::privileged();
    for program in programs(&lab) {
        for options in [&["-g"][..], &[]] {
            record(&lab, &program, options);
            let ask = |words: &[&str]| {
                let words = [words, &["-i", "stacks", "--format", "json"]].concat();
                lab.usdtrec(words).success().silent().stdout
            };
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for line in ask(&["script", "-F", "ip,srcline"]).lines() {
                let event: Value = serde_json::from_str(line).expect("JSON");
                let line = event["srcline"].as_str().expect("a line");
                *expected.entry(line.to_owned()).or_default() += 1;
            }
            assert!(expected.keys().all(|line| line.contains("inlined.")));
            let groups = ask(&["report", "--sort", "srcline"]);
            let groups = groups.lines().map(|group| {
                let group: Value = serde_json::from_str(group).expect("JSON");
                let line = group["srcline"].as_str().expect("a line");
                (
                    line.to_owned(),
                    group["samples"].as_u64().expect("a number"),
                )
            });
            assert_eq!(groups.collect::<BTreeMap<_, _>>(), expected);
            let table = lab.usdtrec(["report", "-i", "stacks", "--sort", "srcline,comm"]);
            let table = table.success().silent().stdout;
            assert!(table.contains("Source:Line"), "{table}");
            for line in expected.keys() {
                let base = Path::new(line).file_name().expect("a file");
                let base = base.to_str().expect("UTF-8");
                assert!(table.contains(&format!(" {base} ")), "{base}: {table}");
                assert!(!table.contains(line), "{table}");
            }
        }
    }
    // Without debugging information there is no line.
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    record_ours(&lab, &program, &["-g"], &[path(&program)]);
    let table = lab.usdtrec(["report", "-i", "stacks", "--sort", "srcline"]);
    let table = table.success().stdout;
    assert!(
        table.contains("100.00%") && table.contains("[unknown]"),
        "{table}"
    );
}

/// Moves a section of an ELF file to its end, and makes it this long. What is new is a hole, but for a part of it: sparse files are not read.
fn lengthen(program: &Path, section: &str, len: u64) {
    const REAL: usize = 16 << 20;
    let bytes = fs::read(program).expect("a program");
    let elf: ElfFile64<'_> = ElfFile64::parse(&*bytes).expect("an ELF file");
    let (table, endian) = (elf.elf_section_table(), elf.endian());
    let (index, _) = table
        .section_by_name(endian, section.as_bytes())
        .expect("the section");
    let headers = elf.elf_header().e_shoff(endian);
    let at = headers + (index.0 * size_of::<elf::SectionHeader64<object::Endianness>>()) as u64;
    let end = (bytes.len() as u64).next_multiple_of(4096);
    let file = File::options()
        .write(true)
        .open(program)
        .expect("a program");
    // `sh_offset`, `sh_size`
    for (field, value) in [(24, end), (32, len)] {
        file.write_all_at(&u64::to_le_bytes(value), at + field)
            .expect("a section header");
    }
    file.write_all_at(&vec![0; REAL], end)
        .expect("room on disk");
    file.set_len(end + len).expect("a long file");
}

#[test]
fn debugging_information_that_is_too_long_is_reported() {
    let lab = Lab::privileged();
    let [program, _] = programs(&lab);
    record(&lab, &program, &["-g", "--no-symbols"]);
    let report = || {
        let report = lab.usdtrec(["report", "-g", "-i", "stacks"]);
        report.success().silent().stdout
    };
    let head = "Frames of inlined functions are missing: debugging information of more than 512 MiB is not read\n";
    let before = report();
    assert!(
        before.contains("(inlined)") && !before.contains(head),
        "{before}"
    );
    lengthen(&program, ".debug_str", 600 << 20);
    let after = report();
    assert!(
        after.contains(&format!("{head}  {}\n", path(&program))),
        "{after}"
    );
    assert!(
        !after.contains("(inlined)") && after.contains("work::first"),
        "{after}"
    );
}

/// Perf events have a limit of frames where the recorder finds them, or the kernel.
#[test]
fn perf_events_have_a_limit_of_frames() {
    let lab = Lab::privileged();
    let on_stack = Build::USUAL.make(&lab, "strings.c", "strings");
    let program = FRAME_POINTERS.make(&lab, "stacks.c", "stacks-target");
    for graph in ["auto", "fp", "dwarf,4K"] {
        let options = [
            "--engine",
            "perf",
            "--max-stack",
            "7",
            "--call-graph",
            graph,
        ];
        record_ours(&lab, &program, &options, &[path(&program), "20"]);
        let all = ours(&lab);
        for event in frames(&all) {
            let (last, frames) = event.split_last().expect("frames");
            // The kernel does not say that it left callers out.
            let frames = match graph {
                "fp" => event,
                _ => {
                    assert_eq!(last, "\t[cut: the limit of frames is 7]", "{graph}");
                    frames
                }
            };
            assert_eq!(frames.len(), 7, "{graph}: {event:?}");
            assert_eq!(count(frames, "middle"), 6, "{graph}: {event:?}");
        }
    }
    // Arguments on the stack are decoded from the copy, which is written then.
    let event = format!("*:*@{}", on_stack.display());
    let words = ["record", "-e", &event, "-g", "--max-stack", "7"];
    let words = [&words[..], &["--engine", "perf", "--", path(&on_stack)]].concat();
    lab.usdtrec(words)
        .exits(2)
        .complains("has arguments on the stack, so copies of stacks are recorded");
    let options = ["--engine", "perf", "--max-stack", "7", "--call-graph", "fp"];
    record_ours(&lab, &on_stack, &options, &[path(&on_stack)]);
}
