//! Columns in Parquet's schema.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use crate::view::export::dataset_table::{ColumnType, DatasetTable};

/// Name and type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    /// Whether its numbers are mostly different and close to those before, as times are.
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

    /// The columns that a table always has. Those of times are steady.
    pub(crate) fn of_table(table: &DatasetTable) -> Vec<Self> {
        let columns = table.columns.iter().map(|(name, kind)| Self {
            is_steady: *kind == ColumnType::Int64 && name.ends_with("_ns"),
            ..Self::new(*name, *kind)
        });
        columns.collect()
    }

    /// The column in Parquet's schema.
    pub(crate) fn schema(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self.kind {
            ColumnType::Int32 => (PhysicalType::INT32, None),
            ColumnType::Int64 => (PhysicalType::INT64, None),
            ColumnType::UInt64 => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            ColumnType::Float64 => (PhysicalType::DOUBLE, None),
            ColumnType::Bool => (PhysicalType::BOOLEAN, None),
            ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Binary => (PhysicalType::BYTE_ARRAY, None),
        };
        let column = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    }
}
