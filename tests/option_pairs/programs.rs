//! The traced programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Build, Lab, Process, copy_program, sites_of};

/// No wait is longer.
pub(super) const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// What the traced programs are.
pub(super) struct Programs {
    pub(super) path: PathBuf,
    /// Those that go on by themselves: one that is recorded, and one that is not.
    pub(super) main: Process,
    pub(super) stranger: Process,
}

/// A traced program's log.
pub(super) fn log(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.file(&format!("{name}.log"))).unwrap_or_default()
}

/// Waits until a program has said a word so many times; whether it did while the recorder ran.
pub(super) fn said(lab: &Lab, name: &str, word: &str, recorder: &mut Process) -> bool {
    let deadline = Instant::now() + WAIT_LIMIT;
    while Instant::now() < deadline {
        if log(lab, name).lines().any(|line| line == word) {
            return true;
        }
        if !recorder.is_running() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

impl Programs {
    pub(super) fn start(lab: &Lab, built: &Path) -> Self {
        let path = lab.file("pairs");
        copy_program(built, &path);
        fs::write(lab.file("far"), format!("{:4096}", "far away\0")).expect("a file");
        let schema = "provider = \"pairs\"\n[[probe]]\nname = \"go\"\n\
                      arguments = [\"numbered: s32\", \"_\", \"_\", \"size: u64 bytes\"]\n";
        fs::write(lab.file("named.toml"), schema).expect("a file");
        let start = |name: &str| {
            let log = lab.file(&format!("{name}.log"));
            let mut command = Command::new(&path);
            command.arg(log).arg(lab.file("far"));
            let mut process = Process::spawn(command);
            let is_there =
                |process: &mut Process| said(lab, name, &format!("pid {}", process.pid()), process);
            assert!(is_there(&mut process), "{name} does not begin");
            process
        };
        let (main, stranger) = (start("main"), start("stranger"));
        Self {
            path,
            main,
            stranger,
        }
    }
}

/// The program, with an instruction that is no nop at the site of pairs:forced.
pub(super) fn build(lab: &Lab) -> PathBuf {
    /// `cld`, which changes nothing here.
    const OTHER: u8 = 0xfc;
    let program = Build::USUAL.make(lab, "pairs.c", "built");
    let sites = sites_of(lab, &program);
    let site = sites.iter().find(|site| site.event == "sdt_pairs:forced");
    let at = usize::try_from(site.expect("its site").pc).expect("a small address");
    let mut bytes = fs::read(&program).expect("our program");
    assert_eq!(
        bytes[at], 0x90,
        "in this file, addresses of code are offsets"
    );
    bytes[at] = OTHER;
    fs::write(&program, bytes).expect("our program");
    program
}
