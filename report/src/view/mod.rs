//! Answers and events as text, tables, JSON, CSV and lines. A view computes nothing.

pub(crate) mod bars;
pub(crate) mod columns;
pub(crate) mod diff;
pub(crate) mod head;
pub(crate) mod numbers;
pub mod report;
pub mod script;
pub(crate) mod text;
pub(crate) mod theme;
pub(crate) mod top;
