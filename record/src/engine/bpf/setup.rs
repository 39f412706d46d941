//! Errors of what programs share.

use std::io;

use crate::error::RecordError;
use crate::kernel_error::{BpfObject, KernelOperation};

/// The error for an object that cannot be created.
pub(super) fn setup(object: BpfObject) -> impl FnOnce(io::Error) -> RecordError {
    move |source| RecordError::Kernel {
        operation: KernelOperation::BpfObject(object),
        source,
    }
}
