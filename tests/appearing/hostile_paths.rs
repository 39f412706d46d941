//! Paths by which a process would have another file opened than the one that it runs.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use rustix::fs::inotify;

use super::{
    OwnHits, PLANTED, ProgramPlace, Recorded, check, command, need_tools, program,
    run_until_planted, waiting_recorder,
};
use crate::common::{
    Build, Event, Lab, Process, byte_of, copy_program, run, sites_of, test, wait_until,
};

/// In each, the path of the program, or what its path leads to here, is `$DIR/other` or begins with it. Nobody runs that.
const HOSTILE: [ProgramPlace; 7] = [
    ProgramPlace {
        name: "newline",
        script: r#"name="$DIR/other
x" && cp $PROGRAM "$name" && exec "$name" $HITS"#,
    },
    ProgramPlace {
        name: "name that ends as those of deleted files",
        script: r#"cp $PROGRAM "$DIR/other (deleted)" && exec "$DIR/other (deleted)" $HITS"#,
    },
    ProgramPlace {
        name: "symbolic link instead of the program",
        script: "exec $PROGRAM $HITS link $DIR/other",
    },
    ProgramPlace {
        name: "the same in another root, from which the link leads out",
        script: "mkdir -p $DIR/root && cp --remove-destination $PROGRAM $DIR/root/program && \
                 exec chroot $DIR/root /program $HITS link $DIR/other",
    },
    ProgramPlace {
        name: "path of a file of ours, in another root",
        script: "mkdir -p $DIR/root$DIR && cp $PROGRAM $DIR/root$DIR/other && exec chroot $DIR/root $DIR/other $HITS",
    },
    ProgramPlace {
        name: "path of a file of ours, in another mount namespace",
        script: "exec unshare --mount sh -c \
                 'mount -t tmpfs none $DIR && cp $PROGRAM $DIR/other && exec $DIR/other $HITS'",
    },
    ProgramPlace {
        name: "path in a mount that is detached: the rest of it is that of a file of ours",
        script: "mkdir -p $DIR/mount && exec unshare --mount sh -c \
                 'mount -t tmpfs none $DIR/mount && mkdir -p $DIR/mount$DIR && cp $PROGRAM $DIR/mount$DIR/other && \
                 exec $DIR/mount$DIR/other $HITS detach $DIR/mount'",
    },
];

/// Watches whether files are opened for reading.
struct Watch(OwnedFd);

impl Watch {
    fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        use inotify::{CreateFlags, WatchFlags};
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
        for path in paths {
            inotify::add_watch(&watch, path, WatchFlags::OPEN | WatchFlags::ACCESS)
                .expect("a watch");
        }
        Self(watch)
    }

    fn saw_nothing(&self) -> bool {
        let mut events = [0; 4096];
        rustix::io::read(&self.0, &mut events) == Err(rustix::io::Errno::AGAIN)
    }
}

/// The files have the probe, and the build-id of the program.
#[test]
fn no_other_file_is_read() {
    let lab = Lab::privileged();
    need_tools();
    let program = program(&lab, "-DPROVIDER=appearing_hostile");
    let others: Vec<_> = (0..HOSTILE.len())
        .map(|number| lab.file(&format!("dir-{number}/other")))
        .collect();
    for options in [&[][..], &["-g"]] {
        for other in &others {
            fs::create_dir_all(other.parent().expect("a folder")).expect("a folder");
            copy_program(&program, other);
        }
        let watch = Watch::new(others.iter().map(AsRef::as_ref));
        let mut recorder = waiting_recorder(&lab, "appearing_hostile:hit", options);
        let own = run_until_planted(&lab, &program, &mut recorder, &HOSTILE, |_| {
            let listed = lab.usdtrec(["list", "-a", "appearing_hostile:*"]);
            let rows = listed.success().stdout;
            assert!(rows.lines().count() == 2, "{rows}");
            assert!(watch.saw_nothing(), "{options:?}: {rows}");
        });
        // Processes that have ended when their files would be opened.
        for (number, place) in HOSTILE.iter().enumerate() {
            for _ in 0..5 {
                let mut shell = command(&lab, &program, *place, number, 1);
                shell.env("HITS", "99 1");
                run(shell).success();
            }
            assert!(watch.saw_nothing(), "{}: {options:?}", place.name);
        }
        recorder.signal("INT");
        recorder.finish().success();
        assert!(watch.saw_nothing(), "{options:?}, at the end");
        check(&lab, &HOSTILE, &own);
        for number in 0..HOSTILE.len() {
            fs::remove_dir_all(lab.file(&format!("dir-{number}"))).expect("a folder");
        }
    }
}

/// Another process runs the file at that path.
#[test]
fn no_other_process_is_planted() {
    const PLACE: ProgramPlace = ProgramPlace {
        name: "mount namespace",
        script: "read line && exec unshare --mount sh -c \
                 'mount -t tmpfs none $DIR && cp $PROGRAM $DIR/other && exec $DIR/other $HITS'",
    };
    let lab = Lab::privileged();
    need_tools();
    let build = Build {
        options: &["-O2", "-DPROVIDER=appearing_other"],
        ..Build::USUAL
    };
    let program = build.make(&lab, "appearing.c", "program");
    let other = lab.file("dir-0/other");
    fs::create_dir(lab.file("dir-0")).expect("a folder");
    copy_program(&program, &other);
    let mut running = Command::new(&other);
    running.args(["1", "0"]);
    let mut running = Process::spawn(running);
    // It has been executed when it is asked to end.
    wait_until("the start of the program", || {
        fs::read_link(format!("/proc/{}/exe", running.pid())).is_ok_and(|exe| exe == other)
    });
    let address = sites_of(&lab, &other)[0].pc;
    let byte = byte_of(running.pid(), &other, address);
    let mut process = Process::spawn(command(&lab, &program, PLACE, 0, 0));
    let pid = process.pid();
    let mut record = lab.command(["record", "-o", "trace", "-e", "appearing_other:hit", "-p"]);
    record.arg(pid.to_string());
    let mut recorder = Process::spawn(record);
    recorder.until_error_line("[ usdtrec record: 0 probes");
    process.say("");
    recorder.until_error_line(PLANTED);
    assert_eq!(byte_of(running.pid(), &other, address), byte);
    process.say("");
    let line = process.line().expect("what it did");
    process.finish().success();
    recorder.finish().success();
    assert_eq!(byte_of(running.pid(), &other, address), byte);
    running.say("");
    let others = OwnHits::parse(&running.line().expect("what it did"));
    assert!(!others.times.is_empty());
    let own = OwnHits::parse(&line);
    let recorded = Recorded::from_lab(&lab);
    let all: Vec<&Event> = recorded.events.iter().collect();
    own.are_recorded_after(recorded.gaps[0].time, &all, PLACE.name);
}
