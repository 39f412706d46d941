//! All values of a column, as they are written.

use parquet::column::writer::ColumnWriter;
use parquet::errors::ParquetError;

use crate::view::export::parquet::column_values::ColumnValues;
use crate::view::export::parquet::runs::Runs;

/// All values of a column.
pub(crate) struct TakenColumn {
    pub(crate) values: ColumnValues,
    /// Of each row the number of its value; 0 if all values are there.
    pub(crate) rows: Runs,
    /// Whether rows have numbers of different values; else all values are there.
    pub(crate) numbered: bool,
}

impl TakenColumn {
    /// Hands all values to a writer.
    pub(crate) fn write(&self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.rows.levels();
        let levels = Some(levels.as_slice());
        match (&self.values, writer) {
            (ColumnValues::Int32(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)
            }
            (ColumnValues::Int64(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)
            }
            (ColumnValues::Float64(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)
            }
            (ColumnValues::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)
            }
            _ => Err(ParquetError::General("a column of another type".to_owned())),
        }?;
        Ok(())
    }
}
