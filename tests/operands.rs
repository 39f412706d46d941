//! Operands that compilers choose: every decoded argument equals what the program printed.

use crate::common::{Build, Engine, Hit, Lab, judge, sites_of, test};

/// Records testdata/targets/operands.c, built in one way, from its start to its end.
#[track_caller]
fn every_argument_is_right(compiler: &'static str, options: &'static [&'static str]) {
    let build = Build { compiler, options };
    let lab = Lab::privileged();
    let program = build.make(&lab, "operands.c", "operands");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_shapes:*@{path}");
    for engine in Engine::ALL {
        let recorded = lab
            .usdtrec(engine.record("trace", &event, &[path]))
            .success()
            .complains(engine.words());
        let hits = Hit::parse_lines(&recorded.stdout);
        assert_eq!(hits.len(), 33, "the target printed {}", recorded.stdout);
        let sites = sites_of(&lab, &program);
        judge(&hits, &lab.events("trace"), &sites, (build, engine));
    }
}

macro_rules! builds {
    ($($test:ident: $compiler:literal [$($option:literal),*];)*) => {
        $(#[test]
        fn $test() {
            every_argument_is_right($compiler, &[$($option),*]);
        })*
    };
}

builds! {
    gcc_unoptimised: "gcc" ["-O0"];
    gcc_optimised: "gcc" ["-O2"];
    gcc_with_frame_pointer: "gcc" ["-O2", "-fno-omit-frame-pointer"];
    gcc_position_independent: "gcc" ["-O1", "-fPIC"];
    gcc_at_a_fixed_address: "gcc" ["-O2", "-no-pie", "-fno-pic"];
    gcc_static: "gcc" ["-O2", "-static"];
    gcc_32_bit_unoptimised: "gcc" ["-O0", "-m32"];
    gcc_32_bit_optimised: "gcc" ["-O2", "-m32"];
    gcc_32_bit_at_a_fixed_address: "gcc" ["-O2", "-m32", "-no-pie", "-fno-pic"];
    clang_unoptimised: "clang" ["-O0"];
    clang_optimised: "clang" ["-O2"];
    clang_32_bit_optimised: "clang" ["-O2", "-m32"];
}
