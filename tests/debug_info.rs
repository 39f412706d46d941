//! Names and types from debugging information, against what the program prints.

use crate::common::{Build, Lab};

const WORDS: [(&str, &str); 3] = [
    ("sdt_debug:serve", "url"),
    ("sdt_debug:length", "length"),
    ("sdt_debug:sum", "arg1"),
];

/// Built with `options`; `named` are arguments that must be there in the line of the second call.
fn check(options: &'static [&'static str], named: &[&str]) {
    let Some(lab) = Lab::privileged() else { return };
    let build = Build {
        compiler: "gcc",
        options,
    };
    let Some(program) = build.make(&lab, "debug.c", "debug") else {
        return;
    };
    let program = program.to_str().expect("a path");
    let events = format!("sdt_debug:*@{program}");
    let run = ["record", "-e", &events, "--", program, "/x", "a b"];
    let printed = lab.usdtrec(run).success().stdout;
    assert!(printed.contains("/x 0 5 1 2\na b 1 -2 0 3\n"), "{printed}");
    let script = lab
        .usdtrec(["script", "--filter", "arg1 || !arg1"])
        .success()
        .stdout;
    assert_eq!(script.lines().count(), 9, "{script}");
    let line = |event: &str, number: usize| {
        let mut lines = script.lines().filter(|line| line.contains(event));
        lines.nth(number).expect("three of each").to_owned()
    };
    for named in named {
        assert!(line("sdt_debug:serve", 1).contains(named), "{script}");
    }
    assert!(line("sdt_debug:serve", 2).contains(" url=\"a b\" fd=1 colour=BLUE(-2) secure=false "));
    assert!(
        line("sdt_debug:length", 2).ends_with(" fd=1 length=3"),
        "{script}"
    );
    // A sum is no variable.
    assert!(line("sdt_debug:sum", 1).contains(" arg1=1 "), "{script}");
    let list = lab
        .usdtrec(["list", "-v", "--file", program])
        .success()
        .stdout;
    for (event, name) in WORDS {
        let at = list.find(event).expect("listed");
        assert!(list[at..].contains(name), "{list}");
    }
    assert!(
        list.contains("url: str") && list.contains("colour: enum"),
        "{list}"
    );
}

#[test]
fn variables_in_their_frame() {
    check(
        &["-O0", "-g"],
        &[
            " url=\"/x\" fd=0 colour=GREEN(5) secure=true handle=0x",
            " raw=0x",
            " port=65534",
        ],
    );
}

/// Two variables are in one register here: neither name is taken.
#[test]
fn variables_in_registers_and_inlined() {
    check(
        &["-O2", "-g"],
        &[
            " url=\"/x\" fd=0 colour=GREEN(5) secure=true arg5=",
            " port=65534",
        ],
    );
}

#[test]
fn another_form_of_dwarf_compressed() {
    check(
        &["-O2", "-gdwarf-4", "-gz"],
        &[
            " url=\"/x\" fd=0 colour=GREEN(5) secure=true ",
            " port=65534",
        ],
    );
}
