//! Names and types from debugging information, against what the program prints.

use std::path::Path;
use std::process::Command;

use crate::common::{Build, Lab, need_tool, run, test};

const WORDS: [(&str, &str); 3] = [
    ("sdt_debug:serve", "url"),
    ("sdt_debug:length", "length"),
    ("sdt_debug:sum", "arg1"),
];

/// Built with `options`; `named` are arguments that must be there in the line of the second call.
fn check(options: &'static [&'static str], named: &[&str]) {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(&lab, "debug.c", "debug");
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

/// A file that globals.c needs.
const OTHER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/testdata/targets/globals_other.c"
);

/// Variables of the file, of a function and of another file, by their addresses; a member of a structure is none.
fn check_globals(options: &'static [&'static str]) {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(&lab, "globals.c", "globals");
    let program = program.to_str().expect("a path");
    let event = format!("globals:*@{program}");
    let printed = lab
        .usdtrec(["record", "-e", &event, "--", program, "a b", "/x"])
        .success()
        .stdout;
    let script = lab.usdtrec(["script"]).success().stdout;
    assert_eq!(script.lines().count(), 3, "{script}");
    for (line, printed) in script.lines().zip(printed.lines()).skip(1) {
        let (state, rest) = printed.split_once(' ').expect("words");
        let (served, rest) = rest.split_once(' ').expect("words");
        let mut back = rest.rsplitn(4, ' ');
        let [tail, calls, level, last] =
            [(); 4].map(|()| back.next().expect("as many words as are printed"));
        let state = ["IDLE(0)", "BUSY(3)"][usize::from(state == "3")];
        let expected = format!(
            " state={state} served={served} last=\"{last}\" level={level} calls={calls} arg6={tail}"
        );
        assert!(line.ends_with(&expected), "{expected}\n{line}");
    }
}

#[test]
fn variables_at_addresses() {
    check_globals(&["-O2", "-g", OTHER]);
}

#[test]
fn variables_at_addresses_of_32_bits_types_in_units_of_their_own() {
    check_globals(&[
        "-m32",
        "-fno-pie",
        "-no-pie",
        "-O2",
        "-g",
        "-gdwarf-4",
        "-fdebug-types-section",
        OTHER,
    ]);
}

/// Names and types are in another unit than the places.
#[test]
fn variables_after_optimization_of_the_whole_program() {
    check_globals(&["-O2", "-g", "-flto", OTHER]);
}

/// Distributions move what several programs have in common into a file of its own.
fn check_shared(options: &'static [&'static str], dwz: &[&str]) {
    let lab = Lab::new();
    let build = Build {
        compiler: "gcc",
        options,
    };
    need_tool("dwz");
    let program = build.make(&lab, "debug.c", "debug");
    let less = Build {
        compiler: "gcc",
        options: &["-O1", "-g"],
    };
    less.make(&lab, "debug.c", "less");
    let mut command = Command::new("dwz");
    command.current_dir(lab.path()).args(dwz);
    command.args(["-m", "common.debug", "debug", "less"]);
    run(command).success();
    let program = program.to_str().expect("a path");
    let list = || {
        let list = lab.usdtrec(["list", "-v", "--file", program]);
        list.success().stdout
    };
    let shown = list();
    for words in [
        "url: str ",
        "fd: s32 ",
        "colour: enum ",
        "secure: bool ",
        "length: s64 ",
        "port: u16 ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // Another file of the name is not taken.
    let common = lab.file("common.debug");
    std::fs::copy(lab.file("less"), &common).expect("a copy");
    let shown = list();
    assert!(
        !shown.contains("length: s64 ") && shown.contains("arg1 "),
        "{shown}"
    );
}

#[test]
fn names_in_a_shared_file() {
    check_shared(&["-O2", "-g", "-gdwarf-4"], &[]);
}

#[test]
fn names_in_a_shared_file_of_dwarf_5() {
    check_shared(&["-O2", "-g", "-gdwarf-5"], &["--dwarf-5"]);
}

/// Programs of machines that are not here: registers have the numbers of their ABI, frames are where their tables say.
/// Builds debug.c in the lab, where what the compiler writes beside the program stays.
fn build_beside(lab: &Lab, options: &[&str]) -> String {
    need_tool("gcc");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/targets/debug.c");
    let mut gcc = Command::new("gcc");
    gcc.current_dir(lab.path());
    gcc.args(["-std=gnu11", "-pthread", "-o", "debug", source]);
    gcc.arg("-O2").args(options);
    run(gcc).success();
    lab.file("debug").to_str().expect("a path").to_owned()
}

/// Asserts that the arguments of a program have their names.
#[track_caller]
fn names(lab: &Lab, program: &str) {
    let events = format!("sdt_debug:*@{program}");
    let record = ["record", "-o", "trace", "-e", &events, "--", program, "/x"];
    lab.usdtrec(record).success();
    let script = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    let named = " url=\"/x\" fd=0 colour=GREEN(5) secure=true ";
    assert!(script.contains(named), "{script}");
}

#[test]
fn names_in_split_files_and_their_package() {
    // The dwp of Debian 12 knows DWARF 4 alone.
    for (version, package_tool) in [("-gdwarf-4", "dwp"), ("-gdwarf-5", "llvm-dwp")] {
        let lab = Lab::privileged();
        let program = build_beside(&lab, &[version, "-gsplit-dwarf"]);
        let dwo = std::fs::read_dir(lab.path()).expect("a directory");
        let dwo = dwo.map(|entry| entry.expect("an entry").path());
        let is_dwo = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "dwo");
        let dwo: Vec<_> = dwo.filter(is_dwo).collect();
        assert_eq!(dwo.len(), 1);
        names(&lab, &program);
        need_tool(package_tool);
        let mut package = Command::new(package_tool);
        package.current_dir(lab.path());
        package.args(["-e", &program, "-o", &format!("{program}.dwp")]);
        run(package).success();
        std::fs::remove_file(&dwo[0]).expect("removed");
        names(&lab, &program);
    }
}

/// What is passed by its address is a string if it can be nothing else: the address of a structure is that of its first member, too.
#[test]
fn addresses_of_structures_are_no_strings() {
    let lab = Lab::new();
    for options in [&["-g", "-O0"][..], &["-g", "-O2"]] {
        let build = Build {
            compiler: "gcc",
            options,
        };
        let program = build.make(&lab, "held.c", "held");
        let program = program.to_str().expect("a path");
        let list = ["list", "-v", "--format", "json", "--file", program];
        let list = lab.usdtrec(list).success().stdout;
        let types = |probe: &str| -> Vec<String> {
            let mut probes = list
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
            let is_it = |known: &serde_json::Value| known["event"] == probe;
            let known = probes.find(is_it).expect("listed");
            let arguments = known["arguments"].as_array().expect("arguments");
            arguments
                .iter()
                .map(|one| one["type"].to_string())
                .collect()
        };
        for probe in ["sdt_held:lock", "sdt_held:object"] {
            let types = types(probe);
            assert!(
                types.iter().all(|kind| !kind.contains("str")),
                "{options:?} {list}"
            );
        }
        // Code that is optimised computes addresses in ways that are not followed.
        if options.contains(&"-O2") {
            continue;
        }
        let strings = types("sdt_held:string");
        assert!(
            strings.iter().all(|kind| kind.contains("str")),
            "{options:?} {list}"
        );
    }
}

/// A program without a build-id names its separate file, which has the checksum.
#[test]
fn names_in_a_linked_file() {
    need_tool("objcopy");
    let lab = Lab::privileged();
    let program = build_beside(&lab, &["-g", "-Wl,--build-id=none"]);
    let separate = lab.file(".debug").join("debug.debug");
    std::fs::create_dir(lab.file(".debug")).expect("a directory");
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["--only-keep-debug", &program]).arg(&separate);
    run(objcopy).success();
    let mut objcopy = Command::new("objcopy");
    objcopy
        .current_dir(lab.path())
        .args(["--strip-debug", &program]);
    let link = format!("--add-gnu-debuglink={}", separate.display());
    objcopy.arg(link);
    run(objcopy).success();
    names(&lab, &program);
}

#[test]
fn names_on_other_machines() {
    let lab = Lab::new();
    for machine in ["aarch64", "arm", "powerpc64le", "riscv64", "s390x"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("testdata/debug")
            .join(format!("bare-{machine}"));
        let shown = lab.usdtrec(["list", "-v", "--file", file.to_str().expect("a path")]);
        let shown = shown.success().stdout;
        let (framed, registers) = shown.split_once("sdt_bare:registers").expect("both");
        for words in ["url: str ", "fd: s32 ", "colour: enum ", "arg4 "] {
            assert!(registers.contains(words), "{machine} {words}: {shown}");
        }
        // PowerPC's compiler loads them into registers of their own.
        for words in ["url: str ", "fd: s32 "] {
            assert_eq!(
                framed.contains(words),
                machine != "powerpc64le",
                "{machine} {words}: {shown}"
            );
        }
    }
}

/// The crate `probe` casts all arguments to `isize`; debugging information knows better, and so does a schema.
#[test]
fn rusts_numbers_have_their_own_signs() {
    let lab = Lab::privileged();
    need_tool("rustc");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/targets/signs.rs");
    for (name, level) in [("known", "-Cdebuginfo=2"), ("bare", "-Cdebuginfo=0")] {
        let program = lab.file(&format!("{name}.out"));
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2021", "-O", level, "-o"]);
        rustc.arg(&program).arg(source);
        run(rustc).success();
        let program = program.to_str().expect("a path");
        let event = format!("signs:hash@{program}");
        let record = ["record", "-e", &event, "-o", name, "--", program];
        let printed = lab.usdtrec(record).success().stdout;
        let expected: Vec<&str> = printed.lines().collect();
        assert_eq!(expected.len(), 3, "{printed}");
        let values = |options: &[&str], names: [&str; 3]| -> Vec<String> {
            let options = [&["script", "-i", name], options].concat();
            let script = lab.usdtrec(&options).success().stdout;
            let line = |line: &str| {
                let value = |name: &str| {
                    let (_, rest) = line.split_once(&format!(" {name}=")).expect(line);
                    rest.split(' ').next().expect("a value").to_owned()
                };
                names.map(value).join(" ")
            };
            script.lines().map(line).collect()
        };
        if name == "known" {
            assert_eq!(values(&[], ["key", "delta", "count"]), expected);
            continue;
        }
        let signed = values(&[], ["arg1", "arg2", "arg3"]);
        assert_eq!(signed[0], "-1 -5 -8", "as the note says");
        let schema = lab.file("signs.toml");
        let text = "provider = \"signs\"\n[[probe]]\nname = \"hash\"\n\
                    arguments = [\"key: u64\", \"delta: s64\", \"count: u64\"]\n";
        std::fs::write(&schema, text).expect("a new file");
        let schema = schema.to_str().expect("a path");
        assert_eq!(
            values(&["--schema", schema], ["key", "delta", "count"]),
            expected
        );
    }
}
