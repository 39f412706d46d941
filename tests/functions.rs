//! The function and the line of each site, against binutils: in lists, and in traces on a host without the program.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Build, Lab, need_tool, run, test};

const BUILD: Build = Build {
    compiler: "g++",
    options: &["-O2", "-g"],
};

/// A site of `list -v`.
struct Site {
    pc: u64,
    function: String,
    /// Of the site in the function, bytes.
    offset: u64,
    /// `FILE:LINE`
    line: String,
}

/// The sites of a program, as `list -v --format json` has them.
fn listed(lab: &Lab, program: &str) -> Vec<Site> {
    let list = ["list", "-v", "--format", "json", "--file", program];
    let list = lab.usdtrec(list).success().silent().stdout;
    let lines = list.lines().map(serde_json::from_str::<Value>);
    let mut sites = Vec::new();
    for probe in lines.map(|line| line.expect("JSON")) {
        for site in probe["sites"].as_array().expect("sites") {
            let (function, source) = (&site["function"], &site["source"]);
            let pc = site["pc"].as_str().expect("an address");
            let file = Path::new(source["file"].as_str().expect("a file"));
            let file = file.file_name().expect("a name").to_string_lossy();
            sites.push(Site {
                pc: u64::from_str_radix(&pc[2..], 16).expect("an address"),
                function: function["name"].as_str().expect("a name").to_owned(),
                offset: function["offset"].as_u64().expect("an offset"),
                line: format!("{file}:{}", source["line"]),
            });
        }
    }
    sites
}

/// The function of an address into which the others are inlined, and its line: by binutils.
fn of_binutils(program: &str, address: u64) -> (String, String) {
    let mut command = Command::new("addr2line");
    command.args([
        "-i",
        "-f",
        "-C",
        "-s",
        "-e",
        program,
        &format!("{address:#x}"),
    ]);
    let found = run(command).success().stdout;
    let lines: Vec<&str> = found.lines().collect();
    let function = lines[lines.len() - 2];
    // It prints parameters and what a template returns, and says so where a line has several parts.
    let function = function.split('(').next().expect("a name");
    let function = function.rsplit(' ').next().expect("a name");
    let line = lines[1].split(' ').next().expect("a line");
    (function.to_owned(), line.to_owned())
}

#[test]
fn of_sites_are_those_of_binutils() {
    let lab = Lab::new();
    need_tool("addr2line");
    let program = BUILD.make(&lab, "functions.cc", "functions");
    let program = program.to_str().expect("a path in UTF-8");
    let sites = listed(&lab, program);
    assert_eq!(sites.len(), 4, "two of a template");
    for site in &sites {
        let (function, line) = of_binutils(program, site.pc);
        assert_eq!((&site.function, &site.line), (&function, &line));
        let (start, _) = of_binutils(program, site.pc - site.offset);
        assert_eq!(site.function, start, "{:#x}", site.pc);
    }
    let text = lab
        .usdtrec(["list", "-v", "--file", program])
        .success()
        .stdout;
    for site in &sites {
        let Site {
            function,
            offset,
            line,
            ..
        } = site;
        let place = format!("  in {function}+{offset:#x} ({line})\n");
        assert!(text.contains(&place), "{place}{text}");
    }
}

#[test]
fn are_in_the_trace() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "functions.cc", "functions");
    let path = program.to_str().expect("a path in UTF-8");
    let events = format!("sdt_functions:*@{path}");
    lab.usdtrec(["record", "-o", "trace", "-e", &events, "--", path])
        .success();
    let script = || {
        let script = ["script", "-i", "trace", "-F", "event,sym,symoff"];
        lab.usdtrec(script).success().silent().stdout
    };
    let here = script();
    assert_eq!(here.lines().count(), 4, "{here}");
    assert!(here.contains(" shop::Till::close+0x"), "{here}");
    fs::remove_file(&program).expect("the program");
    fs::remove_dir_all(lab.cache()).expect("the cache");
    assert_eq!(script(), here);
}
