//! What several benchmarks use: machines, measurements and tables.
#![allow(dead_code, reason = "other benchmarks use the rest")]

pub(crate) mod cpu_time;
pub(crate) mod hot;
pub(crate) mod machine;
pub(crate) mod table;
pub(crate) mod timed;
pub(crate) mod whole;
