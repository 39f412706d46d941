//! A table of a dataset: rows in memory, and the files that have the rows before.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::view::export::dataset_table::ColumnType;
use crate::view::export::parquet::column::ParquetColumn;
use crate::view::export::parquet::column_spec::ColumnSpec;
use crate::view::export::parquet::packed_chunk::{ChunkPacker, LEVEL};
use crate::view::export::parquet::part_file::PartFile;

/// Rows of a row group, at most.
const ROWS: usize = 1 << 17;
/// Bytes in memory of a row group, about.
const GROUP_BYTES: usize = 16 << 20;
/// Row groups of a file, at most: their descriptions are in memory until its end.
const GROUPS: usize = 64;
/// Rows between two looks at what the columns take.
const LOOK: usize = 32;

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
    pub(crate) specs: Vec<ColumnSpec>,
    columns: Vec<ParquetColumn>,
    schema: TypePtr,
    properties: WriterPropertiesPtr,
    writer: Option<SerializedFileWriter<PartFile>>,
    /// Files so far.
    parts: usize,
    /// Rows in memory.
    rows: usize,
    /// Bytes of these rows at the last look.
    size: usize,
    /// Bytes in memory at the last look: buffers are used again by the next row group, or they would grow anew in each.
    memory: usize,
    /// Rows that were put.
    pub(crate) total: u64,
}

impl ParquetTable {
    /// A table without rows. `metadata` is in each of its files.
    pub(crate) fn new(
        place: TablePlace,
        specs: Vec<ColumnSpec>,
        metadata: &[(&str, String)],
    ) -> io::Result<Self> {
        let fields = specs.iter().map(ColumnSpec::schema);
        let fields = fields
            .collect::<Result<Vec<_>, _>>()
            .map_err(io::Error::other)?;
        let schema = Type::group_type_builder("row").with_fields(fields).build();
        Ok(Self {
            columns: specs.iter().map(ParquetColumn::numbered).collect(),
            schema: Arc::new(schema.map_err(io::Error::other)?),
            properties: Arc::new(properties(&specs, metadata)?),
            place,
            specs,
            writer: None,
            parts: 0,
            rows: 0,
            size: 0,
            memory: 0,
            total: 0,
        })
    }

    /// The columns of the next row, each of which takes one value.
    #[inline]
    pub(crate) fn row(&mut self) -> &mut [ParquetColumn] {
        &mut self.columns
    }

    /// Ends the row; columns that took no value are null. Gives by how much the memory has changed, bytes.
    #[inline]
    pub(crate) fn end_row(&mut self) -> io::Result<isize> {
        self.rows += 1;
        self.total += 1;
        for column in &mut self.columns {
            column.pad(self.rows);
        }
        if !self.rows.is_multiple_of(LOOK) {
            return Ok(0);
        }
        let before = self.memory;
        self.size = self.columns.iter().map(ParquetColumn::size).sum();
        self.memory = self.columns.iter().map(ParquetColumn::memory).sum();
        let change = self.memory.cast_signed() - before.cast_signed();
        if self.rows >= ROWS || self.size >= GROUP_BYTES {
            self.flush()?;
        }
        Ok(change)
    }

    /// Bytes in memory.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    /// Writes the rows in memory as a row group.
    fn flush(&mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group()?;
            self.rows = 0;
        }
        self.size = 0;
        let written = self.writer.as_ref();
        if written.is_some_and(|writer| writer.flushed_row_groups().len() >= GROUPS) {
            self.end_file()?;
        }
        Ok(())
    }

    /// Writes the rows in memory, and frees it.
    pub(crate) fn free(&mut self) -> io::Result<()> {
        self.flush()?;
        self.columns = self.specs.iter().map(ParquetColumn::numbered).collect();
        self.memory = 0;
        Ok(())
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.next_file()?,
        };
        let columns = self.columns.iter_mut().zip(&self.specs);
        let mut packer = ChunkPacker::new()?;
        let write = || -> Result<(), ParquetError> {
            let descriptions = writer.schema_descr().columns().to_vec();
            let mut group = writer.next_row_group()?;
            for ((column, spec), description) in columns.zip(descriptions) {
                let taken = column.take();
                match packer.pack(&taken, spec.kind, description)? {
                    Some(chunk) => group.append_column(&chunk.bytes, chunk.close)?,
                    None => {
                        if let Some(mut next) = group.next_column()? {
                            taken.write(next.untyped())?;
                            next.close()?;
                        }
                    }
                }
                column.reuse(taken);
            }
            group.close()?;
            Ok(())
        };
        write().map_err(io_error)?;
        writer.flush()?;
        self.writer = Some(writer);
        Ok(())
    }

    fn next_file(&mut self) -> io::Result<SerializedFileWriter<PartFile>> {
        let name = format!("{}-{}.parquet", self.place.stem, self.parts);
        self.parts += 1;
        let file = PartFile::create(self.place.folder.join(name))?;
        let (schema, properties) = (Arc::clone(&self.schema), Arc::clone(&self.properties));
        SerializedFileWriter::new(file, schema, properties).map_err(io_error)
    }

    fn end_file(&mut self) -> io::Result<()> {
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
        self.flush()?;
        self.end_file()
    }

    /// As [`finish`](Self::finish), of a table that has a file even if it has no row.
    pub(crate) fn finish_always(&mut self) -> io::Result<()> {
        self.flush()?;
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
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Most chunks have one page, of which it says nothing more.
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(metadata.collect()));
    let is_integer = |kind| {
        matches!(
            kind,
            ColumnType::Int32 | ColumnType::Int64 | ColumnType::UInt64
        )
    };
    for spec in specs.iter().filter(|spec| is_integer(spec.kind)) {
        // Those of few different values are not written by the crate.
        let path = ColumnPath::new(vec![spec.name.clone()]);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
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
