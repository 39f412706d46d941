//! Columns in Arrow's schema.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::dataset_table::{ColumnType, DatasetTable};

/// Name and type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    /// Whether its numbers are close to those before, as times are, or always the same.
    pub(crate) is_steady: bool,
}

impl ColumnSpec {
    pub(crate) fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Self {
            name: name.into(),
            kind,
            is_steady: false,
        }
    }

    /// The columns that a table always has. Those of times and of the trace are steady.
    pub(crate) fn of_table(table: &DatasetTable) -> Vec<Self> {
        let columns = table.columns.iter().map(|(name, kind)| Self {
            is_steady: *kind == ColumnType::Int64 && (name.ends_with("_ns") || *name == "trace_id"),
            ..Self::new(*name, *kind)
        });
        columns.collect()
    }

    /// The schema of columns. Every column may be null.
    pub(crate) fn schema(specs: &[Self]) -> SchemaRef {
        let fields = specs.iter().map(|spec| {
            let kind = match spec.kind {
                ColumnType::Int32 => DataType::Int32,
                ColumnType::Int64 => DataType::Int64,
                ColumnType::UInt64 => DataType::UInt64,
                ColumnType::Float64 => DataType::Float64,
                ColumnType::Bool => DataType::Boolean,
                ColumnType::Text => DataType::Utf8,
                ColumnType::Binary => DataType::Binary,
            };
            Field::new(&spec.name, kind, true)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}
