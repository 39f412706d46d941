//! The selected events of a trace and its spans one by one, as plain data: what exports are written from.
//!
//! Windows of samples are decoded, and their spans matched, in parallel; what is open between windows is matched one window after the
//! other, by the matcher that `report --span` uses. In memory are the rows of the windows that are decoded at once, the begins of open spans, and up to
//! the end of a file those of spans that were open when a pause began.

pub mod hit_row;
pub(crate) mod joined_windows;
pub(crate) mod paused_begins;
pub mod row_sink;
pub mod row_walk;
pub mod row_window;
pub mod span_stream;
pub(crate) mod unmatched_segments;
pub(crate) mod window_rows;
