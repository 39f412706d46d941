//! Names alone, of a program with much debugging information.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::common::{Build, Lab, run as run_command};
use crate::table::{head, row};
use crate::timed::run;

/// Bytes of the section that names do not need.
const DEBUG_INFO: u64 = 800 << 20;

/// Measures and prints.
pub(crate) fn show(lab: &Lab) {
    let program = Build::USUAL.make(lab, "wide.c", "fat");
    add_debug_info(lab, &program);
    let name = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_wide:hit@{name}");
    let options = ["record", "-q", "-g", "--no-symbols", "-o", "fat.data", "-e"];
    lab.usdtrec([&options[..], &[&event, "--", name, "1000"]].concat())
        .success();
    println!(
        "Names of 1000 stacks of 5000 functions, of a program with {} MiB of debugging information.\n",
        DEBUG_INFO >> 20
    );
    head(&["Question", "seconds", "peak memory"]);
    for question in [
        &["report", "-g", "--no-inline"][..],
        &["export", "--to", "folded", "-o", "-", "--no-inline"],
        &["script", "--no-inline", "-Fip,sym"],
    ] {
        let mut command = lab.command(question);
        command.arg("-i").arg(lab.file("fat.data"));
        let taken = run(command);
        row(&[
            format!("`{}`", question.join(" ")),
            format!("{:.2}", taken.seconds),
            format!("{} MiB", taken.memory >> 20),
        ]);
    }
    println!();
}

/// Adds sections as large as those of a large program, whose content is nothing.
fn add_debug_info(lab: &Lab, program: &Path) {
    let content = lab.file("content");
    let file = File::create(&content).expect("a new file");
    file.set_len(DEBUG_INFO).expect("a file with a hole");
    let mut command = Command::new("objcopy");
    let section = format!(".debug_info={}", content.display());
    command.args(["--add-section", &section]).arg(program);
    run_command(command).success();
}
