//! Names and types of columns.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

/// Type of a column. Every column may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
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

/// Name and type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    /// Whether its numbers are mostly different and close to those before, as times are.
    pub(crate) is_steady: bool,
}

impl ColumnType {
    /// The name of the type in documents and in the table `columns`.
    pub(crate) const fn name(self) -> &'static str {
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

impl ColumnSpec {
    pub(crate) fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Self {
            name: name.into(),
            kind,
            is_steady: false,
        }
    }

    /// A column of times.
    pub(crate) fn steady(name: impl Into<String>) -> Self {
        Self {
            is_steady: true,
            ..Self::new(name, ColumnType::Int64)
        }
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
