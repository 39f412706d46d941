//! The helper's part: answers one request after the other, and ends with the recorder. It may wait for a file system for ever.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, wait};

use super::file_stat::FileStat;
use super::message::{MAX_READ, Message, Task, numbers, put, receive, send};
use crate::file_mapping::{DeviceNumber, MappedInode};
use crate::open_path;

/// The first argument of the process that runs [`serve`].
pub const SERVE_VERB: &str = "serve-files";

/// For how long a file stays open that is not read.
const KEPT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// What needs mappings of files, which this crate does without.
#[derive(Clone, Copy, Debug)]
pub struct PageTools {
    /// Says whether the first pages of two files are one frame of memory; `None` if that is not known.
    pub compare: fn(&File, &File) -> io::Result<Option<bool>>,
    /// Brings a page of a file into the page cache, and says whether it is there.
    pub cache: fn(&File, u64) -> io::Result<bool>,
    /// Says how a file appears among mappings (proc_pid_maps(5)); `None` if it cannot be mapped.
    pub identify: fn(&File) -> Option<MappedInode>,
}

/// What a helper keeps between requests.
#[derive(Debug)]
struct Server {
    tools: PageTools,
    /// The file that was read last, and its number.
    file: Option<(u64, File)>,
}

/// Answers the requests of standard input, a socket, until the recorder has ended.
///
/// # Errors
/// Standard input is no such socket.
pub fn serve(tools: PageTools) -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // Signals for the recorder's terminal or group of processes are not for this process, and it keeps no directory in use.
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    let _ = rustix::thread::set_name(c"serves files");
    answer_all(socket.as_fd(), tools)
}

/// Answers requests until the other side has ended.
fn answer_all(socket: BorrowedFd<'_>, tools: PageTools) -> io::Result<()> {
    let mut server = Server { tools, file: None };
    loop {
        // A file that is kept open would keep its file system from being unmounted.
        let mut asked = [PollFd::new(&socket, PollFlags::IN)];
        if server.file.is_some() && poll(&mut asked, Some(&KEPT)) == Ok(0) {
            server.file = None;
        }
        let request = match receive(socket) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            request => request?,
        };
        let (status, answer) = match server.answer(request) {
            Ok(answer) => (0, answer),
            Err(error) => {
                let number = error.raw_os_error().unwrap_or(no_number());
                (number.unsigned_abs(), Message::default())
            }
        };
        let mut bytes = Vec::with_capacity(8 + answer.bytes.len());
        put(&mut bytes, &[u64::from(status)]);
        bytes.extend(answer.bytes);
        let descriptors: Vec<_> = answer.descriptors.iter().map(AsFd::as_fd).collect();
        send(socket, &bytes, &descriptors)?;
    }
}

/// The error of what has no number.
fn no_number() -> i32 {
    rustix::io::Errno::IO.raw_os_error()
}

impl Server {
    fn answer(&mut self, request: Message) -> io::Result<Message> {
        let wrong = || io::Error::from(rustix::io::Errno::INVAL);
        let (task, rest) = request.bytes.split_first().ok_or_else(wrong)?;
        let given = request.descriptors.first();
        let task = Task::of_byte(*task).ok_or_else(wrong)?;
        match task {
            Task::Start => start(),
            Task::Open | Task::OpenNoLink => {
                let path = path(rest);
                let handle = handle(&path, task == Task::Open)?;
                let name = open_path::name(handle.as_fd(), &path)?;
                opened(handle, &name)
            }
            Task::OpenBelow => {
                let path = path(rest);
                let directory = given.ok_or_else(wrong)?.as_fd();
                let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                opened(open_path::below(directory, &path, how)?, &path)
            }
            Task::Describe => {
                let mut answer = Message::default();
                FileStat::of(given.ok_or_else(wrong)?.as_fd())?.put(&mut answer.bytes);
                Ok(answer)
            }
            Task::Read => {
                let [number, offset, len] = numbers(rest).ok_or_else(wrong)?;
                let handle = given.ok_or_else(wrong)?.as_fd();
                let open = || reopened(handle);
                read(cached(&mut self.file, number, open)?, offset, len)
            }
            Task::OpenOfProcess => {
                let (is_writable, name) = rest.split_first().ok_or_else(wrong)?;
                let directory = given.ok_or_else(wrong)?.as_fd();
                let file = open_in(directory, &path(name), *is_writable != 0)?;
                Ok(Message {
                    bytes: Vec::new(),
                    descriptors: vec![file.into()],
                })
            }
            Task::ReadOfProcess => {
                let [offset, len] = numbers(rest).ok_or_else(wrong)?;
                let file = request.descriptors.into_iter().next();
                read(&File::from(file.ok_or_else(wrong)?), offset, len)
            }
            Task::WriteMemory => {
                let [address] = numbers(rest).ok_or_else(wrong)?;
                let bytes = rest.get(size_of::<u64>()..).unwrap_or_default();
                let memory = request.descriptors.into_iter().next();
                File::from(memory.ok_or_else(wrong)?).write_all_at(bytes, address)?;
                Ok(Message::default())
            }
            Task::ComparePages => {
                let [one, other] = request.descriptors.as_slice() else {
                    return Err(wrong());
                };
                let compared =
                    (self.tools.compare)(&reopened(one.as_fd())?, &reopened(other.as_fd())?)?;
                Ok(Message {
                    bytes: compared.map(u8::from).into_iter().collect(),
                    descriptors: Vec::new(),
                })
            }
            Task::CachePage => {
                let [number, page] = numbers(rest).ok_or_else(wrong)?;
                let handle = given.ok_or_else(wrong)?.as_fd();
                let file = cached(&mut self.file, number, || reopened(handle))?;
                Ok(Message {
                    bytes: vec![(self.tools.cache)(file, page)?.into()],
                    descriptors: Vec::new(),
                })
            }
            Task::Identify => {
                let [number] = numbers(rest).ok_or_else(wrong)?;
                let handle = given.ok_or_else(wrong)?.as_fd();
                let file = cached(&mut self.file, number, || reopened(handle))?;
                let found = (self.tools.identify)(file).ok_or_else(wrong)?;
                let DeviceNumber { major, minor } = found.device;
                let mut answer = Message::default();
                put(
                    &mut answer.bytes,
                    &[major.into(), minor.into(), found.inode],
                );
                Ok(answer)
            }
        }
    }
}

/// Another helper. What this process has is closed when that begins.
fn start() -> io::Result<Message> {
    // Those that have ended.
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    let started = started()?;
    let mut answer = Message::default();
    put(&mut answer.bytes, &[started.pid.into()]);
    answer.descriptors = vec![started.socket, started.process];
    Ok(answer)
}

/// A helper that was started.
#[derive(Debug)]
pub(super) struct StartedHelper {
    pub(super) socket: OwnedFd,
    /// A handle of the process (pidfd_open(2)).
    pub(super) process: OwnedFd,
    pub(super) pid: u32,
}

/// Starts a helper.
///
/// # Errors
/// The errors of the system calls.
pub(super) fn started() -> io::Result<StartedHelper> {
    let (socket, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(SERVE_VERB).env_clear();
    command
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = pidfd_open(pid.ok_or(io::ErrorKind::Other)?, PidfdFlags::empty())?;
    Ok(StartedHelper {
        socket,
        process,
        pid: child.id(),
    })
}

fn path(bytes: &[u8]) -> PathBuf {
    std::ffi::OsString::from_vec(bytes.to_vec()).into()
}

/// The answer with a handle.
fn opened(handle: OwnedFd, name: &Path) -> io::Result<Message> {
    let mut answer = Message::default();
    FileStat::of(handle.as_fd())?.put(&mut answer.bytes);
    answer.bytes.extend(name.as_os_str().as_bytes());
    answer.descriptors.push(handle);
    Ok(answer)
}

/// Opens a handle of a path, also of a symbolic link unless it is followed.
pub(super) fn handle(path: &Path, follow: bool) -> io::Result<OwnedFd> {
    if follow {
        return open_path::handle(path);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Opens a file in a directory of `/proc`.
pub(super) fn open_in(
    directory: BorrowedFd<'_>,
    name: &Path,
    is_writable: bool,
) -> io::Result<File> {
    let access = match is_writable {
        true => OFlags::RDWR,
        false => OFlags::RDONLY,
    };
    Ok(openat(directory, name, access | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// The file of a handle, open for reading.
fn reopened(handle: BorrowedFd<'_>) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    // O_NONBLOCK: do not wait for the lease of another process.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(openat(CWD, path, flags, Mode::empty())?.into())
}

/// What is open, or is opened now and kept.
fn cached(
    kept: &mut Option<(u64, File)>,
    number: u64,
    open: impl FnOnce() -> io::Result<File>,
) -> io::Result<&File> {
    if kept.as_ref().is_none_or(|(known, _)| *known != number) {
        *kept = None;
        *kept = Some((number, open()?));
    }
    let kept = kept.as_ref().map(|(_, file)| file);
    kept.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn read(file: &File, offset: u64, len: u64) -> io::Result<Message> {
    let len = usize::try_from(len).unwrap_or(MAX_READ).min(MAX_READ);
    let mut bytes = vec![0; len];
    let mut count = file.read_at(&mut bytes, offset)?;
    // Of files in /proc the kernel gives a page at once.
    while count > 0
        && let Some(rest) = bytes.get_mut(count..).filter(|rest| !rest.is_empty())
        && let Ok(more @ 1..) = file.read_at(rest, offset + count as u64)
    {
        count += more;
    }
    bytes.truncate(count);
    Ok(Message {
        bytes,
        descriptors: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Asks, and receives an answer without its status.
    fn ask(socket: &OwnedFd, request: &[u8], given: &[BorrowedFd<'_>]) -> (u64, Message) {
        send(socket.as_fd(), request, given).unwrap();
        let mut answer = receive(socket.as_fd()).unwrap();
        let [status] = numbers(&answer.bytes).unwrap();
        answer.bytes.drain(..8);
        (status, answer)
    }

    #[test]
    fn files_and_memory_are_read_for_others() {
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, theirs) = socketpair(kind.0, kind.1, SocketFlags::CLOEXEC, None).unwrap();
        let tools = PageTools {
            compare: |_, _| Ok(Some(true)),
            cache: |_, page| Ok(page == 3),
            identify: |_| None,
        };
        let server = thread::spawn(move || answer_all(theirs.as_fd(), tools));
        let program = std::env::current_exe().unwrap();
        let open = |task: Task, path: &Path| {
            let request = [&[task.byte()], path.as_os_str().as_bytes()].concat();
            ask(&ours, &request, &[])
        };
        let (status, opened) = open(Task::Open, &program);
        let stat = FileStat::parse(&opened.bytes).unwrap();
        assert!(status == 0 && stat.is_file());
        let handle = opened.descriptors[0].as_fd();
        let mut request = vec![Task::Read.byte()];
        put(&mut request, &[7, 1, 3]);
        assert_eq!(ask(&ours, &request, &[handle]).1.bytes, b"ELF");
        let (_, described) = ask(&ours, &[Task::Describe.byte()], &[handle]);
        assert_eq!(FileStat::parse(&described.bytes), Some(stat));
        let (status, _) = open(Task::OpenNoLink, Path::new("/nowhere"));
        assert_eq!(
            io::Error::from_raw_os_error(status as i32).kind(),
            io::ErrorKind::NotFound
        );
        let memory = File::open("/proc/self/mem").unwrap();
        let known = *b"known";
        let mut request = vec![Task::ReadOfProcess.byte()];
        put(&mut request, &[known.as_ptr() as u64, 5]);
        assert_eq!(ask(&ours, &request, &[memory.as_fd()]).1.bytes, known);
        let compare = [Task::ComparePages.byte()];
        assert_eq!(ask(&ours, &compare, &[handle, handle]).1.bytes, [1]);
        let mut request = vec![Task::CachePage.byte()];
        put(&mut request, &[7, 3]);
        assert_eq!(ask(&ours, &request, &[handle]).1.bytes, [1]);
        assert_ne!(ask(&ours, &[99], &[]).0, 0, "no task");
        drop(ours);
        server.join().unwrap().unwrap();
    }
}
