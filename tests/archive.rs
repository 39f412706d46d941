//! `usdtrec archive`: what another host needs to name functions.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Command;

use bzip2::Compression;
use bzip2::write::BzEncoder;
use tar::{Builder, EntryType, Header};

use crate::common::{Build, Lab, Perf, need_tool, run, test};

/// A trace without names, whose program is there.
fn recorded(lab: &Lab) -> std::path::PathBuf {
    let program = Build::USUAL.make(lab, "stacks.c", "target");
    let path = program.to_str().expect("a path");
    let event = format!("*:*@{path}");
    let options = ["record", "-q", "-g", "--no-symbols", "-o", "trace"];
    lab.usdtrec([&options[..], &["-e", &event, "--", path, "20"]].concat())
        .success()
        .silent();
    program
}

/// Whether reports name the program's functions.
fn is_named(lab: &Lab) -> bool {
    let folded = lab.usdtrec(["export", "--to", "folded", "-o", "-", "-i", "trace"]);
    folded.success().stdout.contains("middle")
}

#[test]
fn stores_the_names_of_a_trace_later() {
    let lab = Lab::privileged();
    let program = recorded(&lab);
    let stored = lab.usdtrec(["archive", "-i", "trace"]).success().stderr;
    assert!(stored.contains("stored the names of"), "{stored}");
    fs::remove_file(program).expect("the program");
    fs::remove_dir_all(lab.cache()).ok();
    assert!(is_named(&lab));
    let before = fs::read(lab.file("trace")).expect("the trace");
    let again = lab.usdtrec(["archive", "-i", "trace"]).success().stderr;
    assert!(
        again.contains("stored already; missing ones are not added"),
        "{again}"
    );
    assert!(before == fs::read(lab.file("trace")).expect("the trace"));
}

/// Unpacked by usdtrec, and as perf's documentation says.
#[test]
fn takes_programs_to_another_host_for_us_and_for_perf() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    need_tool("bzip2");
    let program = recorded(&lab);
    let written = lab.usdtrec(["archive", "-i", "trace", "--debug"]);
    let said = written.success().stderr;
    assert!(
        said.contains("usdtrec archive --unpack trace.tar.bz2"),
        "{said}"
    );
    let bytes = fs::read(lab.file("trace.tar.bz2")).expect("the tarball");
    lab.usdtrec(["archive", "-i", "trace", "--debug", "-o", "again"])
        .success();
    assert!(bytes == fs::read(lab.file("again")).expect("a tarball"));
    fs::remove_file(&program).expect("the program");
    for by_tar in [false, true] {
        fs::remove_dir_all(lab.cache()).ok();
        assert!(!is_named(&lab));
        if by_tar {
            fs::create_dir_all(lab.cache()).expect("the cache");
            let mut tar = Command::new("tar");
            tar.arg("xf").arg(lab.file("trace.tar.bz2"));
            run({
                tar.arg("-C").arg(lab.cache());
                tar
            })
            .success();
        } else {
            lab.usdtrec(["archive", "--unpack", "trace.tar.bz2"])
                .success();
        }
        assert!(is_named(&lab), "by tar: {by_tar}");
        let theirs = perf.run(["script", "-i", "trace", "--no-inline"]).success();
        assert!(theirs.stdout.contains(" middle+0x"), "{}", theirs.stdout);
    }
    // The program of this path and build-id is not on this host any more.
    fs::remove_dir_all(lab.cache()).ok();
    let without = lab.usdtrec(["archive", "-i", "trace", "--debug"]).success();
    let left_out = format!("left out: {}: no file of build-id", program.display());
    assert!(without.stderr.contains(&left_out), "{}", without.stderr);
}

const ID: &str = "00112233445566778899aabbccddeeff00112233";

/// Begins a tarball that is compressed by bzip2.
fn tarball(path: &Path) -> Builder<BzEncoder<File>> {
    let file = File::create(path).expect("a file");
    Builder::new(BzEncoder::new(file, Compression::fast()))
}

fn end(tarball: Builder<BzEncoder<File>>) {
    let encoder = tarball.into_inner().expect("the end of the tarball");
    encoder.finish().expect("the end of the file");
}

fn header(kind: EntryType, len: u64, name: &str) -> Header {
    let mut header = Header::new_old();
    header.set_entry_type(kind);
    header.set_size(len);
    header.set_mode(0o755);
    // Not by the setter, which refuses such names.
    let field = &mut header.as_old_mut().name;
    field[..name.len()].copy_from_slice(name.as_bytes());
    header
}

#[test]
fn a_tarball_changes_nothing_but_the_cache() {
    let lab = Lab::new();
    // A small one, which is packed in no time.
    let program = Build::USUAL.make(&lab, "stacks.c", "program");
    let program = fs::read(program).expect("a program");
    let outside = lab.file("outside");
    let mut made = tarball(&lab.file("hostile"));
    let mut link = header(EntryType::Symlink, 0, ".build-id/00/rest");
    link.set_link_name(&outside).expect("a link");
    link.set_cksum();
    made.append(&link, io::empty()).expect("a link");
    let names = [
        format!("../outside/{ID}/elf"),
        format!("{}/{ID}/elf", outside.display()),
        format!("usr/../../outside/{ID}/elf"),
        format!(".build-id/00/rest/{ID}/elf"),
        // Another build-id.
        format!("usr/bin/app/{ID}/elf"),
        format!("usr/bin/app/{ID}/debug"),
        "a\x1b[2Jb".to_owned(),
    ];
    for name in &names {
        let mut header = header(EntryType::Regular, program.len() as u64, name);
        header.set_cksum();
        made.append(&header, &*program).expect("a file");
    }
    end(made);
    let done = lab.usdtrec(["archive", "--unpack", "hostile"]);
    let said = done.exits(1).stderr;
    assert_eq!(said.matches("left out: ").count(), names.len(), "{said}");
    assert!(said.contains(r"a\x1b[2Jb"), "{said}");
    assert!(!outside.exists());
    assert!(!lab.cache().join("usr").exists());
    assert!(!lab.cache().join(".build-id").exists());
}

#[test]
fn a_tarball_that_expands_too_far_or_is_cut_is_refused() {
    const LEN: u64 = 128 << 20;
    let lab = Lab::new();
    let mut made = tarball(&lab.file("bomb"));
    let mut header = header(EntryType::Regular, LEN, &format!("usr/bin/app/{ID}/elf"));
    header.set_cksum();
    made.append(&header, io::repeat(0).take(LEN))
        .expect("zeros");
    end(made);
    let refused = lab.usdtrec(["archive", "--unpack", "bomb"]);
    let why = "expected at most 200 times the size of the tarball";
    assert!(refused.exits(1).stderr.contains(why));
    let bomb = fs::read(lab.file("bomb")).expect("the tarball");
    let mut cut = File::create(lab.file("cut")).expect("a file");
    cut.write_all(&bomb[..bomb.len() / 2]).expect("a half");
    lab.usdtrec(["archive", "--unpack", "cut"]).exits(1);
    fs::write(lab.file("other"), [b'x'; 2048]).expect("a file");
    let other = lab.usdtrec(["archive", "--unpack", "other"]).exits(1);
    assert!(
        other.stderr.contains("expected a tarball"),
        "{}",
        other.stderr
    );
}
