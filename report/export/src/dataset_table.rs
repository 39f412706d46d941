//! The tables of a dataset, with the columns that each of them always has (`docs/parquet.md`).

use usdtrec_format::TimePart;
use usdtrec_trace::fields::{DURATION_NS, FATE, Field, SELF_NS, process_fields};

/// Type of a column. Every column may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A signed integer of 4 bytes.
    Int32,
    /// A signed integer of 8 bytes.
    Int64,
    /// An unsigned integer of 8 bytes.
    UInt64,
    /// A float of 8 bytes.
    Float64,
    /// True or false.
    Bool,
    /// UTF-8.
    Text,
    /// Bytes.
    Binary,
}

impl ColumnType {
    /// The name of the type in documents and in the table `columns`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Float64 => "double",
            Self::Bool => "boolean",
            Self::Text => "string",
            Self::Binary => "binary",
        }
    }
}

/// A table of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetTable {
    /// Its name.
    pub name: &'static str,
    /// Columns by the names of folders, below that of the table.
    pub folders: &'static [&'static str],
    columns: &'static [Column],
}

/// Name and type of a column.
type Column = (&'static str, ColumnType);

/// Stands for the columns of all fields about the process.
const OF_PROCESS: Column = ("", ColumnType::Text);

const OF_TRACE: &[&str] = &["host", "date"];

impl DatasetTable {
    /// The columns of all of its files, which precede those of arguments.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        let of_process = process_fields().map(|(_, field)| match field.is_number {
            true => (field.column, ColumnType::Int64),
            false => (field.column, ColumnType::Text),
        });
        let of_process: Vec<Column> = of_process.collect();
        let columns = self.columns.split(|column| *column == OF_PROCESS);
        columns.collect::<Vec<_>>().join(&of_process[..])
    }

    /// All tables.
    pub const ALL: [Self; 7] = [
        Self::EVENTS,
        Self::SPANS,
        Self::STACKS,
        Self::PROCESSES,
        Self::LOSSES,
        Self::COLUMNS,
        Self::META,
    ];

    /// Events: a file for each probe.
    pub const EVENTS: Self = Self {
        name: "events",
        folders: &["host", "date", "provider", "probe"],
        columns: &[
            ("ts_ns", ColumnType::Int64),
            ("clock_ns", ColumnType::Int64),
            (Field::Cpu.spec().column, ColumnType::Int64),
            (Field::Pid.spec().column, ColumnType::Int32),
            (Field::Tid.spec().column, ColumnType::Int32),
            (Field::Comm.spec().column, ColumnType::Text),
            OF_PROCESS,
            ("file", ColumnType::Text),
            ("no_begin", ColumnType::Bool),
            ("stack_id", ColumnType::Int64),
            ("trace_id", ColumnType::Int64),
        ],
    };

    /// Spans: a file for each kind of span.
    pub const SPANS: Self = Self {
        name: "spans",
        folders: &["host", "date", "provider", "span"],
        columns: &[
            ("begin_ts_ns", ColumnType::Int64),
            ("end_ts_ns", ColumnType::Int64),
            ("begin_clock_ns", ColumnType::Int64),
            ("end_clock_ns", ColumnType::Int64),
            (DURATION_NS, ColumnType::Int64),
            (SELF_NS, ColumnType::Int64),
            (TimePart::OnCpu.spec().column, ColumnType::Int64),
            (TimePart::Runnable.spec().column, ColumnType::Int64),
            (TimePart::Iowait.spec().column, ColumnType::Int64),
            (TimePart::Blocked.spec().column, ColumnType::Int64),
            (TimePart::OnCpu.spec().own_column, ColumnType::Int64),
            (TimePart::Runnable.spec().own_column, ColumnType::Int64),
            (TimePart::Iowait.spec().own_column, ColumnType::Int64),
            (TimePart::Blocked.spec().own_column, ColumnType::Int64),
            (FATE, ColumnType::Text),
            (Field::Pid.spec().column, ColumnType::Int32),
            (Field::Tid.spec().column, ColumnType::Int32),
            (Field::Comm.spec().column, ColumnType::Text),
            OF_PROCESS,
            ("end_pid", ColumnType::Int32),
            ("end_tid", ColumnType::Int32),
            ("begin_cpu", ColumnType::Int64),
            ("end_cpu", ColumnType::Int64),
            ("begin_stack_id", ColumnType::Int64),
            ("end_stack_id", ColumnType::Int64),
            ("trace_id", ColumnType::Int64),
        ],
    };

    /// Stacks: a row for each frame of each different stack.
    pub const STACKS: Self = Self {
        name: "stacks",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", ColumnType::Int64),
            ("stack_id", ColumnType::Int64),
            ("depth", ColumnType::Int32),
            ("frame", ColumnType::Text),
            ("function", ColumnType::Text),
            ("file", ColumnType::Text),
            ("offset", ColumnType::UInt64),
            ("address", ColumnType::UInt64),
            ("inlined", ColumnType::Bool),
            ("cut", ColumnType::Text),
        ],
    };

    /// Names of threads, and their times.
    pub const PROCESSES: Self = Self {
        name: "processes",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", ColumnType::Int64),
            ("tid", ColumnType::Int32),
            ("comm", ColumnType::Text),
            ("from_ts_ns", ColumnType::Int64),
            ("until_ts_ns", ColumnType::Int64),
            ("from_clock_ns", ColumnType::Int64),
            ("until_clock_ns", ColumnType::Int64),
        ],
    };

    /// Lost events by probe.
    pub const LOSSES: Self = Self {
        name: "losses",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", ColumnType::Int64),
            ("event", ColumnType::Text),
            ("provider", ColumnType::Text),
            ("probe", ColumnType::Text),
            ("exported", ColumnType::Int64),
            ("lost", ColumnType::Int64),
            ("exact", ColumnType::Bool),
            ("counted", ColumnType::Text),
            ("doubt", ColumnType::Text),
        ],
    };

    /// The columns of arguments.
    pub const COLUMNS: Self = Self {
        name: "columns",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", ColumnType::Int64),
            ("of_table", ColumnType::Text),
            ("name", ColumnType::Text),
            ("column_name", ColumnType::Text),
            ("type", ColumnType::Text),
            ("argument", ColumnType::Text),
            ("unit", ColumnType::Text),
            ("description", ColumnType::Text),
        ],
    };

    /// The trace as a whole: one row.
    pub const META: Self = Self {
        name: "meta",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", ColumnType::Int64),
            ("schema_version", ColumnType::Int32),
            ("exporter", ColumnType::Text),
            ("recorder", ColumnType::Text),
            ("engine", ColumnType::Text),
            ("command", ColumnType::Text),
            ("machine", ColumnType::Text),
            ("kernel", ColumnType::Text),
            ("cpus", ColumnType::Int64),
            ("clock", ColumnType::Text),
            ("wall_ns", ColumnType::Int64),
            ("wall_clock_ns", ColumnType::Int64),
            ("first_ts_ns", ColumnType::Int64),
            ("last_ts_ns", ColumnType::Int64),
            ("first_clock_ns", ColumnType::Int64),
            ("last_clock_ns", ColumnType::Int64),
            ("wall_error_ns", ColumnType::Int64),
        ],
    };
}
