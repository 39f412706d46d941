//! Providers that one test run has to itself: two runs on one host would record each other's programs with `-a`.

use std::collections::HashMap;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::thread::sleep;
use std::time::Duration;

use usdtrec_testing::waiting;

/// Interval at which a provider is asked for that another run has.
const INTERVAL: Duration = Duration::from_millis(100);

/// A provider that no other test run has while this exists: a socket of its name, which ends with this process in any case. Tests of one run
/// have different ones.
#[derive(Debug)]
pub(super) struct OwnProvider {
    _socket: Arc<UnixListener>,
}

impl OwnProvider {
    /// Waits for as long as another run has it.
    pub(super) fn wait_for(name: &str) -> Self {
        let _socket = waiting(|| {
            loop {
                if let Some(socket) = try_take(name) {
                    return socket;
                }
                sleep(INTERVAL);
            }
        });
        Self { _socket }
    }
}

/// The socket of a provider, which this process has or takes; `None` if another one has it.
fn try_take(name: &str) -> Option<Arc<UnixListener>> {
    static TAKEN: LazyLock<Mutex<HashMap<String, Weak<UnixListener>>>> =
        LazyLock::new(Mutex::default);
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(socket) = taken.get(name).and_then(Weak::upgrade) {
        return Some(socket);
    }
    let address = SocketAddr::from_abstract_name(format!("usdtrec-test-provider-{name}"));
    let socket = UnixListener::bind_addr(&address.expect("a short name")).ok()?;
    let socket = Arc::new(socket);
    taken.insert(name.to_owned(), Arc::downgrade(&socket));
    Some(socket)
}
