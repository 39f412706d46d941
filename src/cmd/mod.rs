//! One file per verb: each converts its options and calls the crate that does the work.

/// Converts an option's values to those of the same names.
macro_rules! same {
    ($visible:vis fn $name:ident($from:ty) -> $to:ty: $($value:ident)*) => {
        $visible const fn $name(value: $from) -> $to {
            type From = $from;
            type To = $to;
            match value {
                $(From::$value => To::$value,)*
            }
        }
    };
}

pub(crate) mod archive;
pub(crate) mod buildid_cache;
pub(crate) mod completions;
#[cfg(feature = "record")]
mod count_screen;
#[cfg(feature = "parquet")]
mod dataset;
#[cfg(feature = "record")]
pub(crate) mod demo;
pub(crate) mod diff;
#[cfg(feature = "record")]
pub(crate) mod doctor;
#[cfg(feature = "record")]
pub(crate) mod dump;
pub(crate) mod export;
#[cfg(feature = "flame")]
pub(crate) mod flame;
#[cfg(feature = "record")]
mod hit_trials;
#[cfg(feature = "record")]
pub(crate) mod import;
#[cfg(feature = "record")]
mod kept_ends;
#[cfg(feature = "record")]
mod keyboard;
pub(crate) mod list;
#[cfg(feature = "record")]
mod live;
pub(crate) mod man;
#[cfg(feature = "record")]
mod named_counts;
mod pack;
mod print;
#[cfg(feature = "record")]
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod schema;
#[cfg(feature = "record")]
mod screen;
#[cfg(feature = "record")]
mod screen_signals;
pub(crate) mod script;
mod selection;
pub(crate) mod sql;
#[cfg(feature = "record")]
pub(crate) mod stat;
#[cfg(feature = "record")]
pub(crate) mod top;
#[cfg(feature = "record")]
pub(crate) mod trace;
mod trigger_head;
mod unpack;
