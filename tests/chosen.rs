//! Processes that are chosen by their control group, container, unit or executable: the programs in the kernel refuse hits of others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cgroups::Group;
use crate::common::{
    Build, Lab, Process, Recorder, Ticker, need_tool, run, skip, test, wait_until,
};

/// Counters of the recorded hits, in the order of time.
#[track_caller]
fn counters(lab: &Lab) -> Vec<i128> {
    let events = lab.events("trace");
    events.iter().map(|event| event.integer(1)).collect()
}

/// Where control groups of version 2 are mounted.
fn mount() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    let mut lines = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let line = lines.find(|words| words[2] == "cgroup2");
    line.expect("control groups of version 2")[1].into()
}

/// The directory of a group.
fn directory(group: &Group) -> PathBuf {
    mount().join(&group.path[1..])
}

#[test]
fn each_name_of_a_control_group() {
    let lab = Lab::privileged();
    let (group, other) = (Group::new(&lab, "one"), Group::new(&lab, "one-more"));
    let mut one = Ticker::start(&lab);
    let mut stranger = Ticker::again(one.program());
    group.take(one.pid());
    other.take(stranger.pid());
    let event = one.event("tick");
    let directory = directory(&group);
    let id = fs::metadata(&directory).expect("the group").ino();
    let name = group.path[1..].to_owned();
    for option in [
        format!("--cgroup={}", group.path),
        format!("--cgroup={}", directory.display()),
        format!("-G{id}"),
        format!("--cgroup={name}"),
        // Two kinds add up.
        format!("--unit={name}.service --cgroup={name}"),
    ] {
        let unit = Group::new(&lab, "one.service");
        let options = ["-a", "-o", "trace", "-e", &event];
        let recorder = Recorder::start(&lab, options.into_iter().chain(option.split(' ')));
        stranger.hit("fire 5");
        one.hit("fire 3");
        stranger.hit("fire 5");
        one.hit("thread 2");
        one.hit("fork 1");
        recorder.stop();
        assert_eq!(counters(&lab), [0, 1, 2, 0, 1, 0], "{option}");
        drop(unit);
    }
}

/// Groups below the chosen one, also those that are made later.
#[test]
fn descendants() {
    let lab = Lab::privileged();
    let outer = Group::new(&lab, "outer");
    let mut one = Ticker::start(&lab);
    let event = one.event("tick");
    let options = ["-G", &outer.path, "-o", "trace", "-e", &event];
    let recorder = Recorder::start(&lab, options);
    one.hit("fire 1");
    let inner = Group::new(&lab, "outer/inner");
    let innermost = Group::new(&lab, "outer/inner/innermost");
    for group in [&inner, &innermost, &outer] {
        group.take(one.pid());
        one.hit("fire 2");
    }
    drop(one);
    recorder.stop();
    assert_eq!(counters(&lab), [0, 1, 0, 1, 0, 1]);
}

/// A unit and a container that are started again and again: a group of the same name is another one, whose first process hits at once.
#[test]
fn groups_that_are_made_again() {
    let lab = Lab::privileged();
    let id = "0123456789abcdef".repeat(4);
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    for (name, option) in [
        ("x@1.service", "--unit"),
        (&*id, "--container"),
        ("again", "-G"),
    ] {
        let mut group = Group::new(&lab, name);
        let value = match option {
            "--container" => id[..12].to_owned(),
            "-G" => group.path.clone(),
            _ => group.path[1..].to_owned(),
        };
        let other = Group::new(&lab, &format!("other{}", &name[..3]));
        let recorder = Recorder::start(&lab, [option, &value, "-o", "trace", "-e", &event]);
        for _ in 0..20 {
            drop(group);
            group = Group::new(&lab, name);
            for (group, hits) in [(&group, 3), (&other, 2)] {
                let script = format!("{}; exec \"$0\" {hits}", group.enter());
                let mut shell = Command::new("sh");
                shell.args(["-c", &script]).arg(&program);
                run(shell).success();
            }
        }
        recorder.stop();
        assert_eq!(counters(&lab), [0, 1, 2].repeat(20), "{option}");
    }
}

/// Units, containers and groups whose first start is after that of the recording: their first process hits at once.
#[test]
fn groups_that_are_made_for_the_first_time() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    let (outer, other) = (Group::new(&lab, "outer"), Group::new(&lab, "other"));
    // Nobody else has these.
    let id = format!("a{:07x}", std::process::id()).repeat(8);
    let unit = format!("{}@1.service", &outer.path[1..]);
    for (directory, option, value, missing) in [
        (
            &*unit,
            "--unit",
            &unit[..unit.len() - 8],
            format!("no control group of unit {unit}"),
        ),
        (
            &id,
            "--container",
            &id,
            format!("no control group of container {id}"),
        ),
        (
            &format!("docker-{id}.scope"),
            "--container",
            &id[..12],
            format!("no control group of container {}", &id[..12]),
        ),
        (
            "first",
            "-G",
            &format!("{}/first", outer.path),
            format!("no control group {}/first", outer.path),
        ),
    ] {
        let options = ["record", "-a", "-o", "trace", "-e", &event, option, value];
        let mut recorder = Process::spawn(lab.command(options));
        let line = recorder.until_error_line("now: waiting");
        assert_eq!(line, format!("usdtrec: {missing} now: waiting"));
        recorder.until_error_line("[ usdtrec record:");
        for _ in 0..10 {
            let group = Group::new(&lab, &format!("outer/{directory}"));
            for (group, hits) in [(&other, 2), (&group, 3)] {
                let script = format!("{}; exec \"$0\" {hits}", group.enter());
                let mut shell = Command::new("sh");
                shell.args(["-c", &script]).arg(&program);
                run(shell).success();
            }
        }
        recorder.signal("INT");
        recorder.finish().success();
        assert_eq!(counters(&lab), [0, 1, 2].repeat(10), "{option} {value}");
    }
}

/// Where nothing came, that is said.
#[test]
fn a_group_that_never_comes() {
    let lab = Lab::privileged();
    let one = Ticker::start(&lab);
    let event = one.event("tick");
    for verb in [&["record", "-o", "trace"][..], &["trace"], &["top"]] {
        let options = ["--duration", "0.1", "-e", &event, "--unit", "usdtrec-never"];
        let ended = lab.usdtrec(verb.iter().chain(&options)).success();
        let said = "no control group of unit usdtrec-never.service";
        for moment in ["now: waiting", "at the end"] {
            let line = format!("usdtrec: {said} {moment}");
            assert!(ended.stderr.contains(&line), "{verb:?}: {}", ended.stderr);
        }
    }
}

/// A program under another path, in another process, and one that the dynamic loader executes: that is its executable.
#[test]
fn executables() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let linked = lab.file("linked");
    fs::hard_link(&program, &linked).expect("a link");
    let loader = loader(&program);
    let mut one = Ticker::again(&program);
    let mut command = Command::new(&loader);
    command.arg(&program);
    let mut other = Process::spawn(command);
    let event = one.event("tick");
    for (executable, expected) in [(&linked, 3), (&loader, 4)] {
        let executable = executable.to_str().expect("a path");
        let options = ["--exe", executable, "-o", "trace", "-e", &event];
        let recorder = Recorder::start(&lab, options);
        one.hit("fire 3");
        other.say("fire 4");
        while other.line().expect("a line") != "done" {}
        recorder.stop();
        assert_eq!(counters(&lab).len(), expected, "{executable}");
    }
    // What would be expected of the program's path is said.
    let path = program.to_str().expect("a path");
    let recorder = Recorder::start(&lab, ["--exe", path, "-o", "none", "-e", &event]);
    let said = format!("process {} executes", other.pid());
    recorder.stop().complains(&said);
}

/// The dynamic loader of a program.
fn loader(program: &Path) -> PathBuf {
    need_tool("readelf");
    let mut command = Command::new("readelf");
    command.arg("-lW").arg(program);
    let text = run(command).success().stdout;
    let (_, rest) = text.split_once("interpreter: ").expect("a loader");
    rest.split(']').next().expect("its path").into()
}

/// A program that is replaced by rename; it is its library that has the probe.
#[test]
fn an_executable_that_is_replaced() {
    let lab = Lab::privileged();
    let library = Build {
        options: &["-shared", "-fPIC", "-O1"],
        ..Build::USUAL
    };
    let library = library.make(&lab, "library.c", "liblibrary.so");
    let program = Build::USUAL.make(&lab, "library_user.c", "user");
    let (stranger, next) = (lab.file("stranger"), lab.file("next"));
    fs::copy(&program, &stranger).expect("a copy");
    let event = format!("*:work@{}", library.display());
    let path = program.to_str().expect("a path");
    let recorder = Recorder::start(&lab, ["--exe", path, "-o", "trace", "-e", &event]);
    for _ in 0..3 {
        for program in [&program, &stranger] {
            let mut command = Command::new(program);
            command.arg(&library);
            run(command).success();
        }
        fs::copy(&stranger, &next).expect("a copy");
        fs::rename(&next, &program).expect("an upgrade");
        // It is noticed within a tenth of a second.
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    recorder.stop();
    assert_eq!(lab.events("trace").len(), 15);
}

#[test]
fn what_cannot_be_chosen() {
    let lab = Lab::privileged();
    let (first, second) = ("0123".repeat(16), format!("{}4567", "0123".repeat(15)));
    let groups = [first, second].map(|id| Group::new(&lab, &id));
    let one = Ticker::start(&lab);
    groups[0].take(one.pid());
    let event = one.event("tick");
    let pid = one.pid().to_string();
    for (options, status, said) in [
        (
            &["--unit", "no-such-unit", "--no-wait"][..],
            1,
            "there is no unit no-such-unit.service",
        ),
        (
            &["-G", "/no/such", "--no-wait"],
            1,
            "there is no control group /no/such; there are: /",
        ),
        // What is not waited for: there will be none, or what it will be called is not known.
        (&["--unit", "x.timer"], 1, "there is no unit x.timer"),
        (&["-G", "/usr/bin"], 1, "there is no control group /usr/bin"),
        (&["-G", "/a/../b"], 1, "there is no control group /a/../b"),
        (&["-G", "1"], 1, "there is no control group 1"),
        (
            &["--container", "abcdef01234"],
            1,
            "there is no container abcdef01234",
        ),
        (&["-G", "/"], 1, "the root control group has all processes"),
        (
            &["--container", "01230123"],
            1,
            "container 01230123 is ambiguous: 0123",
        ),
        (
            &["--container", "web"],
            1,
            "expected at least 4 hexadecimal digits",
        ),
        (&["--exe", "/no/such"], 1, "/no/such"),
        (&["-G", "x", "-p", &pid], 2, "cannot be used with"),
        (&["-G", "x", "--engine", "perf"], 2, "need the bpf engine"),
        (&["-G", "x", "--", "true"], 2, "add -a"),
    ] {
        let record = ["record", "-o", "trace", "-e", &event];
        lab.usdtrec(record.iter().chain(options))
            .exits(status)
            .complains(said);
    }
    assert!(!lab.file("trace").exists());
}

/// Commands of a shell in a mount namespace of its own: a hierarchy of version 1, with a group `old.service/ID` that has a process, and a recording. The
/// hierarchy ends when it is unmounted without groups. While it ends, mounting it waits.
const VERSION_1: &str = r#"
    mkdir old && mount -t cgroup -o "none,name=$NAME" none old || exit 77
    mkdir -p "old/old.service/$ID" && echo "$PID" > "old/old.service/$ID/cgroup.procs" || exit 78
    [ "$ALONE" = no ] || umount -l -a -t cgroup2 || exit 79
    timeout 60 "$USDTREC" record -a -o trace -e "$EVENT" "$@"
    status=$?
    echo "$PID" > old/cgroup.procs
    # Groups go a moment after they were removed.
    for _ in $(seq 10); do
      rmdir "old/old.service/$ID" old/old.service
      sleep 0.3
      umount old
      sleep 0.3
      grep -q "name=$NAME:" /proc/self/cgroup || break
      timeout 5 mount -t cgroup -o "none,name=$NAME" none old || break
    done
    rmdir old
    exit $status"#;

/// On a host that has control groups of version 1 only, and where a group is of that version.
#[test]
fn control_groups_of_version_1() {
    let lab = Lab::privileged();
    need_tool("unshare");
    let one = Ticker::start(&lab);
    let pid = one.pid().to_string();
    // Nobody else has it.
    let id = format!("b{:07x}", std::process::id()).repeat(8);
    let path = format!("/old.service/{id}");
    let event = one.event("tick");
    let refused = |alone: &str, options: [&str; 2]| {
        // A hierarchy that ends still has its name.
        let [option, value] = options;
        let name = format!("{}{option}{alone}", std::process::id());
        let shell = ["--mount", "sh", "-c", VERSION_1, "sh", option, value];
        let mut command = lab.at_home(Path::new("unshare"), shell);
        command.env("NAME", &name).env("ID", &id).env("PID", &pid);
        command.env("EVENT", &event).env("ALONE", alone);
        command.env("USDTREC", env!("CARGO_BIN_EXE_usdtrec"));
        let finished = run(command);
        if finished.status.code() == Some(77) {
            skip("no hierarchy of version 1 can be mounted");
        }
        finished.exits(1)
    };
    for (options, what) in [
        (["-G", &*path], format!("control group {path}")),
        (["--unit", "old"], "unit old.service".to_owned()),
        (
            ["--container", &id[..12]],
            format!("container {}", &id[..12]),
        ),
    ] {
        refused("yes", options)
            .complains("there are no control groups of version 2 here, only of version 1");
        let said = format!("{what} is in control groups of version 1, expected version 2");
        refused("no", options).complains(&said);
    }
    assert!(!lab.file("trace").exists());
}

/// A user makes groups of the name of a unit and of a container in its own subtree: those of the system are recorded.
#[test]
fn a_group_of_another_user_with_the_name_of_one_of_the_system() {
    let lab = Lab::privileged();
    need_tool("setpriv");
    let id = "ba".repeat(32);
    let (unit, container) = ("pg.service", format!("docker-{id}.scope"));
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    let outer = [Group::new(&lab, "system.slice"), Group::new(&lab, "user")];
    let user = &outer[1];
    delegate(user);
    for (name, option, value) in [
        (unit, "--unit", "pg"),
        (&*container, "--container", &id[..12]),
    ] {
        let own = Group::new(&lab, &format!("system.slice/{name}"));
        for is_later in [false, true] {
            let foreign = directory(user).join(name);
            let make = || {
                let mut mkdir = Command::new("setpriv");
                mkdir.args([
                    "--reuid",
                    "65534",
                    "--regid",
                    "65534",
                    "--clear-groups",
                    "mkdir",
                ]);
                mkdir.arg(&foreign);
                run(mkdir).success();
            };
            if !is_later {
                make();
            }
            let recorder =
                Recorder::start(&lab, ["-a", option, value, "-o", "trace", "-e", &event]);
            if is_later {
                make();
            }
            for (procs, hits) in [(directory(&own), "2"), (foreign.clone(), "5")] {
                let script = format!(
                    "echo $$ > {}/cgroup.procs; exec \"$0\" {hits}",
                    procs.display()
                );
                let mut shell = Command::new("sh");
                shell.args(["-c", &script]).arg(&program);
                run(shell).success();
            }
            let ended = recorder.stop();
            assert_eq!(counters(&lab), [0, 1], "{option} {is_later}");
            let is_said = ended.stderr.contains("of user 65534");
            assert_eq!(is_said, !is_later, "{}", ended.stderr);
            wait_until_removed(&foreign);
        }
    }
}

/// The only group of a name is that of a user: it is recorded, and its owner is named. Of several none is.
#[test]
fn the_groups_of_users_alone_have_a_name() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", program.display());
    let outer = [Group::new(&lab, "one"), Group::new(&lab, "two")];
    for group in &outer {
        delegate(group);
    }
    let one = Group::new(&lab, "one/only-of-users.service");
    let options = ["--unit", "only-of-users", "-o", "trace", "-e", &event];
    let recorder = Recorder::start(&lab, options);
    let script = format!("{}; exec \"$0\" 3", one.enter());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(&program);
    run(shell).success();
    let ended = recorder.stop();
    assert_eq!(counters(&lab), [0, 1, 2]);
    assert!(ended.stderr.contains("of user 65534"), "{}", ended.stderr);
    let two = Group::new(&lab, "two/only-of-users.service");
    let refused = lab.usdtrec(["record"].into_iter().chain(options)).exits(1);
    refused
        .complains(&one.path)
        .complains(&two.path)
        .complains("expected the path of one");
}

/// Gives the subtree of a group to the user `nobody`.
fn delegate(group: &Group) {
    std::os::unix::fs::chown(directory(group), Some(65534), None).expect("a new owner");
}

/// Removes a group once its processes have ended.
fn wait_until_removed(directory: &Path) {
    wait_until("the group has no processes", || {
        fs::remove_dir(directory).is_ok()
    });
}
