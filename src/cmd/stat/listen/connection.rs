//! One connection: a request, its answer, and the end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::answer::{Answer, MAX_REQUEST, answer};

/// The time of a connection.
const TIME: Duration = Duration::from_secs(5);
/// How much is read after a request, so that the client gets the answer before it learns that the connection is closed, bytes.
const MAX_REST: usize = 64 << 10;

/// A connection.
pub(super) struct Connection {
    stream: TcpStream,
    end: Instant,
    state: State,
}

enum State {
    /// The request so far.
    Reading(Vec<u8>),
    Writing(Reply),
    /// The answer is sent. So much is read of what follows the request.
    Closing(usize),
}

/// An answer that is being sent.
struct Reply {
    head: Vec<u8>,
    body: Arc<str>,
    /// How much of both is sent.
    sent: usize,
}

impl Connection {
    /// A connection that was accepted.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            end: Instant::now() + TIME,
            state: State::Reading(Vec::new()),
        })
    }

    /// When its time is over.
    pub(super) const fn end(&self) -> Instant {
        self.end
    }

    /// Whether its request has not arrived, or its answer is sent.
    pub(super) const fn is_silent(&self) -> bool {
        !matches!(self.state, State::Writing(_))
    }

    /// What it waits for.
    pub(super) fn polled(&self) -> PollFd<'_> {
        let flags = match self.state {
            State::Writing(_) => PollFlags::OUT,
            State::Reading(_) | State::Closing(_) => PollFlags::IN,
        };
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }

    /// Does what can be done without waiting. Whether anything is left to do.
    pub(super) fn answer_ready(&mut self, metrics: impl Fn() -> Arc<str>) -> bool {
        loop {
            let done = match &mut self.state {
                State::Reading(request) => read(&mut self.stream, request).map(|()| {
                    let answer = answer(request)?;
                    Some(State::Writing(Reply::new(answer, &metrics)))
                }),
                State::Writing(reply) => reply.send(&mut self.stream).map(|()| {
                    // The client may be gone.
                    let _ = self.stream.shutdown(Shutdown::Write);
                    Some(State::Closing(0))
                }),
                State::Closing(read) => match skip(&mut self.stream, read) {
                    Ok(()) => return false,
                    Err(error) => Err(error),
                },
            };
            match done {
                Ok(Some(next)) => self.state = next,
                // There may be more of the request.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}

/// Reads more of a request. Its end is an error: no answer has a reader then.
fn read(stream: &mut TcpStream, request: &mut Vec<u8>) -> io::Result<()> {
    let mut bytes = [0; 1024];
    let room = (MAX_REQUEST + 1).saturating_sub(request.len());
    let room = room.min(bytes.len());
    match stream.read(&mut bytes[..room])? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        length => {
            request.extend_from_slice(&bytes[..length]);
            Ok(())
        }
    }
}

/// Skips what follows a request, to its end or until that is too much.
fn skip(stream: &mut TcpStream, read: &mut usize) -> io::Result<()> {
    let mut bytes = [0; 4096];
    while *read < MAX_REST {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            length => *read += length,
        }
    }
    Ok(())
}

impl Reply {
    fn new(answer: Answer, metrics: &impl Fn() -> Arc<str>) -> Self {
        let body = match answer.text {
            Some(text) => Arc::from(text),
            None => metrics(),
        };
        let head = answer.head(body.len());
        Self {
            head: head.into_bytes(),
            body: match answer.has_body {
                true => body,
                false => Arc::from(""),
            },
            sent: 0,
        }
    }

    fn send(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let parts = [&*self.head, self.body.as_bytes()];
        let whole = self.head.len() + self.body.len();
        while self.sent < whole {
            let rest = match self.sent.checked_sub(self.head.len()) {
                Some(sent) => &parts[1][sent..],
                None => &parts[0][self.sent..],
            };
            match stream.write(rest)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => self.sent += length,
            }
        }
        Ok(())
    }
}
