//! One line for each span, with the arguments of its begin and of its end.
//!
//! A line is made when the span has ended, so lines are in the order of the ends.

pub(crate) mod arguments;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod line_times;
pub(crate) mod live;
pub(crate) mod printing;
pub(crate) mod style;
pub(crate) mod template;
pub(crate) mod text;
pub(crate) mod writer;
