//! A row for each kind of file.

use super::{ProgramPlace, check, need_tools, program, run_until_planted, waiting_recorder};
use crate::common::{Build, Lab, test};

const KINDS: [ProgramPlace; 13] = [
    ProgramPlace {
        name: "a file at its path",
        script: "exec $PROGRAM $HITS",
    },
    ProgramPlace {
        name: "memfd",
        script: "exec ./other $HITS memory $PROGRAM",
    },
    ProgramPlace {
        name: "deleted",
        script: "exec $PROGRAM $HITS remove",
    },
    ProgramPlace {
        name: "replaced by rename",
        script: "cp $PROGRAM $DIR/new && exec $PROGRAM $HITS replace $DIR/new",
    },
    ProgramPlace {
        name: "hard link",
        script: "ln $PROGRAM $DIR/link && exec $DIR/link $HITS",
    },
    ProgramPlace {
        name: "bind mount",
        script: "touch $DIR/bound && exec unshare --mount sh -c \
                 'mount --bind $PROGRAM $DIR/bound && exec $DIR/bound $HITS'",
    },
    ProgramPlace {
        name: "tmpfs of a mount namespace",
        script: "exec unshare --mount sh -c \
                 'mount -t tmpfs none $DIR && cp $PROGRAM $DIR/program && exec $DIR/program $HITS'",
    },
    ProgramPlace {
        name: "lower folder of an overlay",
        script: "cd $DIR && mkdir lower upper work merged && cp $PROGRAM lower/program && exec unshare --mount sh -c \
                 'mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work merged && exec merged/program $HITS'",
    },
    ProgramPlace {
        name: "upper folder of an overlay",
        script: "cd $DIR && mkdir lower upper work merged && cp $PROGRAM lower/program && exec unshare --mount sh -c \
                 'mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work merged && touch merged/program && exec merged/program $HITS'",
    },
    ProgramPlace {
        name: "chroot",
        script: "mkdir $DIR/root && cp $PROGRAM $DIR/root/program && exec chroot $DIR/root /program $HITS",
    },
    ProgramPlace {
        name: "pid namespace",
        script: "exec unshare --pid --fork --kill-child --mount-proc $PROGRAM $HITS",
    },
    ProgramPlace {
        name: "user namespace",
        script: "exec unshare --user --map-root-user $PROGRAM $HITS",
    },
    ProgramPlace {
        name: "all namespaces, and a root of its own",
        script: "exec unshare --user --map-root-user --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh -c \
                 'mount -t tmpfs none $DIR && cp $PROGRAM $DIR/program && exec chroot $DIR /program $HITS'",
    },
];

#[test]
fn hits_and_those_in_the_reported_gap_are_all() {
    let lab = Lab::privileged();
    need_tools();
    let program = program(&lab, "-DPROVIDER=appearing_kinds");
    // Executes the memfd, and has no probe of that provider.
    let other = Build {
        options: &["-O2", "-DPROVIDER=appearing_no_kind"],
        ..Build::USUAL
    };
    other.make(&lab, "appearing.c", "other");
    for options in [&[][..], &["-g"]] {
        let mut recorder = waiting_recorder(&lab, "appearing_kinds:hit", options);
        let own = run_until_planted(&lab, &program, &mut recorder, &KINDS, |_| {});
        recorder.signal("INT");
        let said = recorder.finish().success().stderr;
        let followed = format!("usdtrec: followed: {} files", KINDS.len());
        assert!(said.contains(&followed), "{said}");
        check(&lab, &KINDS, &own);
        for number in 0..KINDS.len() {
            std::fs::remove_dir_all(lab.file(&format!("dir-{number}"))).expect("a folder");
        }
    }
}
