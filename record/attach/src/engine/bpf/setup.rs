//! Errors of what programs share.

use std::io;

use usdtrec_kernel::{BpfObject, KernelError, KernelOperation};

use crate::error::RecordError;

/// The error for an object that cannot be created.
pub(super) fn setup(object: BpfObject) -> impl FnOnce(io::Error) -> RecordError {
    let error = KernelError::operation(KernelOperation::BpfObject(object));
    move |source| error(source).into()
}
