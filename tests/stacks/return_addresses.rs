//! Functions at return addresses: those of the calls, also where a call does not return and what follows it is another function.

use super::recorded::{path, record_ours};
use super::{count, frames, ours};
use crate::common::{Build, Lab, Perf, test};

/// Calls that do not return are the last instructions of their functions.
const NO_RETURN: Build = Build {
    compiler: "gcc",
    options: &[
        "-Os",
        "-g",
        "-fno-omit-frame-pointer",
        "-fno-reorder-functions",
    ],
};

#[track_caller]
fn check(ours: &[String], how: &str) {
    let events = frames(ours);
    let event = events.last().expect("an event");
    for function in ["hit", "leave", "inner", "outer", "main"] {
        assert_eq!(count(event, function), 1, "{how}: {function}: {event:?}");
    }
    for function in ["after_inner", "after_outer"] {
        assert_eq!(count(event, function), 0, "{how}: {event:?}");
    }
}

#[test]
fn are_looked_up_in_the_call() {
    let lab = Lab::privileged();
    let program = NO_RETURN.make(&lab, "returns.c", "returns");
    for options in [
        &["--call-graph", "fp"][..],
        &["--call-graph", "fp", "--engine", "perf"],
        &["--call-graph", "fp", "--no-symbols"],
        &["-g"],
    ] {
        record_ours(&lab, &program, options, &[path(&program)]);
        check(&ours(&lab), &format!("{options:?}"));
        let folded = ["export", "-i", "stacks", "--to", "folded", "-o", "-"];
        let folded = lab.usdtrec(folded).success().stdout;
        let calls = "main;outer;inner;leave;hit 1\n";
        assert!(folded.contains(calls), "{options:?}: {folded}");
        let caller = ["report", "-i", "stacks", "--sort", "caller"];
        let caller = lab.usdtrec(caller).success().stdout;
        assert!(!caller.contains("after_"), "{options:?}: {caller}");
        let lines = ["script", "-i", "stacks", "-F", "ip,sym,srcline"];
        let lines = lab.usdtrec(lines).success().stdout;
        assert!(!lines.contains("after_"), "{options:?}: {lines}");
    }
}

#[test]
fn of_stock_perfs_files_are_looked_up_in_the_call() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    let program = NO_RETURN.make(&lab, "returns.c", "returns");
    let probes = perf.plant(&program, "returns", &["hit"]);
    let record = ["record", "-q", "-B", "-o", "stacks", "--call-graph", "fp"];
    let command = ["-e", "sdt_returns:hit*", "--", path(&program)];
    perf.run([&record[..], &command].concat()).success();
    drop(probes);
    check(&ours(&lab), "stock perf");
}

/// A chain that ends where a frame pointer is 0 is whole only if the last function has no caller.
#[test]
fn that_end_at_a_frame_pointer_of_0_say_so() {
    let lab = Lab::privileged();
    let program = NO_RETURN.make(&lab, "returns.c", "returns");
    record_ours(&lab, &program, &["--call-graph", "fp"], &[path(&program)]);
    let all = ours(&lab);
    let events = frames(&all);
    if cfg!(target_arch = "x86_64") {
        let cut = "\t[cut: ended at frame pointer 0]";
        assert_eq!(
            events[0].last().map(String::as_str),
            Some(cut),
            "{events:?}"
        );
    }
    // Found by unwind tables, chains end with the outermost function.
    record_ours(&lab, &program, &["-g"], &[path(&program)]);
    let all = ours(&lab);
    let last = frames(&all)
        .last()
        .and_then(|event| event.last())
        .expect("a frame");
    assert!(last.starts_with("_start+"), "{all:?}");
}
