//! What the kernel does not let programs do.

use std::error::Error;
use std::fmt;

use super::attach_method::AttachMethod;
use crate::error::RecordError;

/// An attach method of programs that does not work on this kernel.
#[derive(Debug)]
pub struct SkippedMethod {
    /// The method.
    pub attach_method: AttachMethod,
    /// Error of attaching by it.
    pub error: RecordError,
}

impl fmt::Display for SkippedMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} not used: {}", self.attach_method, line(&self.error))
    }
}

/// Why programs do not bring memory in that is not resident, although they should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotFaultedIn {
    /// The kernel does not describe the structures by which mappings are checked.
    #[error("/sys/kernel/btf/vmlinux is missing or lacks a type that is needed")]
    NoBtf,
    /// Programs that do it do not work on this kernel.
    #[error("{}", line(.0))]
    Refused(RecordError),
}

/// An error and one line of its cause: of the verifier's log the last line that is not a statistic.
fn line(error: &RecordError) -> String {
    if let RecordError::NoBpf(reason) = error {
        return reason.to_string();
    }
    let cause = error.source().map(ToString::to_string);
    let cause = cause.unwrap_or_default();
    let mut lines = cause.lines().filter(|line| !line.starts_with("processed "));
    match lines.next_back() {
        Some(last) => format!("{error}: {last}"),
        None => error.to_string(),
    }
}
