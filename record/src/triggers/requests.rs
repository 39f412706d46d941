//! Requests for a file: a socket for each recorder, whose owner and root may connect.
//!
//! The client writes a word; the recorder answers when the file is complete, with its path or with an error, and closes the connection.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;

use super::socket_folder;

/// What a client writes.
const REQUEST: &[u8] = b"dump\n";
/// What the answers begin with.
const FILE: &[u8] = b"file ";
const ERROR: &[u8] = b"error ";
/// Maximum length of an answer, bytes.
const MAX_ANSWER: u64 = 8192;
/// How long a client may take to write its request, or to read the answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(1);

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
    /// Who made it.
    pub(crate) pid: i32,
    pub(crate) uid: u32,
    answer: Sender<Dumped>,
}

/// What came of a request.
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
        let socket = socket_folder::socket(folder, std::process::id());
        // Of an earlier process with this number.
        let _ = fs::remove_file(&socket);
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
        if polled[0].revents().contains(PollFlags::IN)
            && let Ok((client, _)) = listener.accept()
        {
            return Some(client);
        }
    }
}

/// Passes a request on, and writes the answer when it comes.
fn serve(mut client: UnixStream, requests: &Sender<DumpRequest>, wake: &mut UnixStream) {
    let Ok(peer) = socket_peercred(&client) else {
        return;
    };
    let own = rustix::process::geteuid();
    if !peer.uid.is_root() && peer.uid != own {
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
    let request = DumpRequest {
        pid: peer.pid.as_raw_nonzero().get(),
        uid: peer.uid.as_raw(),
        answer,
    };
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

fn find_in(folder: &Path) -> Vec<RunningRecorder> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.filter_map(|entry| {
        let pid = socket_folder::recorder(entry.file_name().to_str()?)?;
        // Of the link itself, if it is one.
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        let socket = entry.path();
        is_socket.then_some(RunningRecorder { pid, socket })
    });
    sockets.filter(RunningRecorder::is_running).collect()
}

impl RunningRecorder {
    /// Whether the process exists. Removes the socket if not.
    fn is_running(&self) -> bool {
        let is_running = Path::new("/proc").join(self.pid.to_string()).exists();
        if !is_running {
            // Another one may have removed it.
            let _ = fs::remove_file(&self.socket);
        }
        is_running
    }

    /// Asks for a file, and waits until it is complete.
    ///
    /// # Errors
    /// The recorder cannot be reached, or is not that of this user or of root; it ended without an answer.
    pub fn dump(&self) -> io::Result<Dumped> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let peer = socket_peercred(&stream)?;
        let own = rustix::process::geteuid();
        if !own.is_root() && !peer.uid.is_root() && peer.uid != own {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the recorder is another user's",
            ));
        }
        stream.write_all(REQUEST)?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
        if let Some(path) = answer.strip_prefix(FILE) {
            let path = std::ffi::OsString::from_vec(path.to_vec());
            return Ok(Dumped::File(path.into()));
        }
        match answer.strip_prefix(ERROR) {
            Some(error) => Ok(Dumped::Failed(String::from_utf8_lossy(error).into_owned())),
            None => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it ended without an answer",
            )),
        }
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
            assert_eq!(request.pid, std::process::id().cast_signed());
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

    #[test]
    fn sockets_of_killed_recorders_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        // No process has it: the maximum is less.
        let socket = socket_folder::socket(folder.path(), 1 << 30);
        drop(UnixListener::bind(&socket).expect("a socket"));
        fs::write(folder.path().join("record-5.sock"), "a file").expect("a file");
        assert!(find_in(folder.path()).is_empty());
        assert!(!socket.exists());
        assert!(folder.path().join("record-5.sock").exists());
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
