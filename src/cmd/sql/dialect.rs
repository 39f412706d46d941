//! What differs between engines.

use super::columns::{DatasetTable, SqlType};
#[cfg(feature = "parquet")]
use super::folder_value::unescaped;
#[cfg(feature = "parquet")]
use super::probe_columns::ProbeColumn;
use crate::cli::SqlEngine;

impl SqlEngine {
    /// An identifier.
    pub(super) fn identifier(self, name: &str) -> String {
        match self {
            Self::Duckdb | Self::Datafusion => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Spark | Self::Clickhouse => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// A text.
    pub(super) fn literal(self, text: &str) -> String {
        match self {
            Self::Duckdb | Self::Datafusion => format!("'{}'", text.replace('\'', "''")),
            Self::Spark | Self::Clickhouse => {
                format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
            }
        }
    }

    /// The least value of an integer column that `percent` of all values, 1 to 99, do not exceed; without values null.
    pub(super) fn percentile(self, percent: u8, column: &str) -> String {
        match self {
            Self::Duckdb => format!("quantile_disc({column}, 0.{percent:02})"),
            Self::Spark => format!(
                "CAST(percentile_disc(0.{percent:02}) WITHIN GROUP (ORDER BY {column}) AS BIGINT)"
            ),
            // Its own functions estimate, or interpolate between two values.
            Self::Datafusion => format!(
                "array_element(array_agg({column} ORDER BY {column}) FILTER (WHERE {column} IS NOT NULL), (count({column}) * {percent} + 99) / 100)"
            ),
            // Of its own functions, those for exact values take the next value where the share is a whole number of them.
            Self::Clickhouse => format!(
                "arrayElementOrNull(arraySort(groupArray({column})), intDiv(count({column}) * {percent} + 99, 100))"
            ),
        }
    }

    /// The frames of a stack in one text, the outermost first.
    pub(super) const fn folded(self) -> &'static str {
        match self {
            Self::Duckdb | Self::Datafusion => "string_agg(frame, ';' ORDER BY depth DESC)",
            Self::Spark => {
                "array_join(transform(array_sort(collect_list(struct(-depth AS place, frame))), x -> x.frame), ';')"
            }
            Self::Clickhouse => {
                "arrayStringConcat(arrayMap(x -> x.2, arrayReverseSort(groupArray((depth, assumeNotNull(frame))))), ';')"
            }
        }
    }

    /// How a view begins.
    pub(super) fn view(self, name: &str) -> String {
        let name = self.identifier(name);
        match self {
            Self::Spark => format!("CREATE OR REPLACE TEMPORARY VIEW {name}"),
            _ => format!("CREATE OR REPLACE VIEW {name} AS"),
        }
    }

    const fn kind(self, kind: SqlType) -> &'static str {
        match (self, kind) {
            (Self::Clickhouse, SqlType::Int32) => "Nullable(Int32)",
            (Self::Clickhouse, SqlType::Int64) => "Nullable(Int64)",
            (Self::Clickhouse, SqlType::UInt64) => "Nullable(UInt64)",
            (Self::Clickhouse, SqlType::Bool) => "Nullable(Bool)",
            (Self::Clickhouse, SqlType::Text) => "Nullable(String)",
            #[cfg(feature = "parquet")]
            (_, SqlType::Decimal) => "DECIMAL(20,0)",
            #[cfg(feature = "parquet")]
            (_, SqlType::Float64) => "DOUBLE",
            #[cfg(feature = "parquet")]
            (_, SqlType::Binary) => "BYTEA",
            (_, SqlType::Int32) => "INT",
            (_, SqlType::Int64) => "BIGINT",
            (Self::Spark, SqlType::UInt64) => "DECIMAL(20,0)",
            (Self::Datafusion, SqlType::UInt64) => "BIGINT UNSIGNED",
            (_, SqlType::UInt64) => "UBIGINT",
            (_, SqlType::Bool) => "BOOLEAN",
            (Self::Spark, SqlType::Text) => "STRING",
            (_, SqlType::Text) => "VARCHAR",
        }
    }

    fn columns(self, table: &DatasetTable, with_folders: bool) -> String {
        let columns = table.columns.iter().copied();
        let folders = table.folders.iter().map(|name| (*name, SqlType::Text));
        let folders = folders.filter(|_| with_folders);
        let columns = columns.chain(folders).map(|(name, kind)| {
            let name = self.identifier(name);
            format!("{name} {}", self.kind(kind))
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    fn names(self, names: impl Iterator<Item = &'static str>) -> String {
        let names = names.map(|name| self.identifier(name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The columns of folders, out of the path.
    fn of_path(self, folders: &[&str]) -> String {
        let of = folders.iter().map(|folder| {
            let text = format!("extract(_path, '/{folder}=([^/]*)/')");
            let name = self.identifier(folder);
            format!("decodeURLComponent(nullIf({text}, '__HIVE_DEFAULT_PARTITION__')) AS {name}")
        });
        of.collect::<Vec<_>>().join(", ")
    }

    /// ClickHouse's function that reads files.
    fn function(address: &str) -> &'static str {
        match address.contains("://") {
            true => "s3",
            false => "file",
        }
    }

    /// Makes a view of the columns that all files of a table have.
    pub(super) fn table(self, dataset: &str, table: &DatasetTable) -> String {
        let folder = format!("{dataset}/table={}", table.name);
        let all = self.literal(&format!("{folder}/**/*.parquet"));
        let columns = table.columns.iter().map(|(name, _)| *name);
        match self {
            Self::Duckdb => {
                let names = self.names(columns.chain(table.folders.iter().copied()));
                let view = self.view(table.name);
                format!("{view}\nSELECT {names}\nFROM {};", duckdb(&all))
            }
            Self::Spark => {
                let columns = self.columns(table, true);
                let folder = self.literal(&folder);
                let view = self.view(table.name);
                format!("{view} ({columns})\nUSING parquet OPTIONS (path {folder});")
            }
            Self::Datafusion => {
                let name = self.identifier(table.name);
                let columns = self.columns(table, true);
                // It takes quotes for a part of these names.
                let folders = table.folders.join(", ");
                let folder = self.literal(&format!("{folder}/"));
                format!(
                    "CREATE EXTERNAL TABLE IF NOT EXISTS {name} ({columns})\n\
                     STORED AS PARQUET PARTITIONED BY ({folders}) LOCATION {folder};"
                )
            }
            Self::Clickhouse => {
                let view = self.view(table.name);
                let names = self.names(columns);
                let of_path = self.of_path(table.folders);
                let structure = self.literal(&self.columns(table, false));
                let function = Self::function(dataset);
                format!(
                    "{view}\nSELECT {names}, {of_path}\nFROM {function}({all}, 'Parquet', {structure});"
                )
            }
        }
    }

    /// Makes a view of all columns of a probe or of a kind of span; `folder` is its folders in all hosts and days. `None` if the engine does it by
    /// columns.
    pub(super) fn probe(
        self,
        dataset: &str,
        table: &DatasetTable,
        name: &str,
        folder: &str,
    ) -> Option<String> {
        let base = format!("{dataset}/table={}", table.name);
        let folder = format!("{base}/host=*/date=*/{folder}");
        let all = self.literal(&format!("{folder}/*.parquet"));
        let view = self.view(name);
        Some(match self {
            Self::Duckdb => format!("{view}\nSELECT * FROM {};", duckdb(&all)),
            Self::Spark => {
                let (folder, base) = (self.literal(&folder), self.literal(&base));
                format!(
                    "{view}\nUSING parquet OPTIONS (path {folder}, basePath {base}, mergeSchema 'true');"
                )
            }
            Self::Clickhouse => {
                let function = Self::function(dataset);
                format!("{view}\nSELECT * FROM {function}({all}, 'Parquet');")
            }
            Self::Datafusion => return None,
        })
    }
}

/// DataFusion's view of all columns of a probe or of a kind of span. It finds no files by a pattern in the names of folders, and takes no columns of
/// different types together: so this is a table of these columns in all files, of which a view is those of the probe. By the condition, the engine
/// opens no others.
#[cfg(feature = "parquet")]
pub(super) fn datafusion_probe(
    dataset: &str,
    table: &DatasetTable,
    name: &str,
    folder: &str,
    columns: &[ProbeColumn],
) -> Option<String> {
    let engine = SqlEngine::Datafusion;
    let mut conditions = Vec::new();
    for part in folder.split('/') {
        let (key, value) = part.split_once('=')?;
        let value = engine.literal(&unescaped(value)?);
        conditions.push(format!("{} = {value}", engine.identifier(key)));
    }
    let columns = columns
        .iter()
        .map(|column| (&*column.name, engine.kind(column.kind)));
    let folders = table
        .folders
        .iter()
        .map(|name| (*name, engine.kind(SqlType::Text)));
    let columns = columns.chain(folders);
    let columns = columns.map(|(name, kind)| format!("{} {kind}", engine.identifier(name)));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let files = engine.identifier(&format!("{name}__files"));
    let location = engine.literal(&format!("{dataset}/table={}/", table.name));
    Some(format!(
        "CREATE EXTERNAL TABLE IF NOT EXISTS {files} ({columns})\n\
         STORED AS PARQUET PARTITIONED BY ({}) LOCATION {location};\n\n\
         {}\nSELECT * FROM {files} WHERE {};",
        table.folders.join(", "),
        engine.view(name),
        conditions.join(" AND ")
    ))
}

fn duckdb(files: &str) -> String {
    format!(
        "read_parquet({files}, hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
    )
}
