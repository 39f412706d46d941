//! A server of metrics on a loopback address (HTTP/1.1, one request a connection).
//!
//! Any local user can connect. One thread serves all connections without waiting for any: a connection has its time, its request has a maximum
//! size, and if there are too many, those are answered whose requests have arrived, and then the oldest one ends. Only requests whose `Host` is a loopback address are answered: a page of the web whose name
//! is made to resolve to this host has another one.

mod answer;
mod connection;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use usdtrec_report::stat::{PrometheusView, StatSnapshot};

use self::connection::Connection;
use crate::mutex::locked;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 32;
/// Pause when no connection can be accepted, for lack of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);

/// A running server. It ends with the process.
pub(super) struct MetricsServer {
    address: SocketAddr,
    metrics: Arc<Mutex<Arc<str>>>,
}

impl MetricsServer {
    /// Listens on an address, and serves metrics without samples until there are others.
    ///
    /// # Errors
    /// The error of `bind(2)`, with the address.
    pub(super) fn start(address: SocketAddr) -> io::Result<Self> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("--listen {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(named)?;
        listener.set_nonblocking(true).map_err(named)?;
        let address = listener.local_addr().map_err(named)?;
        let empty = PrometheusView::new(&[]).show(&StatSnapshot {
            elapsed: Duration::ZERO,
            interval: Duration::ZERO,
            every: Duration::ZERO,
            measured: BTreeMap::new(),
            rows: Vec::new(),
        });
        let metrics = Arc::new(Mutex::new(Arc::from(empty)));
        let served = Arc::clone(&metrics);
        thread::spawn(move || serve(&listener, &served));
        Ok(Self { address, metrics })
    }

    /// The address on which it listens.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the metrics.
    pub(super) fn publish(&self, metrics: String) {
        *locked(&self.metrics) = Arc::from(metrics);
    }
}

fn serve(listener: &TcpListener, metrics: &Mutex<Arc<str>>) {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        wait(listener, &connections);
        answer_ready(&mut connections, metrics);
        accept(listener, &mut connections, metrics);
        answer_ready(&mut connections, metrics);
    }
}

/// Reads and answers the requests that have arrived. Connections that are done, or whose time is over, end.
fn answer_ready(connections: &mut Vec<Connection>, metrics: &Mutex<Arc<str>>) {
    let now = Instant::now();
    connections.retain_mut(|connection| {
        connection.answer_ready(|| Arc::clone(&locked(metrics))) && connection.end() > now
    });
}

/// Waits until there is anything to do.
fn wait(listener: &TcpListener, connections: &[Connection]) {
    let mut polled = vec![PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    polled.extend(connections.iter().map(Connection::polled));
    let end = connections.iter().map(Connection::end).min();
    let left = end.map(|end| end.saturating_duration_since(Instant::now()));
    // Rounded up, so that the time is over afterwards.
    let left = left.map(|left| left + Duration::from_millis(1));
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    // Nothing else can be done about an error than to try again.
    if poll(&mut polled, timeout.as_ref()).is_err() {
        thread::sleep(PAUSE);
    }
}

/// Accepts all connections that wait. Of more than so many, the oldest ends: none whose request has arrived, unless it does not take the answer.
fn accept(listener: &TcpListener, connections: &mut Vec<Connection>, metrics: &Mutex<Arc<str>>) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                if connections.len() >= MAX_CONNECTIONS {
                    answer_ready(connections, metrics);
                }
                if connections.len() >= MAX_CONNECTIONS {
                    let silent = connections.iter().position(Connection::is_silent);
                    connections.remove(silent.unwrap_or(0));
                }
                connections.extend(Connection::new(stream).ok());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
                ) => {}
            Err(_) => return thread::sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests;
