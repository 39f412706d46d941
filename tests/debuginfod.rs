//! Debugging information of servers: Debian's, and such as misbehave.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::common::{Build, Lab, Process, free_port, need_tool, run, test, wait_until};

const BUILD: Build = Build {
    compiler: "gcc",
    options: &["-g", "-O0", "-fno-omit-frame-pointer"],
};

/// Records a program whose debugging information is in `debug/` alone.
fn record(lab: &Lab) {
    let program = BUILD.make(lab, "made.c", "made");
    fs::create_dir(lab.file("debug")).expect("a directory");
    let objcopy = Path::new("objcopy");
    run(lab.at_home(objcopy, ["--only-keep-debug", "made", "debug/made.debug"])).success();
    run(lab.at_home(Path::new("strip"), ["made"])).success();
    let event = format!("made:hit@{}", program.display());
    let mut record = lab.command(["record", "--call-graph", "fp", "-o", "trace", "-e", &event]);
    record.arg("--").arg(program).arg("map");
    let pid = run(record).success().stdout;
    let _ = fs::remove_file(format!("/tmp/perf-{}.map", pid.trim()));
}

/// `export --to folded` with a server.
fn report(lab: &Lab, url: &str) -> Command {
    let mut report = lab.command(["export", "-i", "trace", "--to", "folded", "-o", "-"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        report.env_remove(name);
    }
    report.env_remove("XDG_CACHE_HOME");
    report.env_remove("DEBUGINFOD_CACHE_PATH");
    report.env("DEBUGINFOD_URLS", url);
    report.env("DEBUGINFOD_TIMEOUT", "2");
    report.env("DEBUGINFOD_MAXSIZE", "1000000");
    report
}

/// The files of the client's cache.
fn cached(lab: &Lab) -> Vec<String> {
    let dirs = fs::read_dir(lab.file(".cache/debuginfod_client"));
    let dirs = dirs.into_iter().flatten().flatten();
    let files = dirs.flat_map(|dir| fs::read_dir(dir.path()).expect("a directory").flatten());
    files
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Names are fetched once, and elfutils' client has them then.
#[test]
fn names_come_from_a_server() {
    let lab = Lab::privileged();
    need_tool("debuginfod");
    need_tool("debuginfod-find");
    record(&lab);
    let port = free_port().to_string();
    let server = ["-d", ":memory:", "-p", &port, "-F", "debug"];
    let mut server = Process::spawn(lab.at_home(Path::new("debuginfod"), server));
    let url = format!("http://127.0.0.1:{port}");
    let before = run(report(&lab, "")).success();
    assert!(!before.stdout.contains(";hit "), "{}", before.stdout);
    // It has no file before it has read all.
    wait_until("names", || {
        let report = run(report(&lab, &url));
        report.stdout.contains("main;made a;hit 3")
    });
    assert_eq!(cached(&lab), ["debuginfo"]);
    server.signal("TERM");
    wait_until("the end of the server", || !server.is_running());
    let after = run(report(&lab, &url)).success();
    assert!(
        after.stdout.contains("main;made a;hit 3"),
        "{}",
        after.stdout
    );
    let mut find = lab.at_home(Path::new("debuginfod-find"), ["debuginfo"]);
    find.arg(lab.file("made")).env("DEBUGINFOD_URLS", &url);
    find.env_remove("XDG_CACHE_HOME")
        .env_remove("DEBUGINFOD_CACHE_PATH");
    let found = run(find).success().stdout;
    assert!(found.trim().ends_with("/debuginfo"), "{found}");
}

/// A certificate of 127.0.0.1 (`tls.pem`, `tls.key`) by an authority of its own (`authority.pem`).
fn certificate(lab: &Lab) {
    let openssl = |args: &str| {
        let args = args.split_ascii_whitespace();
        run(lab.at_home(Path::new("openssl"), args)).success();
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!(
        "req -x509 {key} -subj /CN=authority -days 2 -keyout authority.key -out authority.pem"
    ));
    openssl(&format!(
        "req {key} -subj /CN=server -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE -keyout tls.key -out tls.csr"
    ));
    openssl(
        "x509 -req -in tls.csr -copy_extensions copy -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -out tls.pem",
    );
}

/// TLS: of a server whose certificate this host trusts, and of no other one.
#[test]
fn servers_with_tls() {
    let lab = Lab::privileged();
    need_tool("openssl");
    record(&lab);
    certificate(&lab);
    let readelf = lab.at_home(Path::new("readelf"), ["-n", "debug/made.debug"]);
    let notes = run(readelf).success().stdout;
    let (_, id) = notes.split_once("Build ID: ").expect("a build-id");
    let id = id.lines().next().expect("a line").trim();
    let dir = lab.file("buildid").join(id);
    fs::create_dir_all(&dir).expect("a directory");
    fs::rename(lab.file("debug/made.debug"), dir.join("debuginfo")).expect("a file");
    let port = free_port().to_string();
    let server = [
        "s_server", "-quiet", "-WWW", "-accept", &port, "-cert", "tls.pem", "-key", "tls.key",
    ];
    let mut server = Process::spawn(lab.at_home(Path::new("openssl"), server));
    wait_until("a server", || {
        TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
    });
    let url = format!("https://127.0.0.1:{port}");
    let without = run(report(&lab, "")).success().stdout;
    let unknown = run(report(&lab, &url)).success();
    let unknown = unknown.complains("certificate");
    assert_eq!(unknown.stdout, without);
    let mut trusting = report(&lab, &url);
    trusting.env("SSL_CERT_FILE", lab.file("authority.pem"));
    let found = run(trusting).success().silent();
    assert!(
        found.stdout.contains("main;made a;hit 3"),
        "{}",
        found.stdout
    );
    server.signal("TERM");
    wait_until("the end of the server", || !server.is_running());
}

/// A server that answers each request with `answer`, until the test program ends. Returns its URL.
fn server(answer: impl Fn(TcpStream, &str) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let own = url.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // What is unread when it is closed would reset the connection.
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
                request.extend(byte);
            }
            answer(stream, &own);
        }
    });
    url
}

/// Answers are bounded and checked; the report is that without a server.
#[test]
fn servers_that_misbehave() {
    let lab = Lab::privileged();
    record(&lab);
    let other = fs::read(BUILD.make(&lab, "first.c", "first")).expect("a file");
    let expected = run(report(&lab, "")).success().stdout;
    let check = |url: &str, said: &str| {
        let report = run(report(&lab, url)).success().complains(said);
        assert_eq!(report.stdout, expected, "{said}");
        assert!(cached(&lab).is_empty(), "{said}: {:?}", cached(&lab));
    };
    let wrong = server(move |mut stream, _| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", other.len());
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&other);
    });
    check(&wrong, "expected a file with build-id");
    let endless = server(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[0; 4096]).is_ok() {}
    });
    check(&endless, "larger than");
    let claiming = server(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n");
    });
    check(&claiming, "larger than");
    let mut open = Vec::new();
    let (keep, kept) = std::sync::mpsc::channel();
    let silent = server(move |stream, _| drop(keep.send(stream)));
    check(&silent, "timeout");
    open.extend(kept.try_iter());
    assert_eq!(open.len(), 1, "a server that failed is not asked again");
    let circle = server(|mut stream, own| {
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: {own}/again\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
    });
    check(&circle, "redirect");
    let local = server(|mut stream, _| {
        let head =
            b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n";
        let _ = stream.write_all(head);
    });
    check(&local, "debuginfod");
    let garbled = server(|mut stream, _| drop(stream.write_all(b"\x1b[31mno HTTP\r\n\r\n")));
    check(&garbled, "debuginfod");
    let gone = format!("http://127.0.0.1:{}", free_port());
    check(&gone, "refused");
    check("ftp://127.0.0.1:9", "expected a URL of https:// or http://");
    let without = server(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    let report = run(report(&lab, &without)).success().silent();
    assert_eq!(report.stdout, expected);
}
