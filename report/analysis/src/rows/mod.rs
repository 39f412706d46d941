//! The selected events of a trace and its spans one by one, as plain data: what exports are written from.
//!
//! Windows of samples are decoded, and their spans matched, in parallel; what is open between windows is matched one window after the
//! other, by the matcher that `report --span` uses. In memory are the rows of the windows that are decoded at once, and the begins of open spans.

pub(crate) mod across;
pub(crate) mod counted_rows;
pub mod hit_row;
pub mod row_sink;
pub mod row_walk;
pub mod row_window;
pub mod span_question;
pub mod span_stream;
pub(crate) mod window_rows;
