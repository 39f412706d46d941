//! `export`: each format has every selected hit with every value, and every span, of recordings of real programs.

mod browser;
mod cgroups;
mod collector;
mod engines;
mod html;
mod losses;
pub(crate) mod nasty;
mod otlp;
mod outputs;
mod parquet;
mod perf;
mod perfetto;
mod proto;
mod readers;
mod redacted;
mod rows;
mod telemetry;
mod trace_processor;
mod units;
mod weight_readers;
mod weights;
