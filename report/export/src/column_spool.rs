//! Columns that are filled side by side and read one after the other: what is more than some megabytes is in a temporary file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes of all columns that are kept in memory.
const MAX_KEPT: usize = 16 << 20;

/// Columns of bytes.
#[derive(Debug, Default)]
pub(crate) struct ColumnSpool {
    columns: Vec<SpooledColumn>,
    /// Has no name, so that nothing is left when the process is killed. `None` as long as everything fits into memory.
    file: Option<File>,
    /// Bytes in memory.
    kept: usize,
    /// Bytes in the file.
    written: u64,
}

/// A column.
#[derive(Debug, Default)]
struct SpooledColumn {
    /// What is in the file, in order.
    extents: Vec<Extent>,
    /// What comes after it.
    rest: Vec<u8>,
}

/// A run of bytes of the file.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: u64,
    length: u64,
}

impl ColumnSpool {
    /// Adds columns. Returns the number of the first one.
    pub(crate) fn add(&mut self, columns: usize) -> usize {
        let first = self.columns.len();
        self.columns
            .resize_with(first + columns, SpooledColumn::default);
        first
    }

    /// Bytes of all columns.
    pub(crate) const fn len(&self) -> u64 {
        self.written + self.kept as u64
    }

    /// Appends to a column.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub(crate) fn put(&mut self, column: usize, bytes: &[u8]) -> io::Result<()> {
        if let Some(column) = self.columns.get_mut(column) {
            column.rest.extend_from_slice(bytes);
            self.kept += bytes.len();
        }
        if self.kept > MAX_KEPT {
            self.spill()?;
        }
        Ok(())
    }

    /// Writes what is in memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        for column in &mut self.columns {
            if column.rest.is_empty() {
                continue;
            }
            file.write_all(&column.rest)?;
            let length = column.rest.len() as u64;
            column.extents.push(Extent {
                start: self.written,
                length,
            });
            self.written += length;
            column.rest = Vec::new();
        }
        self.kept = 0;
        Ok(())
    }

    /// Copies a column. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// Those of the temporary file and of `out`.
    pub(crate) fn copy(&mut self, column: usize, out: &mut dyn Write) -> io::Result<()> {
        let Some(SpooledColumn { extents, rest }) = self.columns.get(column) else {
            return Ok(());
        };
        if let Some(file) = &mut self.file {
            for Extent { start, length } in extents {
                file.seek(SeekFrom::Start(*start))?;
                let copied = io::copy(&mut Read::by_ref(file).take(*length), out)?;
                if copied != *length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        out.write_all(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_back_whole_and_in_order() {
        let mut spool = ColumnSpool::default();
        assert_eq!(spool.add(2), 0);
        assert_eq!(spool.add(2), 2);
        let mut expected = vec![Vec::new(); 4];
        for number in 0..40_000_usize {
            let column = number * 7 % 3;
            let bytes = number.to_string().repeat(1 + number % 400);
            spool.put(column, bytes.as_bytes()).expect("room");
            expected[column].extend(bytes.bytes());
        }
        let sum: usize = expected.iter().map(Vec::len).sum();
        assert!(sum > 2 * MAX_KEPT && spool.kept <= MAX_KEPT);
        assert_eq!(spool.len(), sum as u64);
        for (column, expected) in expected.iter().enumerate() {
            let mut found = Vec::new();
            spool.copy(column, &mut found).expect("a file");
            assert!(found == *expected, "column {column}");
        }
    }
}
