//! The budget of a recording, and which probes are detached together for it.

mod options;
mod units;

pub use self::options::{Budget, HitCosts};
pub use self::units::Units;
