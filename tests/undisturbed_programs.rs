//! What recording does to programs: nothing, whatever they do, while it lasts and after its end.

use crate::common::{Build, Engine, Event, Hit, Lab, test};

/// The sites that a recorder said it not attaching.
fn refused(stderr: &str, event: &str) -> bool {
    stderr.contains(&format!("not attaching {event}"))
}

/// A program that starts children in every way (fork, vfork, clone, exec also by a thread, under seccomp, under ptrace), which hit the
/// probes that it has hit before: all of them live to their end and compute what they do unobserved. A 5-byte nop is planted only where the kernel makes no call of it: its page is not
/// there in children, and they would die.
#[test]
fn children_live() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "children.c", "children");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("children:*@{path}");
    for engine in Engine::ALL {
        let recorded = lab
            .usdtrec(engine.record("trace", &event, &[path, "10"]))
            .success();
        assert!(
            recorded.stdout.ends_with("died 0\nwrong 0\n"),
            "{engine:?}: {}",
            recorded.stdout
        );
        let mut hits = Hit::parse_lines(&recorded.stdout);
        if refused(&recorded.stderr, "sdt_children:five") {
            hits.retain(|hit| hit.name != "five");
        }
        let printed: Vec<String> = hits.into_iter().map(|hit| hit.name).collect();
        let events = lab.events("trace");
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        if engine.reads_memory() {
            assert_eq!(names, printed, "{engine:?}");
        } else {
            // The kernel's inherited events lose hits of children.
            assert!(names.len() <= printed.len(), "{engine:?}");
        }
    }
}

/// `--force` plants on what is no nop, but never on a 5-byte nop that the kernel makes a call of.
#[test]
fn force_does_not_plant_on_calls() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "children.c", "children");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("children:five@{path}");
    let record = ["record", "-o", "trace", "-v", "-e", &event, "--", path, "3"];
    let plain = lab.usdtrec(record);
    let forced = lab.usdtrec(["record", "--force"].iter().chain(&record[1..]));
    for finished in [plain, forced] {
        if finished.status.success() {
            assert!(finished.stdout.ends_with("died 0\nwrong 0\n"));
            assert!(!lab.events("trace").is_empty());
        } else {
            finished
                .exits(1)
                .complains("sdt_children:five")
                .complains("5-byte nop")
                .complains("--force does not change that");
        }
    }
}
