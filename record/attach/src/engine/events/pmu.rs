//! The uprobe PMU.

use std::fs;
use std::io;

use usdtrec_kernel::KernelError;
use usdtrec_kernel::KernelOperation;

use crate::error::RecordError;

/// The file that has the number (Linux 4.17).
const PMU_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// The uprobe PMU, of which only those need the number who open its events.
#[derive(Clone, Copy, Debug)]
pub struct UprobePmu {
    known: Option<u32>,
}

impl UprobePmu {
    /// Looks for its number, which sysfs has, if that is mounted.
    pub fn find() -> Self {
        Self {
            known: pmu_type().ok(),
        }
    }

    /// Its number.
    ///
    /// # Errors
    /// [`RecordError`] if the kernel has no such PMU, or sysfs is not mounted.
    pub fn number(self) -> Result<u32, RecordError> {
        self.known.map_or_else(pmu_type, Ok)
    }

    /// Its number, if it is known.
    pub const fn known(self) -> Option<u32> {
        self.known
    }
}

/// The number of the uprobe PMU.
pub(in crate::engine) fn pmu_type() -> Result<u32, RecordError> {
    let text = fs::read_to_string(PMU_TYPE)
        .map_err(KernelError::operation(KernelOperation::UprobePmu(PMU_TYPE)))?;
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("expected a number, found {text:?}"),
        )
    };
    let number = text.trim().parse().map_err(|_| wrong());
    Ok(number.map_err(KernelError::host(PMU_TYPE))?)
}
