#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod die;
mod info;
mod lines;
mod links;
mod sections;
mod split;
mod units;

pub use die::{Die, DieAttributes};
pub use info::{DwarfInfo, DwarfSource, WholeUnit};
pub use lines::Lines;
pub use links::DebugLink;
pub use sections::{
    Bytes, DwarfNeed, LIMIT, NoDwarf, Room, SectionFile, SectionOpener, SectionPlace, has_section,
    section_content,
};
pub use split::SplitUnit;
pub use units::{CodeRanges, ReadUnit, Units};
