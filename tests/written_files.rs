//! What verbs write that have all of their output at once: it has its name when it is whole, and goes to nobody else.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::common::{Lab, need_tool, run, test};

/// The trace that is a part of the program.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");
/// A trace with stacks.
const STACKS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/testdata/traces/stock-7.2-regs-stack.data"
);

/// A command line that writes a file.
struct Writer {
    /// The words before the file.
    words: &'static [&'static str],
    /// The name of the file.
    name: &'static str,
    /// Whether the file that was there is renamed.
    keeps_old: bool,
}

const fn writer(words: &'static [&'static str], name: &'static str) -> Writer {
    Writer {
        words,
        name,
        keeps_old: false,
    }
}

fn writers(lab: &Lab) -> Vec<Writer> {
    let mut lines = fs::File::create(lab.file("lines")).expect("a file");
    for time in 1..5000 {
        let data = format!("{time}\\t0\\tkprobe:x\\t1\\t{time}\\tname{time}\\tq={time}\\n");
        writeln!(lines, r#"{{"type": "printf", "data": "{data}"}}"#).expect("room");
    }
    vec![
        #[cfg(feature = "flame")]
        writer(&["flame", "-i", STACKS], "out.svg"),
        #[cfg(feature = "flame")]
        writer(&["flame", "--diff", STACKS, STACKS], "out.html"),
        writer(&["export", "-i", DEMO, "--to", "otlp", "-o"], "otlp"),
        writer(&["export", "-i", DEMO, "--to", "perf", "-o"], "perf"),
        writer(&["export", "-i", STACKS, "--to", "html", "-o"], "page"),
        writer(&["archive", "--debug", "-i", STACKS, "-o"], "tarball"),
        Writer {
            keeps_old: true,
            ..writer(&["import", "lines", "-o"], "imported")
        },
    ]
}

fn command<'a>(writer: &Writer, name: &'a str) -> Vec<&'a str> {
    [writer.words, &[name]].concat()
}

#[test]
fn nothing_is_written_through_links() {
    let lab = Lab::new();
    let victim = lab.file("victim");
    for writer in writers(&lab) {
        let (out, old) = (
            lab.file(writer.name),
            lab.file(&format!("{}.old", writer.name)),
        );
        type MakeLink = fn(&Path, &Path);
        let links: [(&str, MakeLink); 3] = [
            ("symbolic", |victim, out| {
                symlink(victim, out).expect("a link");
            }),
            ("of another user", |victim, out| {
                symlink(victim, out).expect("a link");
                // Without root's rights it is one of this user.
                let _ = lchown(out, Some(65534), None);
            }),
            ("hard", |victim, out| {
                fs::hard_link(victim, out).expect("a link");
            }),
        ];
        for (kind, link) in links {
            fs::write(&victim, "kept").expect("a file");
            link(&victim, &out);
            lab.usdtrec(command(&writer, writer.name)).success();
            assert_eq!(fs::read(&victim).expect("it"), b"kept", "{kind}: {out:?}");
            let found = fs::symlink_metadata(&out).expect("the output");
            assert!(found.is_file() && found.len() > 20, "{kind}: {out:?}");
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{kind}: {out:?}");
            assert_eq!(
                fs::symlink_metadata(&old).is_ok(),
                writer.keeps_old,
                "{kind}"
            );
            fs::remove_file(&out).expect("it");
        }
    }
}

#[test]
fn fifos_have_a_reader_that_may_see_it() {
    need_tool("mkfifo");
    let lab = Lab::privileged();
    for writer in writers(&lab) {
        if writer.keeps_old {
            // The head of a trace is written last.
            continue;
        }
        let name = writer.name;
        let fifo = lab.file(name);
        run(lab.at_home(Path::new("mkfifo"), [name])).success();
        lab.usdtrec(command(&writer, name))
            .exits(1)
            .complains("is a FIFO without a reader");
        let line = format!(
            "cat {name} >read & sleep 0.2; {} {}; status=$?; wait; exit $status",
            env!("CARGO_BIN_EXE_usdtrec"),
            command(&writer, name).join(" ")
        );
        run(lab.at_home(Path::new("sh"), ["-c", &line])).success();
        let read = fs::read(lab.file("read")).expect("what was read");
        assert!(read.len() > 20, "{name}: {} bytes", read.len());
        chown(&fifo, Some(65534), None).expect("a FIFO of another user");
        let line = format!(
            "timeout 20 cat {name} >read & reader=$!; sleep 0.2; \"$@\"; status=$?; kill $reader; exit $status"
        );
        let words = [
            &["-c", &line, "sh", env!("CARGO_BIN_EXE_usdtrec")][..],
            &command(&writer, name),
        ];
        run(lab.at_home(Path::new("sh"), words.concat()))
            .exits(1)
            .complains("FIFO of user 65534");
        assert_eq!(fs::read(lab.file("read")).expect("the file"), b"", "{name}");
    }
}

#[test]
fn names_of_sockets_and_folders_stay() {
    let lab = Lab::new();
    fs::create_dir(lab.file("folder")).expect("a folder");
    for writer in writers(&lab) {
        let extension = Path::new(writer.name).extension();
        let extension = extension.map_or(String::new(), |text| format!(".{}", text.display()));
        let name = |name: &str| format!("{name}{extension}");
        let socket = lab.file(&name("socket"));
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("a socket");
        lab.usdtrec(command(&writer, &name("socket")))
            .exits(1)
            .complains("found a socket");
        drop(listener);
        fs::create_dir_all(lab.file(&name("folder"))).expect("a folder");
        lab.usdtrec(command(&writer, &name("folder")))
            .exits(1)
            .complains("directory");
        let nowhere = lab
            .usdtrec(command(&writer, &name("nowhere/deep")))
            .exits(1)
            .complains("nowhere/deep");
        assert!(!nowhere.stderr.contains(".usdtrec-"), "{}", nowhere.stderr);
    }
}

/// On a full disk what was there before stays whole, and nothing else is left.
#[test]
fn a_full_disk_leaves_what_was_there() {
    need_tool("unshare");
    let lab = Lab::privileged();
    fs::create_dir(lab.file("small")).expect("a directory");
    let script = "mount -t tmpfs -o size=16k none small && echo older >small/$1 && { name=$1; shift; \"$@\" small/$name; \
                  status=$?; ls -A small; cat small/$name; exit $status; }";
    for writer in writers(&lab) {
        // A tarball of no files is small enough.
        if writer.words[0] == "archive" {
            continue;
        }
        let mut shell = vec!["--mount", "sh", "-c", script, "sh", writer.name];
        shell.push(env!("CARGO_BIN_EXE_usdtrec"));
        shell.extend(writer.words);
        let full = run(lab.at_home(Path::new("unshare"), shell))
            .exits(1)
            .complains("No space left");
        let left = format!("{}\nolder\n", writer.name);
        assert_eq!(full.stdout, left, "{}", writer.name);
    }
}

#[test]
fn devices_take_what_verbs_write() {
    let lab = Lab::new();
    for writer in writers(&lab) {
        let extension = Path::new(writer.name).extension();
        let extension = extension.map_or(String::new(), |text| format!(".{}", text.display()));
        for (device, is_full) in [("/dev/null", false), ("/dev/full", true)] {
            let name = format!("device{extension}");
            let link = lab.file(&name);
            symlink(device, &link).expect("a link");
            let written = lab.usdtrec(command(&writer, &name));
            if is_full {
                written.exits(1).complains("No space left");
            } else {
                written.success();
            }
            assert!(fs::symlink_metadata(&link).expect("it").is_symlink());
            fs::remove_file(&link).expect("it");
        }
    }
}

/// `/dev/stdout` is a link of the host: it is followed to what is open there, and never renamed or replaced.
#[test]
fn links_to_standard_output_stay() {
    let lab = Lab::new();
    for writer in writers(&lab) {
        let extension = Path::new(writer.name).extension();
        let extension = extension.map_or(String::new(), |text| format!(".{}", text.display()));
        let name = format!("stdout{extension}");
        let link = lab.file(&name);
        symlink("/proc/self/fd/1", &link).expect("a link");
        let words = [
            &["-c", "\"$@\" >read", "sh", env!("CARGO_BIN_EXE_usdtrec")][..],
            &command(&writer, &name),
        ];
        let written = run(lab.at_home(Path::new("sh"), words.concat()));
        let read = fs::read(lab.file("read")).expect("standard output");
        if writer.keeps_old {
            written
                .exits(1)
                .complains("names an open file of this process");
            assert_eq!(read, b"", "{name}");
        } else {
            written.success();
            assert!(read.len() > 20, "{:?}: {} bytes", writer.words, read.len());
        }
        assert!(fs::symlink_metadata(&link).expect("it").is_symlink());
        assert!(!lab.file(&format!("{name}.old")).exists());
        fs::remove_file(&link).expect("it");
    }
}

#[test]
fn no_output_replaces_its_input() {
    let lab = Lab::new();
    let commands: &[&[&str]] = &[
        #[cfg(feature = "flame")]
        &["flame", "-i", "in.svg", "in.svg"],
        #[cfg(feature = "flame")]
        &["flame", "--diff", STACKS, "in.svg", "in.svg"],
        &["export", "-i", "in.svg", "--to", "html", "-o", "in.svg"],
        &["export", "-i", "in.svg", "--to", "perf", "-o", "./in.svg"],
        &["archive", "--debug", "-i", "in.svg", "-o", "in.svg"],
    ];
    fs::copy(STACKS, lab.file("in.svg")).expect("a copy");
    for words in commands {
        lab.usdtrec(*words)
            .exits(2)
            .complains("in.svg: is a file of the trace that is read");
        let left = fs::read(lab.file("in.svg")).expect("the trace");
        assert!(left == fs::read(STACKS).expect("the trace"), "{words:?}");
    }
}
