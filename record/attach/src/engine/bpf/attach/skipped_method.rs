//! What the kernel does not let programs do.

use std::error::Error;
use std::fmt;

use usdtrec_kernel::KernelError;

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

/// An error and its cause, in one line.
fn line(error: &RecordError) -> String {
    if let RecordError::Kernel(KernelError::NoBpf(reason)) = error {
        return reason.to_string();
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
