//! Ports of servers that tests start.

use std::net::TcpListener;

/// A port of 127.0.0.1 that is free.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
