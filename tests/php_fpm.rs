//! PHP-FPM 8.2, whose workers end after a few requests and are started anew.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::common::{Lab, Process, Recorder, need_tool, path_text, test};

/// Requests, and how many a worker answers.
const REQUESTS: usize = 40;
const OF_WORKER: usize = 5;

/// A record of FastCGI 1.0 (section 3.3) of request 1: type and content.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    let head = [1, kind, 0, 1, high, low, 0, 0];
    [&head, content].concat()
}

/// Requests a script as a web server does; what it prints.
fn request(socket: &Path, script: &Path) -> String {
    const BEGIN: u8 = 1;
    const PARAMETERS: u8 = 4;
    const INPUT: u8 = 5;
    const OUTPUT: u8 = 6;
    let parameters = [
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_FILENAME", path_text(script)),
    ];
    let pairs = parameters.map(|(name, value)| {
        let lengths = [name.len() as u8, value.len() as u8];
        [&lengths, name.as_bytes(), value.as_bytes()].concat()
    });
    // The role of a responder, and the connection ends with the request.
    let begin = record(BEGIN, &[0, 1, 0, 0, 0, 0, 0, 0]);
    let parameters = [
        record(PARAMETERS, &pairs.concat()),
        record(PARAMETERS, &[]),
        record(INPUT, &[]),
    ];
    let mut connection = UnixStream::connect(socket).expect("a server");
    let request = [begin, parameters.concat()].concat();
    connection.write_all(&request).expect("a server that reads");
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).expect("an answer");
    let (mut rest, mut output) = (&answer[..], Vec::new());
    while let [_, kind, _, _, high, low, padding, _, content @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind == OUTPUT {
            output.extend_from_slice(&content[..length]);
        }
        rest = &content[length + usize::from(*padding)..];
    }
    let output = String::from_utf8(output).expect("text");
    let body = output.split_once("\r\n\r\n").expect("headers and a body").1;
    body.to_owned()
}

/// Each script prints the process that runs it.
#[test]
fn workers_that_are_started_anew_are_recorded() {
    let lab = Lab::privileged();
    const FPM: &str = "/usr/sbin/php-fpm8.2";
    need_tool(FPM);
    let (socket, script) = (lab.file("socket"), lab.file("script.php"));
    fs::write(&script, "<?php echo getmypid();").expect("a file");
    let configuration = format!(
        "[global]\nerror_log = /proc/self/fd/2\nprocess_control_timeout = 60\n[tests]\nlisten = {}\nuser = root\ngroup = root\npm = static\n\
         pm.max_children = 2\npm.max_requests = {OF_WORKER}\n",
        socket.display()
    );
    fs::write(lab.file("fpm.conf"), configuration).expect("a file");
    let options = ["-n", "-R", "-F", "-y", path_text(&lab.file("fpm.conf"))].map(str::to_owned);
    let mut server = lab.at_home(Path::new(FPM), options);
    server.env("USE_ZEND_DTRACE", "1");
    let mut server = Process::spawn(server);
    server.until_error_line("ready to handle connections");
    let pid = server.pid().to_string();
    let events = "php:request__startup,php:request__shutdown";
    let recorder = Recorder::start(&lab, ["-p", &pid, "-o", "trace", "-e", events]);
    let mut answered: BTreeMap<u32, usize> = BTreeMap::new();
    for _ in 0..REQUESTS {
        let worker = request(&socket, &script).parse().expect("a process id");
        *answered.entry(worker).or_default() += 1;
    }
    // Workers end their requests after they have answered, for which the server waits. The recording ends with the server.
    server.signal("QUIT");
    server.finish().success();
    recorder.finish().success();
    assert!(answered.len() >= REQUESTS / OF_WORKER, "{answered:?}");
    let events = lab.events("trace");
    for name in ["request__startup", "request__shutdown"] {
        let mut recorded: BTreeMap<u32, usize> = BTreeMap::new();
        for event in events.iter().filter(|event| event.name() == name) {
            *recorded.entry(event.pid).or_default() += 1;
        }
        assert_eq!(recorded, answered, "{name}");
    }
}
