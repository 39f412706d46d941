//! Options of `usdtrec stat`.

#[cfg(feature = "listen")]
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args};

use super::capture::{CaptureArgs, DelayArgs, counted};
use super::hidden_options::refused;
use super::spans::SpanStatArgs;
use super::text::OutputFormat;

/// Hits are counted where they happen.
fn without_rings(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "mmap_pages" => refused(option, "hits are not written to rings"),
        _ => counted(option),
    }
}

/// `usdtrec stat`.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("arguments").args(["filter", "by", "value", "hist", "span"]).multiple(true)),
    mut_args(without_rings)
)]
pub(crate) struct StatArgs {
    /// What to count
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    /// When probes are attached
    #[command(flatten)]
    pub(crate) delay: DelayArgs,
    /// Count the hits of each value of these keys: comm, pid, tid, uid, container, unit, stack (not with --span), arguments by name or as arg1, arg2, …, or ARG:shape (comma list)
    ///
    /// The container and the unit are those of the control group (version 2) at the hit; of a control group that came and went between two intervals, they are
    /// not known. The shape of a string is the string without its numbers and quoted strings: programs keep the strings apart, and those of one shape are added up.
    ///
    /// The stack is that of the callers by frame pointers, as with record --call-graph fp, with at most 127 frames; one that they do not lead to the end of says why. JSON and CSV have it in a line, the
    /// outermost function first (main;work;leaf), and tables have the innermost functions. At most 16,384 different stacks are kept.
    ///
    /// A string must be declared, by a schema or an argument list: -e 'app:request(url=str(arg2))' --by url. With --strings all, every unsigned argument of pointer size is one. Of a string, as many
    /// bytes are compared as --strlen says; one that is cut is marked. At most 65,536 groups are kept, in at most 64 MiB; further hits are counted as others.
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) by: Vec<String>,
    /// Show how many numbers these arguments had, their sum, mean, minimum and maximum, for each probe or group of --by (comma list)
    ///
    /// Programs in the kernel add up integers of up to 64 bits, exactly; the sum has 128 bits. Numbers that could not be read are left out, and count in
    /// the hits only. Of more groups than have room, the numbers are not known.
    #[arg(long, value_name = "ARG", value_delimiter = ',')]
    pub(crate) value: Vec<String>,
    /// The same, with percentiles (p50, p90, p99) and a histogram of powers of two (comma list); of spans, whose percentiles are always shown, span is the histogram
    ///
    /// Percentiles are within 1.6 % (1/64) of themselves; those below 64 are exact. A histogram takes 7 to 30 KiB, and all that is counted 64 MiB at most: with
    /// 64-bit arguments, some 2,400 groups have one, and half as many if the arguments are signed.
    #[arg(long, value_name = "ARG", value_delimiter = ',')]
    pub(crate) hist: Vec<String>,
    /// Spans that are added up
    #[command(flatten)]
    pub(crate) spans: SpanStatArgs,
    /// Print the counts of each interval (500ms, 2s), at least 10ms; a number without a unit is milliseconds, as in perf stat [default: once, at the end]
    ///
    /// On a terminal, text is one table that is redrawn at each interval, with the hits since the start and the last intervals as a line of bars.
    #[arg(short = 'I', long, value_name = "TIME", alias = "interval-print")]
    pub(crate) interval: Option<String>,
    /// Output format: text, or the counts of each probe as JSON or CSV
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// As --format csv, for command lines of perf stat
    #[arg(short = 'x', long, value_name = "SEP", value_parser = [","], conflicts_with = "format")]
    pub(crate) field_separator: Option<String>,
    /// Print to this file; an existing file is renamed to FILE.old [default: standard output, and CMD's output goes to standard error]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// At each interval, also replace this file by metrics of Prometheus (text format 0.0.4), for collectors of files such as node_exporter's; needs -I
    ///
    /// usdtrec_hits_total has the labels provider, probe, and those of --by. Of each probe, the first 1000 groups have samples of their own; all others are counted together, with others="true". Spans have usdtrec_span_seconds, a histogram with the labels provider, span, and those of --by. The file is replaced as a whole, can be read by all users as far as the umask allows, and stays at the end.
    #[arg(long, value_name = "FILE.prom", requires = "interval")]
    pub(crate) prometheus: Option<PathBuf>,
    /// Also serve these metrics at http://ADDRESS:PORT/metrics, on a loopback address (127.0.0.1:9435, [::1]:9435, localhost:9435); needs -I
    ///
    /// Every user of this host can read them. With port 0, a free one is chosen, and printed.
    #[cfg(feature = "listen")]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "interval", value_parser = loopback)]
    pub(crate) listen: Option<SocketAddr>,
}

/// An address on which nobody but this host can connect.
#[cfg(feature = "listen")]
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected an address and a port, as 127.0.0.1:9435".to_owned();
    let numbers = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    let address: SocketAddr = numbers.parse().map_err(|_| expected())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(
            "expected a loopback address: metrics have values of the traced programs, and are served without encryption and passwords"
                .to_owned(),
        ),
    }
}

#[cfg(all(test, feature = "listen"))]
mod tests {
    use super::loopback;

    #[test]
    fn only_this_host_can_connect() {
        for good in ["127.0.0.1:9435", "localhost:0", "[::1]:80", "127.1.2.3:1"] {
            assert!(loopback(good).is_ok(), "{good}");
        }
        for bad in [
            "0.0.0.0:80",
            "[::]:80",
            "10.0.0.1:80",
            "[::ffff:10.0.0.1]:80",
        ] {
            let error = loopback(bad).expect_err(bad);
            assert!(error.contains("a loopback address"), "{error}");
        }
        for bad in [
            "",
            "9435",
            ":9435",
            "127.0.0.1",
            "localhost",
            "localhost:x",
            "host:1",
        ] {
            let error = loopback(bad).expect_err(bad);
            assert!(error.contains("an address and a port"), "{error}");
        }
    }
}
