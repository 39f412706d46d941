//! What the tests share: a private place on disk, programs that are started and always ended, and reading what they said.

mod babeltrace;
mod closing;
mod compiler;
mod engine;
mod event;
mod judge;
mod lab;
mod memory;
mod perf;
mod postgres;
mod printed;
mod process;
mod program_file;
mod recorder;
mod sites;
mod target;
mod waiting;

pub(crate) use babeltrace::Babeltrace;
pub(crate) use closing::Closing;
pub(crate) use compiler::Build;
pub(crate) use engine::Engine;
pub(crate) use event::Event;
pub(crate) use judge::judge;
pub(crate) use lab::{Lab, alone_with, find_tool, need_tool};
pub(crate) use memory::byte_of;
pub(crate) use perf::{Perf, events_of_recorder, uprobe_events};
pub(crate) use postgres::Postgres;
pub(crate) use printed::{Expected, Hit, Number};
pub(crate) use process::{Finished, Process, run, signal};
pub(crate) use program_file::{copy_program, write_program};
pub(crate) use recorder::{Recorder, compressing_threads};
pub(crate) use sites::{site_of, sites_of};
pub(crate) use target::Ticker;
pub(crate) use usdtrec_testing::{skip, test};
pub(crate) use waiting::{wait_until, within};
