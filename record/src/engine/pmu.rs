//! The uprobe PMU.

use std::fs;
use std::io;

use crate::error::RecordError;
use crate::kernel_error::KernelOperation;

/// The file that has the number (Linux 4.17).
const PMU_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// The number of the uprobe PMU.
pub(super) fn pmu_type() -> Result<u32, RecordError> {
    let text = fs::read_to_string(PMU_TYPE).map_err(|source| RecordError::Kernel {
        operation: KernelOperation::UprobePmu(PMU_TYPE),
        source,
    })?;
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected a number, found {text:?}"),
        )
    };
    text.trim().parse().map_err(|_| RecordError::Host {
        what: PMU_TYPE.to_owned(),
        source: wrong(),
    })
}
