use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{MAX_CONNECTIONS, MetricsServer};

fn server() -> MetricsServer {
    let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    MetricsServer::start(address).expect("a port")
}

fn connect(server: &MetricsServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("a connection");
    let limit = Some(Duration::from_secs(120));
    stream.set_read_timeout(limit).expect("a limit");
    stream
}

fn ask(server: &MetricsServer, request: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).expect("a connection");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Large metrics, whose client reads slowly, are those of the moment of the request.
#[test]
fn metrics_are_whole() {
    let server = server();
    let first = ask(&server, GET);
    assert!(
        first.contains("\r\n\r\n# HELP usdtrec_hits_total "),
        "{first}"
    );
    let large = "x".repeat(8 << 20);
    server.publish(large.clone());
    let mut slow = connect(&server);
    slow.write_all(GET.as_bytes()).expect("a connection");
    let mut begin = [0; 9];
    slow.read_exact(&mut begin).expect("an answer");
    server.publish("new\n".to_owned());
    assert!(ask(&server, GET).ends_with("\r\n\r\nnew\n"));
    let mut rest = String::new();
    slow.read_to_string(&mut rest).expect("an answer");
    assert!(rest.ends_with(&large) && !rest.contains("new"));
}

/// As many clients as connect at once are answered, if their requests have arrived.
#[test]
fn requests_that_have_arrived_are_answered() {
    let server = server();
    // A lock that a thread of this test has keeps the server from its turn, until all requests are there.
    let metrics = std::sync::Arc::clone(&server.metrics);
    let held = crate::mutex::locked(&metrics);
    let mut first = connect(&server);
    first.write_all(GET.as_bytes()).expect("a connection");
    std::thread::sleep(Duration::from_millis(500));
    let others = (0..100).map(|_| connect(&server));
    let mut clients: Vec<TcpStream> = std::iter::once(first).chain(others).collect();
    for client in clients.iter_mut().skip(1) {
        client.write_all(GET.as_bytes()).expect("a connection");
    }
    drop(held);
    for client in &mut clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}

/// Clients that send nothing, or never end their request, or send too much: others are served meanwhile, and these are disconnected.
#[test]
fn hostile_clients_are_disconnected() {
    let server = server();
    let mut silent: Vec<TcpStream> = (0..3 * MAX_CONNECTIONS).map(|_| connect(&server)).collect();
    assert!(ask(&server, GET).starts_with("HTTP/1.1 200 OK"));
    let mut slow = connect(&server);
    slow.write_all(b"GET /metrics HTTP/1.1\r\n")
        .expect("a connection");
    assert!(ask(&server, GET).starts_with("HTTP/1.1 200 OK"));
    // As much as the client can send before it is refused.
    let mut huge = connect(&server);
    let header = format!("x: {}\r\n", "y".repeat(1000));
    huge.write_all(b"GET /metrics HTTP/1.1\r\n")
        .expect("a connection");
    let sent = (0..30).filter(|_| huge.write_all(header.as_bytes()).is_ok());
    assert!(sent.count() > 0);
    let mut answer = String::new();
    let _ = huge.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    drop(huge);
    // Headers again and again keep no connection: all of its time is counted.
    let ended = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        slow.write_all(b"x: y\r\n").is_err()
    });
    assert!(ended, "a connection without an end");
    let mut bytes = Vec::new();
    for stream in &mut silent {
        // It ended in either way.
        let _ = stream.read_to_end(&mut bytes);
    }
    assert_eq!(bytes, b"", "nothing is sent to them");
    assert!(ask(&server, GET).starts_with("HTTP/1.1 200 OK"));
}
