//! A column of a row group: values in memory until the group is written.
//!
//! Of most columns each different value is in memory once, and rows have numbers; of times, and where most values are different, all values
//! are.

use crate::view::export::dataset_table::ColumnType;
use crate::view::export::parquet::column_spec::ColumnSpec;
use crate::view::export::parquet::column_values::{BytesList, ColumnValues};
use crate::view::export::parquet::distinct::Distinct;
use crate::view::export::parquet::runs::{NULL, Run, Runs};
use crate::view::export::parquet::taken_column::TakenColumn;

/// Values of a column.
#[derive(Debug)]
pub(crate) struct ParquetColumn {
    kind: ColumnType,
    /// Whether different values get numbers as long as they are few.
    numbers: bool,
    values: ColumnValues,
    /// The numbers of different values; `None` if all values are kept.
    distinct: Option<Distinct>,
    /// Of each row the number of its value; 0 if all values are kept.
    rows: Runs,
}

impl ParquetColumn {
    /// A column that keeps all values.
    pub(crate) fn new(kind: ColumnType) -> Self {
        Self {
            kind,
            numbers: false,
            values: ColumnValues::new(kind),
            distinct: None,
            rows: Runs::default(),
        }
    }

    /// A column that keeps different values, if that is expected to take less. Parquet has no numbers for values of type boolean.
    pub(crate) fn numbered(spec: &ColumnSpec) -> Self {
        let numbers =
            !spec.is_steady && !matches!(spec.kind, ColumnType::Float64 | ColumnType::Bool);
        Self {
            numbers,
            distinct: numbers.then(Distinct::default),
            ..Self::new(spec.kind)
        }
    }

    /// Appends null until there are so many rows.
    #[inline]
    pub(crate) fn pad(&mut self, rows: usize) {
        self.rows.pad(rows);
    }

    /// Appends null.
    #[inline]
    pub(crate) fn pad_one(&mut self) {
        self.rows.push(NULL);
    }

    /// Bytes of the values.
    pub(crate) fn size(&self) -> usize {
        let values = match &self.values {
            ColumnValues::Int32(values) => values.len() * 4,
            ColumnValues::Int64(values) => values.len() * 8,
            ColumnValues::Float64(values) => values.len() * 8,
            ColumnValues::Bool(values) => values.len(),
            ColumnValues::Bytes(BytesList { bytes, ends }) => bytes.len() + ends.len() * 8,
        };
        values + self.distinct.as_ref().map_or(0, Distinct::size) + self.rows.size()
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> usize {
        let values = match &self.values {
            ColumnValues::Int32(values) => values.capacity() * 4,
            ColumnValues::Int64(values) => values.capacity() * 8,
            ColumnValues::Float64(values) => values.capacity() * 8,
            ColumnValues::Bool(values) => values.capacity(),
            ColumnValues::Bytes(BytesList { bytes, ends }) => {
                bytes.capacity() + ends.capacity() * 8
            }
        };
        values + self.distinct.as_ref().map_or(0, Distinct::size) + self.rows.memory()
    }

    #[inline]
    pub(crate) fn int32(&mut self, value: Option<i32>) {
        match (&mut self.values, value) {
            (ColumnValues::Int32(values), Some(value)) => {
                let number = keep(values, &mut self.distinct, value);
                self.put(number);
            }
            _ => self.pad_one(),
        }
    }

    #[inline]
    pub(crate) fn int64(&mut self, value: Option<i64>) {
        match (&mut self.values, value) {
            (ColumnValues::Int64(values), Some(value)) => {
                let number = keep(values, &mut self.distinct, value);
                self.put(number);
            }
            _ => self.pad_one(),
        }
    }

    /// An integer of a column of [`ColumnType::UInt64`].
    #[inline]
    pub(crate) fn uint64(&mut self, value: Option<u64>) {
        self.int64(value.map(u64::cast_signed));
    }

    #[inline]
    pub(crate) fn float64(&mut self, value: Option<f64>) {
        match (&mut self.values, value) {
            (ColumnValues::Float64(values), Some(value)) => {
                values.push(value);
                self.rows.push(0);
            }
            _ => self.pad_one(),
        }
    }

    #[inline]
    pub(crate) fn bool(&mut self, value: Option<bool>) {
        match (&mut self.values, value) {
            (ColumnValues::Bool(values), Some(value)) => {
                values.push(value);
                self.rows.push(0);
            }
            _ => self.pad_one(),
        }
    }

    #[inline]
    pub(crate) fn bytes(&mut self, value: Option<&[u8]>) {
        match (&mut self.values, value) {
            (ColumnValues::Bytes(values), Some(value)) => {
                let number = keep_bytes(values, &mut self.distinct, value);
                self.put(number);
            }
            _ => self.pad_one(),
        }
    }

    #[inline]
    pub(crate) fn text(&mut self, value: Option<&str>) {
        self.bytes(value.map(str::as_bytes));
    }

    /// Appends a row with the number of its value. Keeps all values from now on, if too many are different.
    #[inline]
    fn put(&mut self, number: u32) {
        self.rows.push(number);
        let rows = self.rows.rows();
        let distinct = self.distinct.as_ref();
        if distinct.is_some_and(|distinct| distinct.is_too_much(rows)) {
            self.keep_all();
        }
    }

    #[cold]
    fn keep_all(&mut self) {
        self.distinct = None;
        self.values = match std::mem::replace(&mut self.values, ColumnValues::new(self.kind)) {
            ColumnValues::Int32(values) => ColumnValues::Int32(of_rows(&values, &self.rows)),
            ColumnValues::Int64(values) => ColumnValues::Int64(of_rows(&values, &self.rows)),
            ColumnValues::Bytes(values) => {
                let mut all = BytesList::default();
                for Run { number, count } in self.rows.iter() {
                    let value = values.get(number as usize);
                    (0..count).for_each(|_| value.into_iter().for_each(|value| all.push(value)));
                }
                ColumnValues::Bytes(all)
            }
            values => values,
        };
        self.rows.forget_numbers();
    }

    /// Gives all values away.
    pub(crate) fn take(&mut self) -> TakenColumn {
        let empty = self.numbers.then(Distinct::default);
        TakenColumn {
            values: std::mem::replace(&mut self.values, ColumnValues::new(self.kind)),
            rows: std::mem::take(&mut self.rows),
            numbered: std::mem::replace(&mut self.distinct, empty).is_some(),
        }
    }

    /// Takes the memory of values that were given away, to be used again. Where too many were different, they are expected to be so again.
    pub(crate) fn reuse(&mut self, taken: TakenColumn) {
        let TakenColumn {
            mut values,
            mut rows,
            numbered,
        } = taken;
        if !numbered {
            self.distinct = None;
        }
        values.clear();
        rows.clear();
        self.values = values;
        self.rows = rows;
    }
}

/// Keeps an integer, unless it has a number already; the number of its row.
#[inline]
fn keep<T: Copy + PartialEq + Into<i64>>(
    values: &mut Vec<T>,
    distinct: &mut Option<Distinct>,
    value: T,
) -> u32 {
    let Some(distinct) = distinct else {
        values.push(value);
        return 0;
    };
    let last = distinct.last();
    if values.get(last as usize) == Some(&value) {
        return last;
    }
    distinct.number(value.into(), || values.push(value))
}

/// The same of bytes.
#[inline]
fn keep_bytes(values: &mut BytesList, distinct: &mut Option<Distinct>, value: &[u8]) -> u32 {
    let Some(distinct) = distinct else {
        values.push(value);
        return 0;
    };
    let last = distinct.last();
    if values.get(last as usize) == Some(value) {
        return last;
    }
    distinct.number_of_bytes(value, || values.push(value))
}

/// The values of all rows that have one.
fn of_rows<T: Copy>(values: &[T], rows: &Runs) -> Vec<T> {
    let mut all = Vec::new();
    for Run { number, count } in rows.iter() {
        if let Some(&value) = values.get(number as usize) {
            all.resize(all.len() + count as usize, value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_before_and_after_too_many_are_different() {
        for (kind, count) in [
            (ColumnType::Int64, 100_usize),
            (ColumnType::Int64, 5000),
            (ColumnType::Text, 100),
            (ColumnType::Text, 5000),
        ] {
            let mut column = ParquetColumn::numbered(&ColumnSpec::new("", kind));
            let mut plain = ParquetColumn::new(kind);
            for row in 0..20_000 {
                let number = match count {
                    100 => row / 3 % count,
                    _ => row % count,
                };
                let text = number.to_string();
                for column in [&mut column, &mut plain] {
                    match (row % 7, kind) {
                        (0, _) => column.pad_one(),
                        (_, ColumnType::Int64) => column.int64(Some(number as i64)),
                        _ => column.text(Some(&text)),
                    }
                }
            }
            let (taken, plain) = (column.take(), plain.take());
            assert_eq!(taken.numbered, count == 100);
            assert_eq!(taken.rows.levels(), plain.rows.levels());
            match (taken.values, plain.values) {
                (ColumnValues::Int64(values), ColumnValues::Int64(all)) => match count {
                    100 => assert_eq!(of_rows(&values, &taken.rows), all),
                    _ => assert_eq!(values, all),
                },
                (ColumnValues::Bytes(values), ColumnValues::Bytes(all)) => {
                    let numbers = taken.rows.iter().filter(|run| run.number != NULL);
                    let numbers =
                        numbers.flat_map(|run| vec![run.number as usize; run.count as usize]);
                    let numbers = numbers.enumerate().map(|(row, number)| match count {
                        100 => values.get(number).unwrap(),
                        _ => values.get(row).unwrap(),
                    });
                    assert!(numbers.eq(all.iter()));
                }
                _ => unreachable!(),
            }
        }
    }
}
