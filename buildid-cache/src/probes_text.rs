//! perf's text form of an entry's probes: the file `probes` beside `elf`.
//!
//! Each event has a head line, `%sdt_PROVIDER:NAME=NAME`, followed by one uprobe definition per site:
//! `p:sdt_PROVIDER/NAME PATH:0xOFFSET(0xSEMAPHORE) arg1=%ax:s32 …`, which perf hands to the kernel's
//! `uprobe_events` as it is. Offsets are file offsets. Events that are not SDT (`perf probe --cache`)
//! stand in the same file, without the `%`; they are kept.
//!
//! What the form cannot hold (constants, symbols, floats as such) is read from the notes again; see [`crate::entry::Entry`].
//!
//! So the cache is perf's, but the note is authoritative.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use usdtrec_format::{Arch, Location, Operand, Probe, Site, parse_operands};

/// The content of a `probes` file: events in order, as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProbesText {
    events: Vec<Event>,
}

#[derive(Clone, Debug)]
struct Event {
    head: Vec<u8>,
    definitions: Vec<Vec<u8>>,
}

impl Event {
    /// Provider and name, if this is an SDT event.
    fn sdt(&self) -> Option<(&str, &str)> {
        let head = std::str::from_utf8(self.head.strip_prefix(b"%sdt_")?).ok()?;
        let (event, _) = head.split_once('=')?;
        event.split_once(':')
    }
}

impl ProbesText {
    /// Parses a file. Lines before the first head line are dropped.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let mut events: Vec<Event> = Vec::new();
        for line in text.split(|&byte| byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            if !line.starts_with(b"p:") && !line.starts_with(b"r:") {
                events.push(Event {
                    head: line.to_owned(),
                    definitions: Vec::new(),
                });
            } else if let Some(event) = events.last_mut() {
                event.definitions.push(line.to_owned());
            }
        }
        Self { events }
    }

    /// The paths of its SDT events, in order, without duplicates.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let sdt = self.events.iter().filter(|event| event.sdt().is_some());
        let definitions = sdt.flat_map(|event| &event.definitions);
        let mut known = HashSet::new();
        definitions
            .filter_map(|definition| definition_path(definition))
            .filter(|path| known.insert(*path))
            .map(Path::to_owned)
            .collect()
    }

    /// Its SDT probes, without sites, whose arguments are not in the text.
    pub(crate) fn probes(&self) -> Vec<Probe> {
        let sdt = self.events.iter().filter_map(Event::sdt);
        sdt.map(|(provider, name)| Probe {
            provider: provider.to_owned(),
            name: name.to_owned(),
            sites: Vec::new(),
        })
        .collect()
    }

    /// The new content of the file: the SDT events of a binary with these paths, and the other events of this text.
    ///
    /// Omitted are entries with which perf would reject the rest of the file, or attach a probe wrongly: names that are not C
    /// identifiers, sites without a file offset, arguments that a uprobe cannot fetch.
    pub(crate) fn with_probes(
        &self,
        probes: &[Probe],
        arch: Option<Arch>,
        paths: &[PathBuf],
    ) -> Vec<u8> {
        let mut out = Vec::new();
        for probe in probes {
            if is_c_name(&probe.provider) && is_c_name(&probe.name) {
                push_probe(&mut out, probe, arch, paths);
            }
        }
        for event in self.events.iter().filter(|event| event.sdt().is_none()) {
            for line in std::iter::once(&event.head).chain(&event.definitions) {
                out.extend_from_slice(line);
                out.push(b'\n');
            }
        }
        out
    }
}

fn push_probe(out: &mut Vec<u8>, probe: &Probe, arch: Option<Arch>, paths: &[PathBuf]) {
    let Probe { provider, name, .. } = probe;
    let _ = writeln!(out, "%sdt_{provider}:{name}={name}");
    let mut definitions: Vec<Vec<u8>> = paths
        .iter()
        .filter(|path| fits_line(path))
        .flat_map(|path| probe.sites.iter().map(move |site| (path, site)))
        .filter_map(|(path, site)| definition(probe, path, site, arch))
        .collect();
    // Sorted as by perf.
    definitions.sort_unstable();
    definitions.dedup();
    for line in definitions {
        out.extend_from_slice(&line);
        out.push(b'\n');
    }
}

/// The uprobe definition of a site; `None` if the site has no file offset.
fn definition(probe: &Probe, path: &Path, site: &Site, arch: Option<Arch>) -> Option<Vec<u8>> {
    let offset = site.offset?;
    let mut line = format!("p:sdt_{}/{} ", probe.provider, probe.name).into_bytes();
    line.extend_from_slice(path.as_os_str().as_bytes());
    let _ = write!(line, ":{offset:#x}");
    if let Some(semaphore) = site.semaphore_offset {
        let _ = write!(line, "({semaphore:#x})");
    }
    push_arguments(&mut line, site, arch);
    Some(line)
}

fn push_arguments(out: &mut Vec<u8>, site: &Site, arch: Option<Arch>) {
    let Some(arch) = arch else { return };
    for (index, operand) in parse_operands(&site.args, Some(arch)).iter().enumerate() {
        if let Some(fetch) = fetch_argument(operand, arch) {
            let _ = write!(out, " arg{}={fetch}", index + 1);
        }
    }
}

/// An operand as the kernel's fetch argument (Documentation/trace/uprobetracer.rst); `None` where the value that it
/// would fetch is not the operand's, or if it cannot be fetched.
fn fetch_argument(operand: &Operand, arch: Arch) -> Option<String> {
    let bits = match operand.size {
        Some(size @ (1 | 2 | 4 | 8)) => Some(u32::from(size) * 8),
        Some(_) => return None,
        None => None,
    };
    let sign = match operand.signed {
        // The kernel has no floats: fetch the bits, printed in hexadecimal.
        _ if operand.float => 'x',
        Some(true) => 's',
        _ => 'u',
    };
    let suffix = bits.map_or_else(String::new, |bits| format!(":{sign}{bits}"));
    match operand.location {
        Location::Register { pair: true, .. } => None,
        Location::Register {
            register, shift: 0, ..
        } => Some(format!("%{}{suffix}", arch.fetch_name(register)?)),
        Location::Register {
            register, shift, ..
        } if operand.signed == Some(false) => Some(format!(
            "%{}:b{}@{shift}/{}",
            arch.fetch_name(register)?,
            bits?,
            u32::from(arch.pointer_size()) * 8
        )),
        Location::RegisterDeref { register, offset } => Some(format!(
            "{offset:+}(%{}){suffix}",
            arch.fetch_name(register)?
        )),
        _ => None,
    }
}

/// Whether perf accepts a name: it stops reading a file at a name that is not a C identifier.
fn is_c_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a path has no blanks, at which lines are split.
fn fits_line(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| byte.is_ascii_whitespace())
}

/// The path in a definition: from the first blank to the `:0x` of the offset.
fn definition_path(line: &[u8]) -> Option<&Path> {
    let start = line.iter().position(|&byte| byte == b' ')? + 1;
    let rest = &line[start..];
    let end = rest
        .windows(3)
        .enumerate()
        .filter(|(_, window)| window == b":0x")
        .find(|(at, _)| {
            let digits = &rest[at + 3..];
            let after = digits.iter().find(|byte| !byte.is_ascii_hexdigit());
            matches!(after, None | Some(b' ' | b'('))
        })?
        .0;
    Some(Path::new(OsStr::from_bytes(&rest[..end])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERFS: &[u8] = b"%sdt_php:execute__entry=execute__entry\n\
        p:sdt_php/execute__entry /usr/bin/php8.2:0x2f158d(0x5728be) arg1=%r14:u64 arg2=%r13:s32\n\
        p:sdt_php/execute__entry /usr/bin/php8.2:0x2f16f0(0x5728be) arg1=%r12:u64\n\
        p:sdt_php/execute__entry /opt/my php:0x2f16f0\n\
        main=main\n\
        p:probe_php/main /usr/bin/other:0x1234 argc=%di:s32\n";

    #[test]
    fn perfs_file_gives_paths_and_names() {
        let text = ProbesText::parse(PERFS);
        assert_eq!(
            text.paths(),
            [Path::new("/usr/bin/php8.2"), Path::new("/opt/my php")]
        );
        let probes = text.probes();
        assert_eq!(probes.len(), 1);
        assert_eq!(probes[0].event(), "sdt_php:execute__entry");
    }

    #[test]
    fn foreign_events_are_kept_and_ours_replaced() {
        let new = ProbesText::parse(PERFS).with_probes(&[], None, &[]);
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "main=main\np:probe_php/main /usr/bin/other:0x1234 argc=%di:s32\n"
        );
    }

    /// A register that the kernel has no name for would make it refuse the whole probe.
    #[test]
    fn registers_have_the_kernels_names() {
        for (arch, args, expected) in [
            (Arch::X86_64, "-4@%esi", Some("%si:s32")),
            (Arch::X86_64, "8@%r9", Some("%r9:u64")),
            (Arch::X86_64, "8@%r16", None),
            (Arch::X86_64, "8f@%xmm0", None),
            (Arch::I386, "4@8(%esp)", Some("+8(%sp):u32")),
            (Arch::Aarch64, "8@x3", Some("%x3:u64")),
            (Arch::Aarch64, "8f@d0", None),
            (Arch::Arm, "4@r11", Some("%fp:u32")),
            (Arch::Ppc64le, "8@%r3", Some("%gpr3:u64")),
        ] {
            let operands = parse_operands(args, Some(arch));
            let fetch = fetch_argument(&operands[0], arch);
            assert_eq!(fetch.as_deref(), expected, "{args} of {arch:?}");
        }
    }

    #[test]
    fn names_that_perf_refuses_are_left_out() {
        let probe = |provider: &str, name: &str| Probe {
            provider: provider.to_owned(),
            name: name.to_owned(),
            sites: vec![Site {
                pc: 0x401000,
                base: 0,
                semaphore: 0x404000,
                offset: Some(0x1000),
                semaphore_offset: Some(0x3000),
                args: String::new(),
            }],
        };
        let probes = [
            probe("tick", "a-b"),
            probe("tick.x", "a"),
            probe("tick", "9a"),
            probe("tick", "_a9"),
        ];
        let text = ProbesText::default().with_probes(&probes, None, &["/a".into(), "/b c".into()]);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "%sdt_tick:_a9=_a9\np:sdt_tick/_a9 /a:0x1000(0x3000)\n"
        );
    }

    #[test]
    fn any_bytes_are_taken() {
        for text in [
            &b"p:x"[..],
            b"%sdt_",
            b"\n\np: /x:0x\n%sdt_a:b=b\np:\xff \xfe:0x1(",
            b"%sdt_a=b",
        ] {
            let parsed = ProbesText::parse(text);
            parsed.paths();
            parsed.probes();
        }
    }
}
