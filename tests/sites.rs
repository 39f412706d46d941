//! Probes with many sites, in shared libraries, and before `main`.

use std::path::Path;

use crate::common::{Build, Engine, Hit, Lab, judge, sites_of, test};

const LIBRARY: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-shared", "-fPIC"],
};

/// Records a command with the probes of a file, and judges them all.
#[track_caller]
fn every_argument_is_right(lab: &Lab, file: &Path, command: &[&str], build: Build) -> Vec<Hit> {
    let event = format!("sdt_shapes:*@{}", file.display());
    let mut all = Vec::new();
    for engine in Engine::ALL {
        let recorded = lab
            .usdtrec(engine.record("trace", &event, command))
            .success();
        all = Hit::parse_lines(&recorded.stdout);
        let sites = sites_of(lab, file);
        judge(&all, &lab.events("trace"), &sites, (build, engine));
    }
    all
}

/// Sites of one probe with other operands, sizes and signs are each decoded by their own.
#[test]
fn sites_of_a_probe_differ() {
    for build in [
        Build::USUAL,
        Build {
            compiler: "clang",
            options: &["-O2"],
        },
    ] {
        let lab = Lab::privileged();
        let program = build.make(&lab, "sites.c", "sites");
        let path = program.to_str().expect("a path in UTF-8");
        let sites = sites_of(&lab, &program);
        let count = |name: &str| {
            sites
                .iter()
                .filter(|site| site.event.ends_with(name))
                .count()
        };
        assert_eq!((count(":inlined"), count(":shared")), (3, 6));
        let hits = every_argument_is_right(&lab, &program, &[path], build);
        assert_eq!(hits.len(), 36);
    }
}

/// A library's probes are recorded in a program that opens it later, from its constructor on.
#[test]
fn shared_library() {
    let lab = Lab::privileged();
    let library = LIBRARY.make(&lab, "library.c", "liblibrary.so");
    let program = Build::USUAL.make(&lab, "library_user.c", "user");
    let command = [
        program.to_str().expect("a path"),
        library.to_str().expect("a path"),
    ];
    let hits = every_argument_is_right(&lab, &library, &command, LIBRARY);
    assert_eq!(hits[0].name, "loaded");
    assert_eq!(hits.len(), 11);
}

/// `-- CMD` counts from the command's first instruction.
#[test]
fn constructor_before_main() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let path = program.to_str().expect("a path in UTF-8");
    let hits = every_argument_is_right(&lab, &program, &[path], Build::USUAL);
    assert_eq!(hits.len(), 2);
}
