//! The columns that tables of a dataset always have (`docs/parquet.md`).

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SqlType {
    Int32,
    Int64,
    UInt64,
    Bool,
    Text,
}

/// A table of a dataset.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatasetTable {
    pub(super) name: &'static str,
    /// Columns by the names of folders, below that of the table.
    pub(super) folders: &'static [&'static str],
    pub(super) columns: &'static [(&'static str, SqlType)],
}

const OF_TRACE: &[&str] = &["host", "date"];

/// All tables.
pub(super) const TABLES: [DatasetTable; 7] = [
    DatasetTable {
        name: "events",
        folders: &["host", "date", "provider", "probe"],
        columns: &[
            ("ts_ns", SqlType::Int64),
            ("clock_ns", SqlType::Int64),
            ("cpu", SqlType::Int64),
            ("pid", SqlType::Int32),
            ("tid", SqlType::Int32),
            ("comm", SqlType::Text),
            ("cgroup", SqlType::Text),
            ("file", SqlType::Text),
            ("build_id", SqlType::Text),
            ("no_begin", SqlType::Bool),
            ("stack_id", SqlType::Int64),
            ("trace_id", SqlType::Int64),
        ],
    },
    DatasetTable {
        name: "spans",
        folders: &["host", "date", "provider", "span"],
        columns: &[
            ("begin_ts_ns", SqlType::Int64),
            ("end_ts_ns", SqlType::Int64),
            ("begin_clock_ns", SqlType::Int64),
            ("end_clock_ns", SqlType::Int64),
            ("duration_ns", SqlType::Int64),
            ("self_ns", SqlType::Int64),
            ("fate", SqlType::Text),
            ("pid", SqlType::Int32),
            ("tid", SqlType::Int32),
            ("comm", SqlType::Text),
            ("cgroup", SqlType::Text),
            ("end_pid", SqlType::Int32),
            ("end_tid", SqlType::Int32),
            ("begin_cpu", SqlType::Int64),
            ("end_cpu", SqlType::Int64),
            ("build_id", SqlType::Text),
            ("begin_stack_id", SqlType::Int64),
            ("end_stack_id", SqlType::Int64),
            ("trace_id", SqlType::Int64),
        ],
    },
    DatasetTable {
        name: "stacks",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", SqlType::Int64),
            ("stack_id", SqlType::Int64),
            ("depth", SqlType::Int32),
            ("frame", SqlType::Text),
            ("function", SqlType::Text),
            ("file", SqlType::Text),
            ("offset", SqlType::UInt64),
            ("address", SqlType::UInt64),
            ("inlined", SqlType::Bool),
            ("cut", SqlType::Text),
        ],
    },
    DatasetTable {
        name: "processes",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", SqlType::Int64),
            ("tid", SqlType::Int32),
            ("comm", SqlType::Text),
            ("from_ts_ns", SqlType::Int64),
            ("until_ts_ns", SqlType::Int64),
            ("from_clock_ns", SqlType::Int64),
            ("until_clock_ns", SqlType::Int64),
        ],
    },
    DatasetTable {
        name: "losses",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", SqlType::Int64),
            ("event", SqlType::Text),
            ("provider", SqlType::Text),
            ("probe", SqlType::Text),
            ("exported", SqlType::Int64),
            ("lost", SqlType::Int64),
            ("exact", SqlType::Bool),
            ("counted", SqlType::Text),
            ("doubt", SqlType::Text),
        ],
    },
    DatasetTable {
        name: "columns",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", SqlType::Int64),
            ("of_table", SqlType::Text),
            ("name", SqlType::Text),
            ("column_name", SqlType::Text),
            ("type", SqlType::Text),
            ("argument", SqlType::Text),
            ("unit", SqlType::Text),
            ("description", SqlType::Text),
        ],
    },
    DatasetTable {
        name: "meta",
        folders: OF_TRACE,
        columns: &[
            ("trace_id", SqlType::Int64),
            ("schema_version", SqlType::Int32),
            ("exporter", SqlType::Text),
            ("recorder", SqlType::Text),
            ("engine", SqlType::Text),
            ("command", SqlType::Text),
            ("machine", SqlType::Text),
            ("kernel", SqlType::Text),
            ("cpus", SqlType::Int64),
            ("clock", SqlType::Text),
            ("wall_ns", SqlType::Int64),
            ("wall_clock_ns", SqlType::Int64),
            ("first_ts_ns", SqlType::Int64),
            ("last_ts_ns", SqlType::Int64),
            ("first_clock_ns", SqlType::Int64),
            ("last_clock_ns", SqlType::Int64),
            ("wall_error_ns", SqlType::Int64),
        ],
    },
];
