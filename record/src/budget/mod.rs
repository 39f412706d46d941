//! Keeping the time that probes take traced threads within a budget: hot probes are detached for a time (a *pause*), attached for a *window*,
//! and so on.
//!
//! Probes that begin and end the same spans are one *unit*, which is detached as a whole, so that spans are whole in a window; every other
//! probe is a unit of its own. Each unit has links of its own. Of each thread the shares of all units are added up; the unit with the largest
//! one is paused first.
//!
//! A share is hits times what a hit takes, by the time in which they were counted. A hit that a filter in the kernel excludes makes no
//! record, and is not counted.

pub(super) mod budgeting;
pub(super) mod controller;
pub(super) mod loads;
pub(super) mod stage;
