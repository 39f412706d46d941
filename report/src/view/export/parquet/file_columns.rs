//! The columns that a file of a dataset has.

use std::fs::File;
use std::io;
use std::path::Path;

use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::view::export::parquet::column_type::ColumnType;

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumn {
    /// Its name.
    pub name: String,
    /// Its type; `None` if it is none that datasets have.
    pub kind: Option<ColumnType>,
}

/// The columns of a file, in its order. Only the end of the file is read.
///
/// # Errors
/// If it cannot be read, or is not of Parquet.
pub fn file_columns(path: &Path) -> io::Result<Vec<FileColumn>> {
    let reader = SerializedFileReader::new(File::open(path)?).map_err(io::Error::other)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns = schema.columns().iter().map(|column| FileColumn {
        name: column.name().to_owned(),
        kind: kind(column),
    });
    Ok(columns.collect())
}

fn kind(column: &ColumnDescriptor) -> Option<ColumnType> {
    let logical = column.logical_type_ref();
    Some(match (column.physical_type(), logical) {
        (PhysicalType::INT32, None) => ColumnType::Int32,
        (PhysicalType::INT64, None) => ColumnType::Int64,
        (PhysicalType::INT64, Some(kind)) if *kind == LogicalType::integer(64, false) => {
            ColumnType::UInt64
        }
        (PhysicalType::DOUBLE, None) => ColumnType::Float64,
        (PhysicalType::BOOLEAN, None) => ColumnType::Bool,
        (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)) => ColumnType::Text,
        (PhysicalType::BYTE_ARRAY, None) => ColumnType::Binary,
        _ => return None,
    })
}
