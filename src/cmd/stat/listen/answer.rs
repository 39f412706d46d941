//! Answers to requests of HTTP.

use std::net::IpAddr;

use httparse::{EMPTY_HEADER, Error, Request, Status};

/// Maximum size of a request without its body, bytes.
pub(super) const MAX_REQUEST: usize = 8 << 10;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: &'static str,
    /// Its text; `None` for the metrics.
    pub(super) text: Option<&'static str>,
    /// Whether the text is sent, and not only its length.
    pub(super) has_body: bool,
}

impl Answer {
    const METRICS: Self = Self {
        status: "200 OK",
        text: None,
        has_body: true,
    };

    const fn refusal(status: &'static str, text: &'static str) -> Self {
        Self {
            status,
            text: Some(text),
            has_body: true,
        }
    }

    /// Its lines before the text, which has so many bytes.
    pub(super) fn head(&self, length: usize) -> String {
        let kind = match self.text {
            None => "text/plain; version=0.0.4; charset=utf-8",
            Some(_) => "text/plain; charset=utf-8",
        };
        let allow = match self.status.starts_with("405") {
            true => "Allow: GET, HEAD\r\n",
            false => "",
        };
        format!(
            "HTTP/1.1 {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{allow}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status
        )
    }
}

/// The answer to a request; `None` if it is not complete.
pub(super) fn answer(request: &[u8]) -> Option<Answer> {
    const TOO_LARGE: Answer = Answer::refusal(
        "431 Request Header Fields Too Large",
        "expected a request of at most 8 KiB and 64 headers\n",
    );
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(Status::Complete(_)) => Some(answer_to(&parsed)),
        Ok(Status::Partial) if request.len() > MAX_REQUEST => Some(TOO_LARGE),
        Ok(Status::Partial) => None,
        Err(Error::TooManyHeaders) => Some(TOO_LARGE),
        Err(_) => Some(Answer::refusal(
            "400 Bad Request",
            "expected a request of HTTP/1.1\n",
        )),
    }
}

fn answer_to(request: &Request<'_, '_>) -> Answer {
    let mut headers = request.headers.iter();
    let host = headers.find(|header| header.name.eq_ignore_ascii_case("host"));
    let is_own = host.is_none_or(|host| is_loopback(host.value));
    let path = request.path.unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let method = request.method.unwrap_or_default();
    let answer = match (method, path) {
        _ if !is_own => Answer::refusal(
            "421 Misdirected Request",
            "expected a loopback address or localhost as host\n",
        ),
        ("GET" | "HEAD", "/metrics") => Answer::METRICS,
        ("GET" | "HEAD", "/") => Answer::refusal("200 OK", "The metrics are at /metrics\n"),
        ("GET" | "HEAD", _) => {
            Answer::refusal("404 Not Found", "not found; the metrics are at /metrics\n")
        }
        _ => Answer::refusal("405 Method Not Allowed", "expected GET or HEAD\n"),
    };
    Answer {
        has_body: method != "HEAD",
        ..answer
    }
}

/// Whether the host of a request, with or without a port, is this one by a loopback address or its usual name.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let host = host.trim();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default();
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> Option<&'static str> {
        let answer = answer(request.as_bytes())?;
        answer.status.split(' ').next()
    }

    #[test]
    fn requests_have_their_answers() {
        let with_host = |host: &str| format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for host in [
            "localhost",
            "LocalHost:9100",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:80",
        ] {
            assert_eq!(status(&with_host(host)), Some("200"), "{host}");
        }
        for host in [
            "evil.example:9100",
            "10.0.0.1",
            "",
            "[::2]",
            "localhost.evil",
        ] {
            assert_eq!(status(&with_host(host)), Some("421"), "{host}");
        }
        for (request, right) in [
            ("GET /metrics HTTP/1.0\r\n\r\n", "200"),
            ("GET /metrics?name=x HTTP/1.1\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\n\r\n", "200"),
            ("GET /etc/passwd HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("\x16\x03\x01 hello\r\n\r\n", "400"),
        ] {
            assert_eq!(status(request), Some(right), "{request:?}");
        }
        for part in ["", "GET /metr", "GET /metrics HTTP/1.1\r\nHost: loc"] {
            assert_eq!(status(part), None, "{part:?}");
        }
        let many = "a: b\r\n".repeat(MAX_HEADERS + 1);
        let many = format!("GET / HTTP/1.1\r\n{many}\r\n");
        assert_eq!(status(&many), Some("431"));
        let long = format!("GET /{}", "x".repeat(MAX_REQUEST));
        assert_eq!(status(&long), Some("431"));
    }

    #[test]
    fn heads_end_with_an_empty_line() {
        let head = answer(b"HEAD /metrics HTTP/1.1\r\n\r\n").expect("an answer");
        assert!(!head.has_body);
        let head = head.head(7);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"));
        assert!(head.contains("Content-Length: 7\r\n") && head.contains("version=0.0.4"));
        let refused = answer(b"PUT / HTTP/1.1\r\n\r\n").expect("an answer");
        assert!(refused.head(0).contains("Allow: GET, HEAD\r\n"));
    }
}
