//! Complaints of the kernel.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::run;

/// Messages of the kernel about uprobes of a file that it could not remove. Older ones may be about another file, whose inode number was freed.
pub(crate) fn complaints(file: &Path) -> usize {
    let metadata = file.metadata().expect("a file");
    let inode = metadata.ino();
    let age = metadata.created().expect("a time").elapsed();
    let uptime = fs::read_to_string("/proc/uptime").expect("a text");
    let uptime: f64 = uptime
        .split(' ')
        .next()
        .expect("a word")
        .parse()
        .expect("s");
    let made = uptime - age.expect("a time in the past").as_secs_f64();
    let is_later = |line: &&str| {
        let time = line.trim_start_matches(['[', ' ']).split(']').next();
        time.is_some_and(|time| time.parse().is_ok_and(|time: f64| time >= made))
    };
    let messages = run(Command::new("dmesg")).success().stdout;
    let ours = format!("inode: {inode:#x} ");
    let lines = messages.lines().filter(|line| line.contains("ref_ctr"));
    lines
        .filter(|line| line.contains(&ours))
        .filter(is_later)
        .count()
}
