//! Ids of spans and of traces.

use usdtrec_analysis::rows::hit_row::HitRow;
use usdtrec_analysis::stats::sketch::content_hash;

/// Ids of a span, as W3C Trace Context has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanIds {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    pub(crate) parent: Option<[u8; 8]>,
}

/// Ids of the trace that a span belongs to, and of the span around it, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParentIds {
    trace: [u8; 16],
    parent: Option<[u8; 8]>,
}

impl ParentIds {
    /// The request that the thread of a hit was working on.
    pub(crate) fn from_context(row: &HitRow) -> Option<Self> {
        let context = row.process.thread_context.ok()?;
        Some(Self {
            trace: context.trace_id,
            parent: Some(context.span_id),
        })
    }
}

/// Makes ids: the same in every run.
#[derive(Debug)]
pub(crate) struct SpanIdSource {
    host: String,
    count: u64,
}

impl SpanIdSource {
    pub(crate) fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            count: 0,
        }
    }

    /// Ids of the next span. Without a trace, it is the only span of its own.
    pub(crate) fn next(&mut self, begin: &HitRow, given: Option<ParentIds>) -> SpanIds {
        self.count += 1;
        let what = (&self.host, begin.pid, begin.tid, begin.time, self.count);
        let hash = |part: u8| content_hash((&what, part)).max(1).to_be_bytes();
        let mut trace = [0; 16];
        trace[..8].copy_from_slice(&hash(1));
        trace[8..].copy_from_slice(&hash(2));
        SpanIds {
            trace: given.map_or(trace, |given| given.trace),
            span: hash(0),
            parent: given.and_then(|given| given.parent),
        }
    }
}

/// The ids in a string: 32 hexadecimal digits, with or without dashes (a UUID), or a `traceparent` (`00-TRACE-SPAN-FLAGS`).
pub(crate) fn parsed_trace(text: &str) -> Option<ParentIds> {
    let text = text.trim();
    if let [_, trace, parent, _] = *text.split('-').collect::<Vec<&str>>() {
        return Some(ParentIds {
            trace: digits(trace)?,
            parent: Some(digits(parent)?),
        });
    }
    Some(ParentIds {
        trace: digits(&text.replace('-', ""))?,
        parent: None,
    })
}

/// Bytes of which the string has exactly the digits, not all 0.
fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    (bytes != [0; N]).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_strings() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let parsed = parsed_trace(trace).expect("an id");
        assert_eq!(
            (parsed.trace[..2].to_vec(), parsed.parent),
            (vec![0x0a, 0xf7], None)
        );
        let uuid = "0af76519-16cd-43dd-8448-eb211c80319c";
        assert_eq!(parsed_trace(uuid), Some(parsed));
        let whole = format!("00-{trace}-b7ad6b7169203331-01");
        let parent = parsed_trace(&whole).expect("ids").parent.expect("a parent");
        assert_eq!(parent[0], 0xb7);
        for wrong in [
            "",
            "12",
            "0af7651916cd43dd8448eb211c80319g",
            "é",
            &"0".repeat(32),
        ] {
            assert_eq!(parsed_trace(wrong), None, "{wrong}");
        }
    }
}
