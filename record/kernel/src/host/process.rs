//! What `/proc/PID` has of a process: its threads, and the files `stat` and `status`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags, fstat, openat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Flag of a process that is ending (`PF_EXITING`, include/linux/sched.h).
pub const EXITING: u32 = 0x4;

/// The directory in `/proc` with the memory, links and namespaces of a process, also if its first thread has ended.
pub fn live_directory(pid: i32) -> PathBuf {
    usdtrec_buildid_cache::live_directory(pid.unsigned_abs())
}

/// A descriptor of a process; `None` if it has ended.
pub fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(pid.try_into().ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// A process that runs. What is read is of this process even if its id is reused.
#[derive(Debug)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    directory: OwnedFd,
}

/// What the kernel says of a process or a thread in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its name.
    pub comm: Vec<u8>,
    /// A letter: `T` is stopped, `Z` and `X` have ended.
    pub state: u8,
    /// Its parent.
    pub ppid: i32,
    /// `PF_*`.
    pub flags: u32,
    /// Number of its threads.
    pub num_threads: u64,
    /// When it began, clock ticks since boot.
    pub start: u64,
    /// `SCHED_*`.
    pub policy: u32,
    /// Once it has ended, its status as wait(2) has it; 0 for who may not trace it.
    pub exit_status: i32,
}

/// The lines of a process's status that are used here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The process of a thread.
    pub tgid: i32,
    /// Its ids in its pid namespaces, its own last; empty on a kernel without pid namespaces.
    pub pids: Vec<i32>,
    /// Pending signals, of the first thread and of the process.
    pub pending: u64,
    /// How often the first thread has stopped running, by itself or not.
    pub switches: u64,
}

/// Whether an error of reading `/proc` says that a process or thread has ended.
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

impl Process {
    /// Opens its directory.
    pub fn open(pid: i32) -> io::Result<Self> {
        Self::in_directory(pid, Path::new(&format!("/proc/{pid}")))
    }

    /// The same with the directory of one of its threads, whose `stat` it has.
    pub fn in_directory(pid: i32, directory: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, directory, flags, Mode::empty())?;
        Ok(Self { pid, directory })
    }

    /// The processes that run.
    pub fn all() -> io::Result<impl Iterator<Item = Self>> {
        let names = fs::read_dir("/proc")?.flatten();
        let pids = names.filter_map(|entry| number(&entry.file_name()));
        Ok(pids.filter_map(|pid| Self::open(pid).ok()))
    }

    /// Reads its `stat`.
    pub fn stat(&self) -> io::Result<Stat> {
        self.stat_in(Path::new("stat"))
    }

    /// Reads its `status`.
    pub fn status(&self) -> io::Result<Status> {
        let text = self.read(Path::new("status"))?;
        Status::parse(&text).ok_or_else(|| unexpected("status", &text))
    }

    /// The user whose process it is.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(fstat(&self.directory)?.st_uid)
    }

    /// The ids of its threads.
    pub fn threads(&self) -> io::Result<Vec<i32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tasks = openat(&self.directory, c"task", flags, Mode::empty())?;
        let entries = Dir::new(tasks)?.filter_map(Result::ok);
        Ok(entries
            .filter_map(|entry| number(OsStr::from_bytes(entry.file_name().to_bytes())))
            .collect())
    }

    /// Reads the `stat` of one of its threads.
    pub fn thread_stat(&self, tid: i32) -> io::Result<Stat> {
        self.stat_in(&PathBuf::from(format!("task/{tid}/stat")))
    }

    fn stat_in(&self, file: &Path) -> io::Result<Stat> {
        let text = self.read(file)?;
        Stat::parse(&text).ok_or_else(|| unexpected("stat", &text))
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.directory, file, flags, Mode::empty())?;
        let mut text = Vec::with_capacity(1024);
        File::from(file).read_to_end(&mut text)?;
        Ok(text)
    }
}

impl Stat {
    /// Parses `PID (COMM) STATE PPID …` (proc_pid_stat(5)). A name may have any bytes, parentheses too.
    fn parse(text: &[u8]) -> Option<Self> {
        let begin = text.iter().position(|&byte| byte == b'(')? + 1;
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let fields = std::str::from_utf8(text.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // Fields are numbered from the pid, which is 1.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            comm: unescaped(text.get(begin..end)?),
            state: *field(3)?.as_bytes().first()?,
            ppid: field(4)?.parse().ok()?,
            flags: field(9)?.parse().ok()?,
            num_threads: field(20)?.parse().ok()?,
            start: field(22)?.parse().ok()?,
            policy: field(41)?.parse().ok()?,
            exit_status: field(52)
                .and_then(|status| status.parse().ok())
                .unwrap_or(0),
        })
    }

    /// When it began, ns since boot.
    pub fn started(&self) -> u64 {
        nanoseconds(self.start)
    }

    /// Whether it has ended, or only its first thread has.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

impl Status {
    /// Parses lines of `NAME:\tVALUES`.
    fn parse(text: &[u8]) -> Option<Self> {
        let mut status = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            // Only the first line, the name, may be no text.
            let Some((name, values)) = std::str::from_utf8(line)
                .ok()
                .and_then(|line| line.split_once(":\t"))
            else {
                continue;
            };
            match name {
                "Tgid" => status.tgid = values.parse().ok()?,
                "NSpid" => {
                    let pids = values.split_ascii_whitespace().map(str::parse);
                    status.pids = pids.collect::<Result<_, _>>().ok()?;
                }
                "voluntary_ctxt_switches" | "nonvoluntary_ctxt_switches" => {
                    status.switches += values.parse::<u64>().ok()?;
                }
                "SigPnd" | "ShdPnd" => status.pending |= u64::from_str_radix(values, 16).ok()?,
                _ => {}
            }
        }
        (status.tgid != 0).then_some(status)
    }
}

/// ns of clock ticks.
pub fn nanoseconds(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}

fn number(name: &OsStr) -> Option<i32> {
    name.to_str()?.parse().ok()
}

/// A name in `stat`: the kernel writes `\n` and `\\` for a line's end and a backslash.
fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len());
    let mut bytes = name.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => text.extend(bytes.next().map(|escaped| match escaped {
                b'n' => b'\n',
                other => other,
            })),
            other => text.push(other),
        }
    }
    text
}

fn unexpected(file: &str, text: &[u8]) -> io::Error {
    let found = text.escape_ascii();
    io::Error::other(format!("/proc/PID/{file} is not as expected: {found}"))
}

/// Bits of an entry (Documentation/admin-guide/mm/pagemap.rst).
const OF_FILE: u64 = 1 << 61;
const SWAPPED: u64 = 1 << 62;
const PRESENT: u64 = 1 << 63;

/// What is at an address of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// A page of the file.
    File,
    /// A copy of this process.
    Private,
    /// Not known.
    Unknown,
}

impl Page {
    /// The page of an entry.
    pub const fn from_entry(entry: u64) -> Self {
        if entry & (PRESENT | SWAPPED) == 0 {
            Self::Unknown
        } else if entry & OF_FILE != 0 {
            Self::File
        } else {
            Self::Private
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_stat_may_have_any_bytes() {
        let rest = "S 7 1 1 0 -1 4194368 1 2 3 4 5 6 7 8 20 0 3 0 99 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 0 0 1 0 0";
        let of = |name: &[u8]| {
            let line = [b"12 (", name, b") ", rest.as_bytes(), b"\n"].concat();
            Stat::parse(&line).unwrap()
        };
        let stat = of(b"a) Z 1 (b");
        assert_eq!(stat.comm, b"a) Z 1 (b");
        let numbers = (stat.state, stat.ppid, stat.flags, stat.num_threads);
        assert_eq!(numbers, (b'S', 7, 0x40_0040, 3));
        assert_eq!((stat.start, stat.policy), (99, 1));
        assert_eq!(of(br"a\nb\\n").comm, b"a\nb\\n");
        assert_eq!(of(b"\xff").comm, b"\xff");
        for other in [&b""[..], b"12", b"12 (a", b"12 (a) S 1", b") ("] {
            assert_eq!(Stat::parse(other), None);
        }
    }

    #[test]
    fn a_status_has_the_process_and_its_ids() {
        let text = b"Name:\t\xff\nTgid:\t12\nNSpid:\t12\t3\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000000001\nSigIgn:\t0000000000000002\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n";
        let status = Status {
            tgid: 12,
            pids: vec![12, 3],
            pending: 0x101,
            switches: 7,
        };
        assert_eq!(Status::parse(text), Some(status));
        for other in [&b""[..], b"Tgid:\t\n", b"Tgid:\t1\nSigPnd:\tx\n"] {
            assert_eq!(Status::parse(other), None);
        }
    }

    #[test]
    fn this_process_is_as_it_knows_itself() {
        let own = std::process::id().cast_signed();
        let process = Process::open(own).unwrap();
        let (stat, status) = (process.stat().unwrap(), process.status().unwrap());
        assert_eq!(status.tgid, own);
        assert_eq!(status.pids.last(), Some(&own));
        assert_eq!(stat.ppid, std::os::unix::process::parent_id().cast_signed());
        assert!(!stat.has_ended() && stat.start > 0 && stat.num_threads > 0);
        assert!(process.threads().unwrap().contains(&own));
        assert!(process.thread_stat(own).is_ok());
        assert!(Process::all().unwrap().any(|process| process.pid == own));
        assert!(Process::open(-1).is_err());
    }
}
