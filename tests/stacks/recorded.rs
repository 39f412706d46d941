//! Stacks that usdtrec recorded, against stock perf and against the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{BUILD, FIELDS, both, check_program, count, frames, ours, record};
use crate::common::{Build, Lab, Perf, test};

pub(super) const FRAME_POINTERS: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-fno-omit-frame-pointer"],
};

/// Records a command with all probes of a program into `stacks`.
pub(super) fn record_ours(lab: &Lab, program: &Path, options: &[&str], command: &[&str]) {
    let event = format!("*:*@{}", program.display());
    let start = ["record", "-q", "-o", "stacks", "-e", &event];
    let words = [&start[..], options, &["--"], command].concat();
    lab.usdtrec(words).success();
    assert!(!lab.events("stacks").is_empty());
}

pub(super) fn path(program: &Path) -> &str {
    program.to_str().expect("a path")
}

#[test]
fn are_those_of_perf_at_the_same_hits() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    record(&lab, &perf, &program, "8192", "20");
    let [theirs, _] = both(&lab, &perf, &["-F", FIELDS]);
    check_program(&theirs, 20);
    for options in [
        &["--call-graph", "dwarf"][..],
        &["--call-graph", "dwarf,8K", "--max-stack", "200"],
        &["--call-graph", "dwarf", "--engine", "perf"],
    ] {
        record_ours(&lab, &program, options, &[path(&program), "20"]);
        for shown in both(&lab, &perf, &["-F", FIELDS]) {
            assert_eq!(frames(&theirs), frames(&shown), "{options:?}");
        }
    }
    let report = ["report", "-i", "stacks", "--stdio", "-g", "--no-children"];
    let report = perf.run(report).success().stdout;
    for function in ["main", "handler", "compare", "middle"] {
        assert!(
            report.contains(&format!("-{function}\n"))
                || report.contains(&format!(" {function}\n")),
            "{function}: {report}"
        );
    }
}

#[test]
fn by_frame_pointers_are_those_of_the_program() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = FRAME_POINTERS.make(&lab, "stacks.c", "stacks-target");
    for engine in ["bpf", "perf"] {
        let options = ["--call-graph", "fp", "--engine", engine];
        record_ours(&lab, &program, &options, &[path(&program), "20"]);
        let [theirs, ours] = both(&lab, &perf, &["-F", FIELDS]);
        let events = frames(&ours);
        assert!(events.len() > 6, "{}", events.len());
        for (event, theirs) in events.iter().zip(frames(&theirs)) {
            let is_cut = event
                .last()
                .is_some_and(|line| line.starts_with("\t[cut: "));
            let (frames, _) = event.split_at(event.len() - usize::from(is_cut));
            assert_eq!(frames, theirs, "{engine}");
            check_callers_of_middle(frames);
        }
    }
}

#[track_caller]
fn check_callers_of_middle(frames: &[String]) {
    assert_eq!(count(frames, "leaf"), 1, "{frames:?}");
    assert_eq!(count(frames, "middle"), 21, "{frames:?}");
    let mut outer = frames
        .iter()
        .rev()
        .take_while(|frame| !frame.starts_with("middle+"));
    let callers = ["handler+", "compare+", "main+"];
    let is_caller = |frame: &String| callers.iter().any(|name| frame.starts_with(name));
    assert!(outer.any(is_caller), "{frames:?}");
}

/// Their arguments are in registers, which are written beside the callers, or on the stack, of which the copy is written.
#[test]
fn of_perf_events_leave_arguments_as_they_are() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let in_registers = Build::USUAL.make(&lab, "first.c", "first");
    let arguments = || -> Vec<String> {
        let shown = lab.usdtrec(["script", "-i", "stacks", "-G", "-F", "event,args"]);
        let lines = shown.success().stdout;
        let arguments = lines.lines().filter_map(|line| line.split_once(") "));
        arguments
            .map(|(_, arguments)| arguments.to_owned())
            .collect()
    };
    record_ours(
        &lab,
        &in_registers,
        &["--engine", "perf"],
        &[path(&in_registers)],
    );
    let before = arguments();
    assert!(
        before.len() > 1 && !before.concat().contains('<'),
        "{before:?}"
    );
    let options = ["--engine", "perf", "-g"];
    record_ours(&lab, &in_registers, &options, &[path(&in_registers)]);
    assert_eq!(before, arguments());
    let on_stack = Build::USUAL.make(&lab, "strings.c", "strings");
    record_ours(&lab, &on_stack, &options, &[path(&on_stack)]);
    for arguments in arguments() {
        assert!(arguments.starts_with("arg1=7 arg2="), "{arguments}");
        assert!(!arguments.contains('<'), "{arguments}");
    }
    let [theirs, ours] = both(&lab, &perf, &["-F", FIELDS]);
    assert_eq!(frames(&theirs), frames(&ours));
    for event in frames(&ours) {
        assert!(event[0].starts_with("main+0x"), "{event:?}");
        let outermost = event.last().expect("a frame");
        assert!(outermost.starts_with("_start+0x"), "{event:?}");
    }
}

#[test]
fn of_short_lived_children_are_whole() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    let loop_ = "for n in 1 2 3 4 5 6 7 8; do \"$0\" 3 & done; wait";
    let command = ["sh", "-c", loop_, path(&program)];
    record_ours(&lab, &program, &["--call-graph", "dwarf"], &command);
    let pids: BTreeSet<u32> = lab.events("stacks").iter().map(|event| event.pid).collect();
    assert_eq!(pids.len(), 8);
    let all = ours(&lab);
    for event in frames(&all) {
        assert_eq!(count(event, "middle"), 4, "{event:?}");
        let outermost = event.last().expect("a frame");
        assert!(outermost.starts_with("_start+0x"), "{event:?}");
    }
}

/// Each of a thousand stacks comes three times. They have the same stack pointer, and differ in five functions.
#[test]
fn that_come_again_are_each_what_they_were() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "wide.c", "wide");
    let options = &["-g", "-m", "64M"];
    record_ours(&lab, &program, options, &[path(&program), "3000"]);
    let all = ours(&lab);
    let events = frames(&all);
    assert_eq!(events.len(), 3000, "{options:?}");
    let is_own = |frame: &&String| frame.starts_with('f');
    for (hit, event) in events.into_iter().enumerate() {
        assert_eq!(count(event, "deeper"), 8, "{event:?}");
        let functions = event.iter().filter(is_own);
        let functions = functions.filter_map(|frame| frame.split('+').next());
        let first = hit % 1000 * 5;
        let called: Vec<String> = (first..first + 5).map(|n| format!("f{n:04}")).collect();
        let called: Vec<&str> = called.iter().rev().map(String::as_str).collect();
        assert_eq!(functions.collect::<Vec<_>>(), called, "{event:?}");
        let outermost = event.last().expect("a frame");
        assert!(outermost.starts_with("_start+0x"), "{event:?}");
    }
}

/// The recorder has the file open. The process has ended before the recorder looks at it.
#[test]
fn of_a_file_that_was_removed_are_whole() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    let removed = "exec 3<\"$0\"; rm \"$0\"; exec /proc/self/fd/3 3";
    let command = ["sh", "-c", removed, path(&program)];
    record_ours(&lab, &program, &["--call-graph", "dwarf"], &command);
    assert!(!program.exists());
    let all = ours(&lab);
    let events = frames(&all);
    assert!(events.len() > 6, "{}", events.len());
    for event in events {
        // leaf, four times middle, at least main, two of the C library, _start.
        assert!(event.len() >= 9, "{event:?}");
        let outermost = event.last().expect("a frame");
        assert!(!outermost.contains("[cut: "), "{event:?}");
    }
}

#[test]
fn that_are_cut_say_so_and_perf_shows_the_rest() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = FRAME_POINTERS.make(&lab, "stacks.c", "stacks-target");
    let copy_ends = "the next frame is beyond the stack that was copied";
    let limit = "the limit of frames is 3";
    for (options, why) in [
        (&["--call-graph", "dwarf,512"][..], copy_ends),
        (&["-g", "--max-stack", "3"], limit),
        (&["--call-graph", "fp", "--max-stack", "3"], limit),
    ] {
        record_ours(&lab, &program, options, &[path(&program), "100"]);
        let [theirs, ours] = both(&lab, &perf, &["-F", FIELDS]);
        for (event, theirs) in frames(&ours).into_iter().zip(frames(&theirs)) {
            let (last, frames) = event.split_last().expect("frames");
            assert_eq!(*last, format!("\t[cut: {why}]"), "{options:?}");
            assert_eq!(frames, theirs, "{options:?}");
            assert!(frames.len() >= 3, "{frames:?}");
        }
    }
}

/// The size of the room is that of the first, shallow ones, when deep ones come.
#[test]
fn get_the_room_that_they_need() {
    let lab = Lab::privileged();
    let program = FRAME_POINTERS.make(&lab, "learned.c", "learned");
    for (graph, why) in [
        ("auto", "the next frame is beyond the stack that was copied"),
        ("fp", "there are more frames than there was room for"),
    ] {
        let options = ["--call-graph", graph];
        let is_whole = |event: &&[String]| event.iter().any(|frame| frame.starts_with("main+"));
        // Each depth takes a second or more: a recorder that gets little of the CPU needs several.
        let mut all = Vec::new();
        for times in [1, 3, 9, 27] {
            let depths = ["90"].repeat(times);
            let command = [&[path(&program), "3"], depths.as_slice()].concat();
            record_ours(&lab, &program, &options, &command);
            all = ours(&lab);
            if frames(&all).last().is_some_and(&is_whole) {
                break;
            }
        }
        let events = frames(&all);
        let cut = format!("\t[cut: {why}]");
        let last = events.last().expect("an event");
        assert!(is_whole(last), "{graph}: {last:?}");
        assert_eq!(count(last, "deeper"), 90, "{graph}: {last:?}");
        // The first ones are shallow, and others came before their depth was known.
        assert!(is_whole(&events[0]), "{graph}: {:?}", events[0]);
        for event in events.iter().filter(|event| !is_whole(event)) {
            assert_eq!(event.last(), Some(&cut), "{graph}");
            assert!(count(event, "deeper") > 3, "{graph}: {event:?}");
        }
    }
}

/// Nobody knows how deep the first ones are.
#[test]
fn are_whole_from_the_first_one_on() {
    let lab = Lab::privileged();
    let program = FRAME_POINTERS.make(&lab, "learned.c", "learned");
    let event = format!("*:*@{}", program.display());
    let record = |options: &[&str]| {
        let start = ["record", "-q", "-o", "stacks", "-e", &event];
        let command = ["--", path(&program), "60"];
        let words = [&start[..], options, &command].concat();
        lab.usdtrec(words).success().stderr
    };
    let said = record(&["-g"]);
    assert!(!said.contains("cut"), "{said}");
    let all = ours(&lab);
    assert_eq!(frames(&all).len(), 1000);
    for event in frames(&all) {
        assert_eq!(count(event, "deeper"), 60, "{event:?}");
        assert!(event.iter().any(|frame| frame.starts_with("main+")));
    }
    let said = record(&["--call-graph", "dwarf,512"]);
    for words in [
        "1000 of 1000 stacks (100.00 %) are cut",
        "hit 1000 of 1000; try --call-graph dwarf,16K",
    ] {
        assert!(said.contains(words), "{said}");
    }
    // Those by frame pointers are whole.
    let said = record(&["--call-graph", "fp"]);
    assert!(!said.contains("cut"), "{said}");
    // The limit is what was asked for.
    let said = record(&["--call-graph", "fp", "--max-stack", "10"]);
    assert!(!said.contains("cut"), "{said}");
}

#[test]
fn are_not_taken_more_often_than_allowed() {
    let lab = Lab::privileged();
    let program = FRAME_POINTERS.make(&lab, "learned.c", "learned");
    let event = format!("*:*@{}", program.display());
    let why = "\t[cut: no stack was taken: there were too many in this second]";
    for graph in [&["-g"][..], &["--call-graph", "fp"]] {
        let start = ["record", "-q", "-o", "stacks", "-e", &event];
        let words = [
            &start[..],
            graph,
            &["--stack-rate", "5", "--", path(&program), "3"],
        ]
        .concat();
        let said = lab.usdtrec(words).success().stderr;
        let all = ours(&lab);
        let events = frames(&all);
        assert_eq!(events.len(), 1000, "{graph:?}");
        let without = events
            .iter()
            .filter(|event| event.last().is_some_and(|line| line == why));
        let without = without.count();
        assert!(
            said.contains(&format!("{without} of 1000 events have no stack")),
            "{without}: {said}"
        );
        // Ten hits follow each other without a pause.
        assert!(without >= 5, "{graph:?}: {without}");
        for event in &events[..5] {
            assert_eq!(count(event, "deeper"), 3, "{graph:?}: {event:?}");
        }
        let hit = &events[5];
        assert_eq!((hit.len(), hit[1].as_str()), (2, why), "{graph:?}: {hit:?}");
        assert!(hit[0].starts_with("hits+"), "{graph:?}: {hit:?}");
        let report = lab
            .usdtrec(["report", "-g", "-i", "stacks"])
            .success()
            .stdout;
        let head = format!("# {without} hits have no stack: there were too many in a second\n");
        assert!(report.contains(&head), "{report}");
    }
}

/// No unwind table.
const BARE: [&str; 3] = [
    "-O2",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
];

#[test]
fn without_unwind_information_end_with_the_hit() {
    let lab = Lab::privileged();
    let cases = [
        (
            "stacks.c",
            &BARE[..],
            "no unwind information for this function in",
        ),
        (
            "endless.c",
            &["-O2"],
            "the unwind information for this function in",
        ),
    ];
    for (source, options, why) in cases {
        let build = Build {
            compiler: "gcc",
            options,
        };
        fs::remove_dir_all(lab.cache()).ok();
        let program = build.make(&lab, source, "stacks-target");
        record_ours(&lab, &program, &["-g"], &[path(&program), "3"]);
        let ours = ours(&lab);
        for event in frames(&ours) {
            assert_eq!(event.len(), 2, "{event:?}");
            let start = format!("\t[cut: {why} {}", program.display());
            assert!(event[1].starts_with(&start), "{event:?}");
        }
    }
}

/// Programs with strings begin again when a string is long, and filters leave hits out.
#[test]
fn leave_strings_and_filters_as_they_are() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "strings.c", "strings");
    // Addresses are others in each process.
    let arguments = || -> Vec<String> {
        let shown = lab.usdtrec(["script", "-i", "stacks", "-G", "-F", "event,args"]);
        let lines = shown.success().stdout;
        let strings = lines.lines().filter_map(|line| {
            let event = line.split_whitespace().next()?;
            let (_, string) = line.split_once('"')?;
            Some(format!("{event} {}", string.rsplit_once('"')?.0))
        });
        strings.collect()
    };
    for options in [
        &["--strlen", "4096"][..],
        &["--strings", "all"],
        &["--filter", "arg1 > 6"],
    ] {
        fs::read(&program).expect("the program is there");
        record_ours(&lab, &program, options, &[path(&program)]);
        let before = arguments();
        assert!(before.len() > 2, "{before:?}");
        for graph in ["auto", "fp", "dwarf,32K"] {
            let options = [options, &["--call-graph", graph]].concat();
            // Nothing is faulted in for arguments that only might be strings. The kernel maps the pages of the file that are in
            // memory when the program reads near them; a host may evict some of them at any time.
            let is_same = (0..3).any(|_| {
                fs::read(&program).expect("the program is there");
                record_ours(&lab, &program, &options, &[path(&program)]);
                before == arguments()
            });
            assert!(is_same, "{options:?}: {before:?}, {:?}", arguments());
            let all = ours(&lab);
            for event in frames(&all) {
                assert!(event[0].starts_with("main+0x"), "{event:?}");
            }
        }
    }
}

#[test]
fn options_of_recording_without_effect_are_refused() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "stacks.c", "stacks-target");
    let event = format!("sdt_stacks:hit@{}", program.display());
    for (options, why) in [
        (&["--max-stack", "3"][..], "<-g|--call-graph <MODE>>"),
        (&["--stack-rate", "3"], "<-g|--call-graph <MODE>>"),
        (
            &["-g", "--stack-rate", "3", "--engine", "perf"],
            "--stack-rate needs the bpf engine",
        ),
        (&["-g", "--stack-rate", "0"], "0 is not in 1..="),
        (&["--call-graph", "lbr"], "expected auto, fp, dwarf"),
        (&["--call-graph", "dwarf,1M"], "expected 8 bytes to 32K"),
        (&["--call-graph", "dwarf,0"], "expected 8 bytes to 32K"),
        (&["-g", "--max-stack", "0"], "0 is not in 1..=1024"),
        (
            &[
                "--call-graph",
                "fp",
                "--engine",
                "perf",
                "--max-stack",
                "1024",
            ],
            "kernel.perf_event_max_stack",
        ),
    ] {
        let words = [
            &["record", "-e", &event][..],
            options,
            &["--", path(&program)],
        ]
        .concat();
        lab.usdtrec(words).exits(2).complains(why);
    }
    let list = format!("sdt_stacks:hit(depth=arg1+1)@{}", program.display());
    let words = ["record", "-e", &list, "-g", "--engine", "perf-tracefs"];
    let words = [&words[..], &["--", path(&program)]].concat();
    lab.usdtrec(words)
        .exits(2)
        .complains("needs the bpf engine");
}
