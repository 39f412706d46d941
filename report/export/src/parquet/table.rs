//! A table of a dataset: rows in memory, and the files that have the rows before.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::dataset_table::ColumnType;
use crate::parquet::batch_rows::{BatchLimits, BatchRows};
use crate::parquet::column::{BatchColumn, ColumnCell, ColumnSpec, put};

/// Level of zstd, of all columns.
const LEVEL: i32 = 1;
/// Rows of a row group, at most.
const ROWS: usize = 1 << 17;
/// Bytes in memory of a row group, about.
const GROUP_BYTES: usize = 16 << 20;
/// Row groups of a file, about: their descriptions are in memory until its end.
const GROUPS: usize = 64;
/// Maximum bytes of the dictionary of a column of numbers: with a larger one the column is hardly smaller than without.
const DICTIONARY_BYTES: usize = 64 << 10;
/// Rows that are encoded at once: so many fit in the caches of a CPU.
const BATCH: BatchLimits = BatchLimits {
    rows: 1 << 13,
    bytes: 2 << 20,
};

/// Where a table is.
#[derive(Clone, Debug)]
pub(crate) struct TablePlace {
    pub(crate) folder: PathBuf,
    /// How the names of its files begin.
    pub(crate) stem: String,
}

/// A table.
#[derive(Debug)]
pub(crate) struct ParquetTable {
    place: TablePlace,
    rows: BatchRows,
    properties: WriterProperties,
    writer: Option<ArrowWriter<PartFile>>,
    /// Files so far.
    parts: usize,
    /// Bytes in memory of encoded rows.
    encoded: usize,
    /// Bytes in memory at the last look.
    memory: usize,
    /// Rows that were put.
    pub(crate) total: u64,
}

impl ParquetTable {
    /// A table without rows. `metadata` is in each of its files.
    pub(crate) fn new(
        place: TablePlace,
        specs: &[ColumnSpec],
        metadata: &[(&str, String)],
    ) -> io::Result<Self> {
        Ok(Self {
            place,
            rows: BatchRows::new(specs, BATCH),
            properties: properties(specs, metadata)?,
            writer: None,
            parts: 0,
            encoded: 0,
            memory: 0,
            total: 0,
        })
    }

    /// The columns of the next row, each of which takes one value.
    #[inline]
    pub(crate) fn row(&mut self) -> &mut [BatchColumn] {
        self.rows.row()
    }

    /// Puts a whole row.
    pub(crate) fn put_row<'c>(
        &mut self,
        cells: impl IntoIterator<Item = ColumnCell<'c>>,
    ) -> io::Result<isize> {
        put(self.row(), cells);
        self.end_row()
    }

    /// Ends the row; columns that took no value are null. Gives by how much the memory has changed, bytes.
    #[inline]
    pub(crate) fn end_row(&mut self) -> io::Result<isize> {
        self.total += 1;
        if self.rows.end_row() {
            self.encode()?;
        }
        let before = self.memory;
        self.memory = self.rows.size() + self.encoded;
        Ok(self.memory.cast_signed() - before.cast_signed())
    }

    /// Bytes in memory.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    /// Hands the rows over to the writer, which ends a row group that is complete.
    fn encode(&mut self) -> io::Result<()> {
        let Some(batch) = self.rows.take()? else {
            return Ok(());
        };
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.next_file()?,
        };
        writer.write(&batch).map_err(io_error)?;
        if writer.memory_size() >= GROUP_BYTES {
            writer.flush().map_err(io_error)?;
        }
        self.put_back(writer)
    }

    /// Puts the writer back after rows were written, unless its file has all row groups that it may have.
    fn put_back(&mut self, mut writer: ArrowWriter<PartFile>) -> io::Result<()> {
        writer.sync()?;
        self.encoded = writer.memory_size();
        let is_full = writer.flushed_row_groups().len() >= GROUPS;
        self.writer = Some(writer);
        match is_full {
            true => self.end_file(),
            false => Ok(()),
        }
    }

    /// Writes the rows in memory as a row group.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.encode()?;
        if let Some(mut writer) = self.writer.take() {
            writer.flush().map_err(io_error)?;
            self.put_back(writer)?;
        }
        self.memory = 0;
        Ok(())
    }

    fn next_file(&mut self) -> io::Result<ArrowWriter<PartFile>> {
        let name = format!("{}-{}.parquet", self.place.stem, self.parts);
        self.parts += 1;
        let file = PartFile::create(self.place.folder.join(name))?;
        let options = ArrowWriterOptions::new()
            .with_properties(self.properties.clone())
            .with_skip_arrow_metadata(true)
            .with_schema_root("row".to_owned());
        let schema = Arc::clone(self.rows.schema());
        ArrowWriter::try_new_with_options(file, schema, options).map_err(io_error)
    }

    /// Ends the file, with the rows that were passed on.
    fn end_file(&mut self) -> io::Result<()> {
        self.encoded = 0;
        match self.writer.take() {
            Some(mut writer) => {
                writer.finish().map_err(io_error)?;
                writer.inner_mut().flush()
            }
            None => Ok(()),
        }
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.encode()?;
        self.end_file()
    }

    /// As [`finish`](Self::finish), of a table that has a file even if it has no row.
    pub(crate) fn finish_always(&mut self) -> io::Result<()> {
        self.encode()?;
        if self.parts == 0 {
            self.writer = Some(self.next_file()?);
        }
        self.end_file()
    }
}

fn properties(specs: &[ColumnSpec], metadata: &[(&str, String)]) -> io::Result<WriterProperties> {
    let level = ZstdLevel::try_new(LEVEL).map_err(io::Error::other)?;
    let metadata = metadata
        .iter()
        .map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(concat!("usdtrec ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_max_row_group_row_count(Some(ROWS))
        // A column that has compressed a page keeps the state of zstd, some hundred KB, until its row group ends.
        .set_data_page_row_count_limit(ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // It would say only where pages are.
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(metadata.collect()));
    for spec in specs {
        let path = ColumnPath::new(vec![spec.name.clone()]);
        properties = match spec.kind {
            ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt64 => properties
                .set_column_dictionary_enabled(path.clone(), !spec.is_steady)
                .set_column_dictionary_page_size_limit(path.clone(), DICTIONARY_BYTES)
                // Without a dictionary, or after too many different ones.
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            ColumnType::Float64 => {
                properties.set_column_dictionary_page_size_limit(path, DICTIONARY_BYTES)
            }
            ColumnType::Bool | ColumnType::Text | ColumnType::Binary => properties,
        };
    }
    Ok(properties.build())
}

/// The error of the file, if it is one.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

/// Bytes that are written at once.
const WRITE: usize = 1 << 20;

/// A file that is open only while something is written to it: a dataset may have more files than a process may have open.
#[derive(Debug)]
pub(crate) struct PartFile {
    path: PathBuf,
    waiting: Vec<u8>,
}

impl PartFile {
    /// Makes an empty file, and the folders that it is in.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        File::create_new(&path)?;
        Ok(Self {
            path,
            waiting: Vec::new(),
        })
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= WRITE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        match waiting.is_empty() {
            true => Ok(()),
            false => File::options()
                .append(true)
                .open(&self.path)?
                .write_all(&waiting),
        }
    }
}
