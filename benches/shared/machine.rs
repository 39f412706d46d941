//! What the figures were measured on.

use std::process::Command;

fn first_line_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default()
        .lines()
        .next()
        .unwrap_or("?")
        .to_owned()
}

/// CPU, kernel, system and perf, in one sentence.
pub(crate) fn describe() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU", |(_, model)| model);
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let virtual_machine = if cpuinfo.contains(" hypervisor") {
        ", in a virtual machine"
    } else {
        ""
    };
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or("Linux", |name| name.trim_matches('"'));
    format!(
        "{cpus} CPUs ({model}){virtual_machine}; Linux {}; {system}; {}. Medians of {} alternating rounds.",
        first_line_of("uname", &["-r"]),
        first_line_of("perf", &["--version"]),
        crate::ROUNDS
    )
}
