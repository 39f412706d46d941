//! Requests for a file: a socket for each recorder, whose owner and root may connect.
//!
//! The client writes a word; the recorder answers when the file is complete, with its path or with an error, and closes the connection.
//!
//! SIGUSR2 asks for a file, too, as with `perf record`, and stays, because a unit's `ExecReload=` or a container's runtime can send it where the folder of
//! sockets cannot be reached or made. It cannot answer, so that a script would not know which file is complete, or that none could be written: the
//! socket stays for that.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use usdtrec_attach::engine::Owner;
use usdtrec_kernel::host::process::Process;

use super::peer::Peer;
use super::socket_folder;

/// What a client writes.
const REQUEST: &[u8] = b"dump\n";
/// What the answers begin with.
const FILE: &[u8] = b"file ";
const ERROR: &[u8] = b"error ";
/// Maximum length of an answer, bytes.
const MAX_ANSWER: usize = 8192;
/// How long a client may take to write its request, or to read the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a recorder may not run while it is asked.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// How long a recorder that runs may take to complete a file, whose disk may not answer.
const MAX_DUMP_TIME: Duration = Duration::from_secs(3600);
/// Interval at which it is looked whether it runs.
const STEP: Duration = Duration::from_millis(500);
/// Pause when a connection cannot be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Requests that arrive at this recorder.
#[derive(Debug)]
pub(crate) struct DumpRequests {
    socket: PathBuf,
    requests: Receiver<DumpRequest>,
    /// Closed at the end.
    _stop: UnixStream,
}

/// A request. The client waits for the answer; without one the recording has ended.
#[derive(Debug)]
pub(crate) struct DumpRequest {
    /// The process that made it; `None` if it is of another pid namespace.
    pub(crate) pid: Option<i32>,
    pub(crate) uid: u32,
    answer: Sender<Dumped>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dumped {
    /// The file is complete.
    File(PathBuf),
    /// It could not be written.
    Failed(String),
}

impl DumpRequest {
    /// Answers it.
    pub(crate) fn answer(self, dumped: Dumped) {
        // The client may have gone.
        let _ = self.answer.send(dumped);
    }
}

impl DumpRequests {
    /// Listens from now on. A byte is written to `wake` for each request.
    ///
    /// # Errors
    /// There is no folder of this user alone; the error of the system call.
    pub(crate) fn listen(wake: UnixStream) -> io::Result<Self> {
        let folder = socket_folder::create()?;
        Self::listen_in(&folder, wake)
    }

    fn listen_in(folder: &Path, mut wake: UnixStream) -> io::Result<Self> {
        // Those of killed recorders go.
        let _: Vec<RunningRecorder> = find_in(folder);
        let socket = socket_folder::socket(folder, &Owner::of_this_process()?);
        let listener = UnixListener::bind(&socket)?;
        // Nobody else can enter the folder meanwhile.
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))?;
        let (stop, stopped) = UnixStream::pair()?;
        let (sender, requests) = channel();
        std::thread::Builder::new()
            .name("requests".to_owned())
            .spawn(move || {
                while let Some(client) = accept(&listener, &stopped) {
                    serve(client, &sender, &mut wake);
                }
            })?;
        Ok(Self {
            socket,
            requests,
            _stop: stop,
        })
    }

    /// The next request that has arrived.
    pub(crate) fn next(&self) -> Option<DumpRequest> {
        self.requests.try_recv().ok()
    }
}

impl Drop for DumpRequests {
    fn drop(&mut self) {
        // It may have been removed.
        let _ = fs::remove_file(&self.socket);
    }
}

/// The next connection; `None` when the recording ends.
fn accept(listener: &UnixListener, stopped: &UnixStream) -> Option<UnixStream> {
    loop {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut polled = [listener.as_fd(), stopped.as_fd()].map(readable);
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
        if !polled[1].revents().is_empty() {
            return None;
        }
        if polled[0].revents().contains(PollFlags::IN) {
            match listener.accept() {
                Ok((client, _)) => return Some(client),
                // For lack of descriptors or memory: the connection waits, and poll(2) would report it at once.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Passes a request on, and writes the answer when it comes.
fn serve(mut client: UnixStream, requests: &Sender<DumpRequest>, wake: &mut UnixStream) {
    let Ok(Peer { pid, uid }) = Peer::at_other_end(&client) else {
        return;
    };
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return;
    }
    let mut word = [0; REQUEST.len()];
    let limits = client
        .set_read_timeout(Some(CLIENT_TIMEOUT))
        .and_then(|()| client.set_write_timeout(Some(CLIENT_TIMEOUT)));
    if limits.is_err() || client.read_exact(&mut word).is_err() || word != REQUEST {
        return;
    }
    let (answer, answered) = channel();
    let request = DumpRequest { pid, uid, answer };
    let ended = || Dumped::Failed("the recording has ended".to_owned());
    let dumped = match requests.send(request) {
        Ok(()) => {
            // A full stream wakes the recorder as well.
            let _ = wake.write(&[1]);
            answered.recv().unwrap_or_else(|_| ended())
        }
        Err(_) => ended(),
    };
    let answer = match &dumped {
        Dumped::File(path) => [FILE, path.as_os_str().as_bytes()].concat(),
        Dumped::Failed(error) => [ERROR, error.as_bytes()].concat(),
    };
    // The client may have gone.
    let _ = client.write_all(&answer);
}

/// A recorder that writes files on request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningRecorder {
    /// Its process.
    pub pid: u32,
    socket: PathBuf,
}

/// The recorders that this user may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningRecorders(Vec<RunningRecorder>);

/// Why a recorder gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// It cannot be reached, or is another user's; it ended without an answer.
    #[error(transparent)]
    Unreached(#[from] io::Error),
    /// No process listens at its socket, which was removed.
    #[error("no process listens at its socket, which was removed: it was killed")]
    Killed,
    /// Its process does not run.
    #[error("expected an answer, but the process has not run for {} s (its state is {state})", MAX_SILENCE.as_secs())]
    Silent {
        /// The letter of its state (proc_pid_stat(5)).
        state: char,
    },
    /// The process runs, and the file is not complete.
    #[error("expected a file within {} s, but it is not complete yet", MAX_DUMP_TIME.as_secs())]
    TooLong,
}

impl RunningRecorders {
    /// Finds them: all of this user, or one. Sockets of recorders that were killed are removed.
    #[must_use]
    pub fn find(pid: Option<u32>) -> Self {
        let folders = socket_folder::existing(pid.is_some());
        let found = folders.iter().flat_map(|folder| find_in(folder));
        let mut found: Vec<RunningRecorder> = found
            .filter(|recorder| pid.is_none_or(|pid| pid == recorder.pid))
            .collect();
        found.sort_by_key(|recorder| recorder.pid);
        Self(found)
    }

    /// All of them, by their process ids.
    #[must_use]
    pub fn all(&self) -> &[RunningRecorder] {
        &self.0
    }
}

/// The sockets of this user's recorders that have ended, which a repair removes.
pub(crate) fn dead_sockets(repair: bool) -> Vec<PathBuf> {
    let folders = socket_folder::existing(false);
    let dead = folders.iter().flat_map(|folder| sockets(folder));
    let dead = dead
        .filter(|socket| socket.has_ended)
        .map(|socket| socket.path);
    dead.inspect(|path| {
        if repair {
            let _ = fs::remove_file(path);
        }
    })
    .collect()
}

/// A socket of a recorder.
struct RecorderSocket {
    pid: u32,
    path: PathBuf,
    has_ended: bool,
}

fn sockets(folder: &Path) -> Vec<RecorderSocket> {
    let Ok(us) = Owner::of_this_process() else {
        return Vec::new();
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.filter_map(|entry| {
        let owner = socket_folder::recorder(entry.file_name().to_str()?)?;
        // Of the link itself, if it is one.
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        is_socket.then(|| RecorderSocket {
            pid: owner.pid(),
            path: entry.path(),
            has_ended: owner.has_ended(&us),
        })
    });
    sockets.collect()
}

/// The recorders that run. The sockets of others are removed.
fn find_in(folder: &Path) -> Vec<RunningRecorder> {
    let (ended, running): (Vec<_>, Vec<_>) = sockets(folder)
        .into_iter()
        .partition(|socket| socket.has_ended);
    for socket in ended {
        // Another one may have removed it.
        let _ = fs::remove_file(socket.path);
    }
    let running = running.into_iter();
    running
        .map(|RecorderSocket { pid, path, .. }| RunningRecorder { pid, socket: path })
        .collect()
}

impl RunningRecorder {
    /// Asks for a file, and waits until it is complete, as long as the recorder runs.
    ///
    /// # Errors
    /// [`DumpError`].
    pub fn dump(&self) -> Result<Dumped, DumpError> {
        let mut stream = match connect(&self.socket) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Nobody will listen at it again.
                let _ = fs::remove_file(&self.socket);
                return Err(DumpError::Killed);
            }
            // More clients wait than the kernel lets wait.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let state = Liveness::of(self.pid.cast_signed()).state;
                return Err(DumpError::Silent { state });
            }
            stream => stream?,
        };
        let peer = Peer::at_other_end(&stream)?;
        let own = rustix::process::geteuid().as_raw();
        if own != 0 && peer.uid != 0 && peer.uid != own {
            return Err(DumpError::Unreached(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the recorder is another user's",
            )));
        }
        stream.write_all(REQUEST)?;
        let answer = read_answer(stream, peer.pid)?;
        if let Some(path) = answer.strip_prefix(FILE) {
            let path = std::ffi::OsString::from_vec(path.to_vec());
            return Ok(Dumped::File(path.into()));
        }
        match answer.strip_prefix(ERROR) {
            Some(error) => Ok(Dumped::Failed(String::from_utf8_lossy(error).into_owned())),
            None => Err(DumpError::Unreached(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it ended without an answer",
            ))),
        }
    }
}

/// Connects to a socket, or gives up after [`MAX_SILENCE`]: connect(2) waits if many clients wait already.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(MAX_SILENCE))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Reads an answer to its end, as long as the recorder's process runs: its main thread looks for requests several times a second. Of a process of another
/// pid namespace that is not known.
fn read_answer(mut stream: UnixStream, pid: Option<i32>) -> Result<Vec<u8>, DumpError> {
    stream.set_read_timeout(Some(STEP))?;
    let begun = Instant::now();
    let mut alive = pid.map(|pid| (pid, Instant::now(), Liveness::of(pid)));
    let mut answer = Vec::new();
    let mut bytes = [0; 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return Ok(answer),
            Ok(read) if answer.len() + read > MAX_ANSWER => return Ok(answer),
            Ok(read) => answer.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if let Some((pid, since, before)) = &mut alive {
            let now = Liveness::of(*pid);
            if now.switches != before.switches {
                (*since, *before) = (Instant::now(), now);
            } else if since.elapsed() >= MAX_SILENCE {
                return Err(DumpError::Silent { state: now.state });
            }
        }
        if begun.elapsed() >= MAX_DUMP_TIME {
            return Err(DumpError::TooLong);
        }
    }
}

/// Whether a process runs.
#[derive(Clone, Copy)]
struct Liveness {
    /// How often its first thread has stopped running.
    switches: u64,
    state: char,
}

impl Liveness {
    fn of(pid: i32) -> Self {
        let process = Process::open(pid);
        let process = process.and_then(|process| Ok((process.status()?, process.stat()?)));
        process.map_or(
            Self {
                switches: 0,
                state: '?',
            },
            |(status, stat)| Self {
                switches: status.switches,
                state: stat.state.into(),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_path_or_an_error_and_the_socket_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let (wake, mut woken) = UnixStream::pair().expect("a pair");
        let requests = DumpRequests::listen_in(folder.path(), wake).expect("a socket");
        let mode = fs::metadata(&requests.socket).expect("it").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let [recorder] = &find_in(folder.path())[..] else {
            panic!("one recorder is found");
        };
        assert_eq!(recorder.pid, std::process::id());
        let ask = || {
            let recorder = recorder.clone();
            std::thread::spawn(move || recorder.dump().expect("an answer"))
        };
        for expected in [
            Dumped::File("/tmp/a b\n".into()),
            Dumped::Failed("no space".to_owned()),
        ] {
            let client = ask();
            woken.read_exact(&mut [0]).expect("it is woken");
            let request = requests.next().expect("a request");
            assert_eq!(request.pid, Some(std::process::id().cast_signed()));
            assert_eq!(request.uid, rustix::process::geteuid().as_raw());
            request.answer(expected.clone());
            assert_eq!(client.join().expect("it ends"), expected);
        }
        let client = ask();
        woken.read_exact(&mut [0]).expect("it is woken");
        let socket = requests.socket.clone();
        drop(requests);
        let ended = Dumped::Failed("the recording has ended".to_owned());
        assert_eq!(client.join().expect("it ends"), ended);
        assert!(!socket.exists());
    }

    /// A process id alone names no recorder: another process may have it by now.
    #[test]
    fn sockets_of_killed_recorders_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = Owner::of_this_process().expect("this process");
        let words: Vec<u64> = own.to_string()["usdtrec_".len()..]
            .split('_')
            .map(|word| word.parse().expect("a number"))
            .collect();
        let (pid, start, namespace) = (words[0], words[1], words[2]);
        let socket = |pid, start| {
            let owner = Owner::parse(&format!("usdtrec_{pid}_{start}_{namespace}"));
            let path = socket_folder::socket(folder.path(), &owner.expect("an owner"));
            drop(UnixListener::bind(&path).expect("a socket"));
            path
        };
        // No process has the first id: the maximum is less.
        let dead = [socket(1 << 30, 5), socket(pid, start - 1)];
        let file = folder.path().join("usdtrec_5_5_5.sock");
        fs::write(&file, "a file").expect("a file");
        assert!(find_in(folder.path()).is_empty());
        assert!(dead.iter().all(|socket| !socket.exists()));
        assert!(file.exists());
        // At which nobody listens, though the process runs.
        let refused = socket(pid, start);
        let [recorder] = &find_in(folder.path())[..] else {
            panic!("one recorder is found");
        };
        let dumped = recorder.dump();
        assert!(matches!(dumped, Err(DumpError::Killed)), "{dumped:?}");
        assert!(!refused.exists());
    }

    #[test]
    fn who_writes_something_else_gets_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (wake, _woken) = UnixStream::pair().expect("a pair");
        let requests = DumpRequests::listen_in(folder.path(), wake).expect("a socket");
        let mut client = UnixStream::connect(&requests.socket).expect("a connection");
        client.write_all(b"other").expect("room");
        let mut answer = Vec::new();
        // Closed with something unread, it may be reset.
        let _ = client.read_to_end(&mut answer);
        assert!(answer.is_empty());
        assert!(requests.next().is_none());
    }
}
