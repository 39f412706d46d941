//! What differs between engines.

use usdtrec_report::export::{ColumnType, DatasetTable};

use crate::cli::SqlEngine;

impl SqlEngine {
    /// An identifier.
    pub(super) fn identifier(self, name: &str) -> String {
        match self {
            Self::Duckdb => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Spark => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// A string.
    pub(super) fn literal(self, text: &str) -> String {
        match self {
            Self::Duckdb => format!("'{}'", text.replace('\'', "''")),
            Self::Spark => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        }
    }

    /// The path of a dataset as a part of a glob that means this path alone. What a URL names is not known here.
    fn plain_glob(self, path: &str) -> String {
        if path.contains("://") {
            return path.to_owned();
        }
        let escaped = |char: char| match self {
            Self::Duckdb if "*?[{".contains(char) => format!("[{char}]"),
            // `GlobPattern` of Hadoop.
            Self::Spark if "*?[]{}\\".contains(char) => format!("\\{char}"),
            _ => char.to_string(),
        };
        path.chars().map(escaped).collect()
    }

    /// The least value of an integer column that `percent` of all values, 1 to 99, do not exceed; without values null.
    pub(super) fn percentile(self, percent: u8, column: &str) -> String {
        match self {
            Self::Duckdb => format!("quantile_disc({column}, 0.{percent:02})"),
            Self::Spark => format!(
                "CAST(percentile_disc(0.{percent:02}) WITHIN GROUP (ORDER BY {column}) AS BIGINT)"
            ),
        }
    }

    /// The frames of a stack in one string, the outermost first.
    pub(super) const fn folded(self) -> &'static str {
        match self {
            Self::Duckdb => "string_agg(frame, ';' ORDER BY depth DESC)",
            Self::Spark => {
                "array_join(transform(array_sort(collect_list(struct(-depth AS place, frame))), x -> x.frame), ';')"
            }
        }
    }

    /// How a view begins.
    pub(super) fn view(self, name: &str) -> String {
        let name = self.identifier(name);
        match self {
            Self::Duckdb => format!("CREATE OR REPLACE VIEW {name} AS"),
            Self::Spark => format!("CREATE OR REPLACE TEMPORARY VIEW {name}"),
        }
    }

    /// Makes a view of the columns that all files of a table have.
    pub(super) fn table(self, dataset: &str, table: &DatasetTable) -> String {
        let folder = format!("{}/table={}", self.plain_glob(dataset), table.name);
        let view = self.view(table.name);
        let folders = table.folders.iter().map(|name| (*name, ColumnType::Text));
        let columns = table.columns().into_iter().chain(folders);
        match self {
            Self::Duckdb => {
                let names = columns.map(|(name, _)| self.identifier(name));
                let names = names.collect::<Vec<_>>().join(", ");
                let files = duckdb(&self.literal(&format!("{folder}/**/*.parquet")));
                format!("{view}\nSELECT {names}\nFROM {files};")
            }
            Self::Spark => {
                let columns = columns
                    .map(|(name, kind)| format!("{} {}", self.identifier(name), spark_type(kind)));
                let columns = columns.collect::<Vec<_>>().join(", ");
                let folder = self.literal(&folder);
                format!("{view} ({columns})\nUSING parquet OPTIONS (path {folder});")
            }
        }
    }

    /// Makes a view of all columns of a probe or of a kind of span; `folder` is its folders in all hosts and days.
    pub(super) fn probe(
        self,
        dataset: &str,
        table: &DatasetTable,
        name: &str,
        folder: &str,
    ) -> String {
        let base = format!("{dataset}/table={}", table.name);
        let files = self.plain_glob(&base);
        let folder = format!("{files}/host=*/date=*/{folder}");
        let view = self.view(name);
        match self {
            Self::Duckdb => {
                let files = duckdb(&self.literal(&format!("{folder}/*.parquet")));
                format!("{view}\nSELECT * FROM {files};")
            }
            Self::Spark => {
                let (folder, base) = (self.literal(&folder), self.literal(&base));
                format!(
                    "{view}\nUSING parquet OPTIONS (path {folder}, basePath {base}, mergeSchema 'true');"
                )
            }
        }
    }
}

const fn spark_type(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Int32 => "INT",
        ColumnType::Int64 => "BIGINT",
        ColumnType::UInt64 => "DECIMAL(20,0)",
        ColumnType::Float64 => "DOUBLE",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Text => "STRING",
        ColumnType::Binary => "BINARY",
    }
}

fn duckdb(files: &str) -> String {
    format!(
        "read_parquet({files}, hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_themselves() {
        let path = "/a*b?[c]{d}\\e'f";
        assert_eq!(
            SqlEngine::Duckdb.plain_glob(path),
            "/a[*]b[?][[]c][{]d}\\e'f"
        );
        assert_eq!(
            SqlEngine::Spark.plain_glob(path),
            "/a\\*b\\?\\[c\\]\\{d\\}\\\\e'f"
        );
        assert_eq!(SqlEngine::Duckdb.plain_glob("s3://b/*"), "s3://b/*");
    }
}
