//! Files of processes in another mount namespace, or below another root.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::{Build, Lab, Process, Recorder, copy_program, need_tool, path_text, test};

use super::tell;

/// A ticker that runs at a path where other processes see another program.
struct Inside {
    ticker: Process,
    /// Its path, for itself and for everybody else.
    path: PathBuf,
}

impl Inside {
    fn start(lab: &Lab) -> Self {
        Build::USUAL.make(lab, "ticker.c", "ticker");
        let other = Build::USUAL.make(lab, "first.c", "first");
        need_tool("unshare");
        let place = lab.file("place");
        fs::create_dir(&place).expect("a directory");
        let path = place.join("app");
        fs::copy(other, &path).expect("a copy");
        let script = "mount -t tmpfs none place && cp ticker place/app && exec place/app";
        let shell = ["--mount", "sh", "-c", script];
        let mut ticker = Process::spawn(lab.at_home(Path::new("unshare"), shell));
        // It answers when it runs.
        tell(&mut ticker, "fire 1");
        assert!(ticker.is_running(), "{script}");
        fs::remove_file(lab.file("ticker")).expect("the file");
        Self { ticker, path }
    }

    /// What a path of the process is from here.
    fn below_root(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").expect("an absolute path");
        PathBuf::from(format!("/proc/{}/root", self.ticker.pid())).join(below)
    }
}

#[test]
fn lists_and_cache_see_the_process_s_files() {
    let lab = Lab::privileged();
    let inside = Inside::start(&lab);
    let path = inside.below_root(&inside.path);
    let pid = inside.ticker.pid();
    let here = std::env::current_dir().expect("a directory");
    let link = lab.file("link");
    symlink(inside.below_root(Path::new("/")), &link).expect("a link");
    let exe = format!("/proc/{pid}/exe");
    let by_link = format!("link/{}", path_text(inside.path.strip_prefix("/").unwrap()));
    for file in [path_text(&path), &exe, &by_link] {
        let listed = lab.usdtrec(["list", "-v", "--file", file]).success();
        assert!(listed.stdout.contains("sdt_ticker:tick"), "{file}");
        assert!(!listed.stdout.contains("shapes"), "{file}");
    }
    let listed = lab.usdtrec(["list", "-v", "--file", path_text(&path)]);
    assert!(
        listed.stdout.contains(path_text(&path)),
        "{}",
        listed.stdout
    );
    let directory = inside.below_root(&lab.file("place"));
    let listed = lab.usdtrec(["list", "-v", "--dir", path_text(&directory)]);
    assert!(listed.stdout.contains("sdt_ticker:tick"), "{here:?}");
    assert!(
        listed.stdout.contains(path_text(&path)),
        "{}",
        listed.stdout
    );
    let added = lab.usdtrec(["buildid-cache", "--add", path_text(&path)]);
    assert!(added.success().stdout.contains(path_text(&path)));
    let scanned = lab.usdtrec(["buildid-cache", "--scan", path_text(&directory)]);
    assert!(scanned.success().stdout.contains("known already"));
    let listed = lab.usdtrec(["list"]).success().stdout;
    assert!(listed.contains("sdt_ticker:tick"), "{listed}");
    assert!(!listed.contains("shapes"), "{listed}");
}

#[test]
fn recordings_are_of_the_process_s_files() {
    let lab = Lab::privileged();
    let mut inside = Inside::start(&lab);
    let pid = inside.ticker.pid().to_string();
    let path = path_text(&inside.path).to_owned();
    let below_root = inside.below_root(&inside.path);
    let [by_root, by_exe, by_path] = [path_text(&below_root), &format!("/proc/{pid}/exe"), &path]
        .map(|path| format!("ticker:tick@{path}"));
    for (event, whose) in [
        (by_root.as_str(), &["-a"][..]),
        (&by_exe, &["-a"]),
        (&by_path, &["-p", &pid]),
        (&by_root, &["-p", &pid]),
        ("ticker:tick", &["-p", &pid]),
    ] {
        for engine in ["auto", "perf"] {
            let arguments = ["-o", "trace", "--engine", engine, "-e", event];
            let recorder = Recorder::start(&lab, [whose, &arguments].concat());
            let hits = tell(&mut inside.ticker, "fire 3");
            recorder.stop();
            let events = lab.events("trace").len();
            assert_eq!(events, hits.len(), "{event} {whose:?} {engine}");
        }
    }
    // What other processes see at the path is not what the process has there.
    let host = format!("shapes:first@{path}");
    lab.usdtrec(["record", "-p", &pid, "-e", &host])
        .exits(1)
        .complains("has no probe");
    let outside = format!("shapes:first@{}", path_text(&lab.file("first")));
    lab.usdtrec(["record", "-a", "--duration", "100ms", "-e", &outside])
        .success();
}

/// Names of functions come from the file that the process has mapped, although another one is at its path here.
#[test]
fn names_in_stacks_are_of_the_process_s_files() {
    let lab = Lab::privileged();
    let mut inside = Inside::start(&lab);
    let pid = inside.ticker.pid().to_string();
    for engine in ["auto", "perf"] {
        let arguments = ["-p", &pid, "-g", "-o", "trace", "--engine", engine];
        let events = ["-e", "ticker:tick"];
        let recorder = Recorder::start(&lab, [&arguments[..], &events].concat());
        tell(&mut inside.ticker, "fire 3");
        recorder.stop();
        let folded = lab.usdtrec(["export", "-i", "trace", "--to", "folded", "-o", "-"]);
        let folded = folded.success().stdout;
        assert!(folded.contains(";main;"), "{engine}: {folded}");
    }
}

/// Absolute links below a process's root stay below it.
#[test]
fn links_below_a_root() {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options: &["-O2", "-static"],
    };
    let program = build.make(&lab, "ticker.c", "ticker");
    need_tool("chroot");
    let root = lab.file("root");
    fs::create_dir_all(root.join("opt/real")).expect("a directory");
    copy_program(&program, root.join("opt/real/app"));
    // From here, the second is this machine's `true`.
    symlink("/opt/real/app", root.join("app")).expect("a link");
    symlink("/opt/real", root.join("bin")).expect("a link");
    fs::rename(root.join("opt/real/app"), root.join("opt/real/true")).expect("a file");
    fs::remove_file(root.join("app")).expect("the link");
    symlink("/bin/true", root.join("app")).expect("a link");
    let shell = [path_text(&root), "/opt/real/true"];
    let mut ticker = Process::spawn(lab.at_home(Path::new("chroot"), shell));
    tell(&mut ticker, "fire 1");
    let below = |path: &str| format!("/proc/{}/root/{path}", ticker.pid());
    for path in ["app", "bin/true", "opt/real/true", "../../app"] {
        let listed = lab.usdtrec(["list", "--file", &below(path)]).success();
        assert!(listed.stdout.contains("sdt_ticker:tick"), "{path}");
    }
    let pid = ticker.pid().to_string();
    let recorder = Recorder::start(&lab, ["-p", &pid, "-o", "trace", "-e", "ticker:tick@/app"]);
    let hits = tell(&mut ticker, "fire 3");
    recorder.stop();
    assert_eq!(lab.events("trace").len(), hits.len());
}
