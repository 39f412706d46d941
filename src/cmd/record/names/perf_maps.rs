//! The perf maps of processes, as `report` reads them.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Reads a map that may be there.
pub(crate) fn read(map: Option<File>) -> Option<Box<dyn BufRead>> {
    Some(Box::new(BufReader::new(map?)))
}
