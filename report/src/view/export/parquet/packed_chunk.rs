//! Column chunks that are encoded here.
//!
//! The writers of crate `parquet` look at each value of each row: they take a level for it, hash it, and compare it with the smallest and the
//! greatest. That was half of the time of an export, mostly for columns whose value hardly changes. Here equal neighbours are one
//! run, and only different values are looked at.
//!
//! Equal neighbours of a column are one run (`runs.rs`), different values have numbers (`distinct.rs`), and pages are
//! written from runs (`hybrid.rs`). The file, its schema, its metadata and all other columns are the crate's. It takes
//! half the CPU time and half the bytes. Tests read all values with DuckDB, pyarrow and polars, and ask DuckDB.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

use crate::view::export::dataset_table::ColumnType;
use crate::view::export::parquet::column_values::{BytesList, ColumnValues};
use crate::view::export::parquet::hybrid::{HybridEncoder, bits};
use crate::view::export::parquet::runs::{NULL, Run, Runs};
use crate::view::export::parquet::taken_column::TakenColumn;
use crate::view::export::parquet::text_bounds;

/// Level of zstd, of all columns.
pub(crate) const LEVEL: i32 = 1;

/// Bytes of texts in a page, about: readers inflate a page at once, and the memory of one is used again for the next.
const PAGE_BYTES: usize = 1 << 20;

/// A column chunk as it is in the file.
pub(crate) struct PackedChunk {
    pub(crate) bytes: Bytes,
    pub(crate) close: ColumnCloseResult,
}

/// Encodes column chunks.
pub(crate) struct ChunkPacker {
    zstd: Compressor<'static>,
}

impl ChunkPacker {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            zstd: Compressor::new(LEVEL)?,
        })
    }

    /// Encodes a column, unless the crate does it: integers that are all kept, floats and booleans.
    pub(crate) fn pack(
        &mut self,
        column: &TakenColumn,
        kind: ColumnType,
        descr: ColumnDescPtr,
    ) -> Result<Option<PackedChunk>, ParquetError> {
        let pages = match &column.values {
            // Without a value there is no dictionary.
            values if column.numbered && values.len() == 0 => {
                vec![self.data_page(&levels(&column.rows), &column.rows, Encoding::PLAIN)?]
            }
            ColumnValues::Bytes(values) if column.numbered => {
                self.numbered(&plain_bytes(values), column)?
            }
            ColumnValues::Int32(values) if column.numbered => {
                self.numbered(&plain(values, |value| value.to_le_bytes()), column)?
            }
            ColumnValues::Int64(values) if column.numbered => {
                self.numbered(&plain(values, |value| value.to_le_bytes()), column)?
            }
            ColumnValues::Bytes(values) => self.plain_pages(values, &column.rows)?,
            _ => return Ok(None),
        };
        let statistics = statistics(&column.values, kind, column.rows.nulls() as u64);
        chunk(pages, column.rows.rows(), statistics, descr).map(Some)
    }

    /// A page of different values, and one of the numbers of rows.
    fn numbered(
        &mut self,
        dictionary: &[u8],
        column: &TakenColumn,
    ) -> Result<Vec<CompressedPage>, ParquetError> {
        let count = column.values.len();
        let dictionary = self.page(dictionary, |buf| Page::DictionaryPage {
            buf,
            num_values: count as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        })?;
        let numbers = numbered_page(&column.rows, count);
        let numbers = self.data_page(&numbers, &column.rows, Encoding::RLE_DICTIONARY)?;
        Ok(vec![dictionary, numbers])
    }

    /// Pages of all texts.
    fn plain_pages(
        &mut self,
        values: &BytesList,
        rows: &Runs,
    ) -> Result<Vec<CompressedPage>, ParquetError> {
        let mut pages = Vec::new();
        let (mut plain, mut of_page) = (Vec::new(), Runs::default());
        let mut values = values.iter();
        for run in rows.iter() {
            if run.number == NULL {
                of_page.put(run);
                continue;
            }
            for value in values.by_ref().take(run.count as usize) {
                put_plain(&mut plain, value);
                of_page.push(run.number);
                if plain.len() >= PAGE_BYTES {
                    pages.push(self.plain_page(&plain, &of_page)?);
                    plain.clear();
                    of_page.clear();
                }
            }
        }
        if pages.is_empty() || of_page.rows() > 0 {
            pages.push(self.plain_page(&plain, &of_page)?);
        }
        Ok(pages)
    }

    fn plain_page(&mut self, plain: &[u8], rows: &Runs) -> Result<CompressedPage, ParquetError> {
        let mut data = levels(rows);
        data.extend_from_slice(plain);
        self.data_page(&data, rows, Encoding::PLAIN)
    }

    fn data_page(
        &mut self,
        data: &[u8],
        rows: &Runs,
        encoding: Encoding,
    ) -> Result<CompressedPage, ParquetError> {
        self.page(data, |buf| Page::DataPage {
            buf,
            num_values: rows.rows() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })
    }

    fn page(
        &mut self,
        data: &[u8],
        page: impl FnOnce(Bytes) -> Page,
    ) -> Result<CompressedPage, ParquetError> {
        let compressed = self.zstd.compress(data)?;
        Ok(CompressedPage::new(page(compressed.into()), data.len()))
    }
}

/// Writes pages one after the other, and what is said about them.
fn chunk(
    pages: Vec<CompressedPage>,
    rows: usize,
    statistics: Statistics,
    descr: ColumnDescPtr,
) -> Result<PackedChunk, ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = SerializedPageWriter::new(&mut sink);
    let (mut compressed, mut uncompressed) = (0, 0);
    let (mut dictionary, mut data) = (None, None);
    let mut encodings: Vec<PageEncodingStats> = Vec::new();
    for page in pages {
        match encodings.last_mut() {
            Some(last) if last.page_type == page.page_type() => last.count += 1,
            _ => encodings.push(PageEncodingStats {
                page_type: page.page_type(),
                encoding: page.encoding(),
                count: 1,
            }),
        }
        let spec = writer.write_page(page)?;
        compressed += spec.compressed_size as i64;
        uncompressed += spec.uncompressed_size as i64;
        let first = match spec.page_type {
            PageType::DICTIONARY_PAGE => &mut dictionary,
            _ => &mut data,
        };
        first.get_or_insert(spec.offset as i64);
    }
    writer.close()?;
    let of_pages = encodings.iter().map(|page| page.encoding);
    let metadata = ColumnChunkMetaData::builder(descr)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_encodings([Encoding::RLE].into_iter().chain(of_pages).collect())
        .set_page_encoding_stats(encodings)
        .set_total_compressed_size(compressed)
        .set_total_uncompressed_size(uncompressed)
        .set_num_values(rows as i64)
        .set_dictionary_page_offset(dictionary)
        .set_data_page_offset(data.unwrap_or(0))
        .set_statistics(statistics)
        .build()?;
    Ok(PackedChunk {
        bytes: sink.into_inner()?.into(),
        close: ColumnCloseResult {
            bytes_written: compressed as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        },
    })
}

/// Of each row whether it has a value, with the length before it.
fn levels(rows: &Runs) -> Vec<u8> {
    let mut page = vec![0; 4];
    let mut encoder = HybridEncoder::new(&mut page, 1);
    for Run { number, count } in rows.iter() {
        let number = u32::from(number != NULL);
        encoder.put(Run { number, count });
    }
    encoder.finish();
    let length = page.len() as u32 - 4;
    if let Some(place) = page.first_chunk_mut::<4>() {
        *place = length.to_le_bytes();
    }
    page
}

/// A data page of the numbers of so many different values.
fn numbered_page(rows: &Runs, count: usize) -> Vec<u8> {
    let mut page = levels(rows);
    let most = count as u32 - 1;
    page.push(bits(most) as u8);
    let mut encoder = HybridEncoder::new(&mut page, most);
    let numbers = rows.iter().filter(|run| run.number != NULL);
    numbers.for_each(|run| encoder.put(run));
    encoder.finish();
    page
}

fn plain<T: Copy, const SIZE: usize>(values: &[T], bytes: impl Fn(T) -> [u8; SIZE]) -> Vec<u8> {
    values.iter().flat_map(|value| bytes(*value)).collect()
}

fn plain_bytes(values: &BytesList) -> Vec<u8> {
    let mut page = Vec::new();
    values.iter().for_each(|value| put_plain(&mut page, value));
    page
}

/// Appends the length and the bytes.
#[inline]
fn put_plain(page: &mut Vec<u8>, value: &[u8]) {
    page.extend_from_slice(&(value.len() as u32).to_le_bytes());
    page.extend_from_slice(value);
}

fn statistics(values: &ColumnValues, kind: ColumnType, of_nulls: u64) -> Statistics {
    let nulls = Some(of_nulls);
    match values {
        ColumnValues::Int32(values) => {
            let (least, most) = (values.iter().min(), values.iter().max());
            Statistics::int32(least.copied(), most.copied(), None, nulls, false)
        }
        ColumnValues::Int64(values) if kind == ColumnType::UInt64 => {
            let least = values.iter().min_by_key(|value| value.cast_unsigned());
            let most = values.iter().max_by_key(|value| value.cast_unsigned());
            Statistics::int64(least.copied(), most.copied(), None, nulls, false)
        }
        ColumnValues::Int64(values) => {
            let (least, most) = (values.iter().min(), values.iter().max());
            Statistics::int64(least.copied(), most.copied(), None, nulls, false)
        }
        ColumnValues::Bytes(values) => text_bounds::statistics(values, of_nulls),
        ColumnValues::Float64(_) => Statistics::double(None, None, None, nulls, false),
        ColumnValues::Bool(_) => Statistics::boolean(None, None, None, nulls, false),
    }
}
