//! The columns of a probe or of a kind of span in all hosts and days.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_report::export::parquet::{ColumnType, FileColumn, file_columns};

use super::columns::SqlType;

/// A column in the order of the first file that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProbeColumn {
    pub(super) name: String,
    pub(super) kind: SqlType,
}

/// The columns of all files of folders, each of a type that holds the values of all. Columns of types that datasets do not have are left out.
pub(super) fn columns_of(folders: &[PathBuf]) -> anyhow::Result<Vec<ProbeColumn>> {
    let mut all: Vec<ProbeColumn> = Vec::new();
    for folder in folders {
        for file in files(folder)? {
            let columns = file_columns(&file)
                .with_context(|| format!("cannot read the columns of {}", shown(&file)))?;
            for FileColumn { name, kind } in columns {
                let Some(kind) = kind.map(sql_type) else {
                    continue;
                };
                match all.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.kind = wider(known.kind, kind),
                    None => all.push(ProbeColumn { name, kind }),
                }
            }
        }
    }
    Ok(all)
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", shown(folder));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "parquet")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

const fn sql_type(kind: ColumnType) -> SqlType {
    match kind {
        ColumnType::Int32 => SqlType::Int32,
        ColumnType::Int64 => SqlType::Int64,
        ColumnType::UInt64 => SqlType::UInt64,
        ColumnType::Float64 => SqlType::Float64,
        ColumnType::Bool => SqlType::Bool,
        ColumnType::Text => SqlType::Text,
        ColumnType::Binary => SqlType::Binary,
    }
}

/// The type that holds the values of both.
fn wider(one: SqlType, other: SqlType) -> SqlType {
    use SqlType::{Decimal, Int32, Int64, Text, UInt64};
    match (one, other) {
        _ if one == other => one,
        (Int32, Int64) | (Int64, Int32) => Int64,
        (Int32 | Int64 | UInt64 | Decimal, Int32 | Int64 | UInt64 | Decimal) => Decimal,
        _ => Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_hosts_that_differ() {
        use SqlType::{Bool, Decimal, Float64, Int32, Int64, Text, UInt64};
        for (one, other, both) in [
            (Int64, Int64, Int64),
            (Int32, Int64, Int64),
            (Int64, UInt64, Decimal),
            (Decimal, Int32, Decimal),
            (Int64, Float64, Text),
            (Bool, Text, Text),
        ] {
            assert_eq!((wider(one, other), wider(other, one)), (both, both));
        }
    }
}
