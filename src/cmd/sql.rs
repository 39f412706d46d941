//! `usdtrec sql`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_report::export::{ColumnType, DatasetTable};

use crate::cli::{SqlArgs, SqlEngine};
use crate::terminal::Usage;

/// Stands for no name: of a table without rows.
const NO_VALUE: &str = "=__HIVE_DEFAULT_PARTITION__";

/// Runs the verb.
pub(crate) fn run(args: &SqlArgs) -> anyhow::Result<ExitCode> {
    let engine = args.engine;
    let Some(dataset) = args.dataset.to_str() else {
        let refused = format!("{}: expected a name of UTF-8", shown(&args.dataset));
        return Err(Usage(refused).into());
    };
    // Where the engine runs is not known.
    let whole = fs::canonicalize(dataset)
        .ok()
        .and_then(|whole| whole.into_os_string().into_string().ok());
    let dataset = whole.as_deref().unwrap_or(dataset).trim_end_matches('/');
    let mut out = String::new();
    let mut names = BTreeSet::new();
    for table in &DatasetTable::ALL {
        out.push_str(&format!("{}\n\n", engine.table(dataset, table)));
        names.insert(table.name.to_owned());
    }
    let views = views(engine);
    for view in &views {
        out.push_str(&format!("-- {}\n{}\n\n", view.about, view.sql));
    }
    names.extend(["span_stats", "stack_lines"].map(str::to_owned));
    for folder in folders(dataset)? {
        let name = free(&folder, &mut names);
        let view = engine.probe(dataset, folder.table, &name, &folder.path);
        out.push_str(&format!("{view}\n\n"));
    }
    for question in questions(engine) {
        out.push_str(&format!("-- {}\n{}\n\n", question.about, question.sql));
    }
    out.truncate(out.trim_end().len());
    writeln!(io::stdout(), "{out}")?;
    Ok(ExitCode::SUCCESS)
}

/// A folder that several hosts and days have.
#[derive(Debug)]
struct ProbeFolder {
    path: String,
    table: &'static DatasetTable,
}

/// The folders of probes and spans, each once. A dataset elsewhere is not looked into.
fn folders(dataset: &str) -> anyhow::Result<Vec<ProbeFolder>> {
    let mut folders = Vec::new();
    if dataset.contains("://") {
        return Ok(folders);
    }
    for table in [&DatasetTable::EVENTS, &DatasetTable::SPANS] {
        let root = Path::new(dataset).join(format!("table={}", table.name));
        let paths = probe_paths(&root).with_context(|| format!("cannot read {}", shown(&root)))?;
        folders.extend(paths.into_iter().map(|path| ProbeFolder { path, table }));
    }
    Ok(folders)
}

/// The folders `provider=…/probe=…` of all hosts and days of a table.
fn probe_paths(root: &Path) -> io::Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for host in entries(root)? {
        for date in entries(&root.join(&host))? {
            let date = root.join(&host).join(date);
            for provider in entries(&date)? {
                let probes = entries(&date.join(&provider))?.into_iter();
                let named = probes.filter(|probe| !probe.ends_with(NO_VALUE));
                paths.extend(named.map(|probe| format!("{provider}/{probe}")));
            }
        }
    }
    Ok(paths)
}

/// The folders in a folder that are of a dataset: `KEY=VALUE`, as `export` escapes them.
fn entries(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.%=".contains(&byte);
        names.extend(
            name.ok()
                .filter(|name| name.contains('=') && name.bytes().all(is_plain)),
        );
    }
    Ok(names)
}

/// A name for a view that no other one has: `event_PROVIDER_PROBE`, `span_PROVIDER_NAME`.
fn free(folder: &ProbeFolder, names: &mut BTreeSet<String>) -> String {
    let values = folder
        .path
        .split('/')
        .filter_map(|part| part.split_once('='));
    let values: Vec<&str> = values.map(|(_, value)| value).collect();
    let name = values.join("_");
    let name = name.replace(|char: char| !char.is_ascii_alphanumeric(), "_");
    let name = format!("{}_{name}", folder.table.name.trim_end_matches('s'));
    let mut free = name.clone();
    let mut number = 2;
    while !names.insert(free.to_lowercase()) {
        free = format!("{name}_{number}");
        number += 1;
    }
    free
}

/// A statement, and what it answers.
struct Question {
    about: &'static str,
    sql: String,
}

/// Views of the views.
fn views(engine: SqlEngine) -> Vec<Question> {
    let percentile = |percent| engine.percentile(percent, "duration_ns");
    let view = |name: &str| match engine {
        SqlEngine::Spark => format!("{} AS", engine.view(name)),
        _ => engine.view(name),
    };
    vec![
        Question {
            about: "Spans by host, day and build, with the events that their provider lost there.",
            sql: format!(
                "{}\n\
                 SELECT s.host AS host, s.date AS day, s.provider AS provider, s.span AS span, s.build_id AS build_id, s.spans AS spans, s.sum_ns AS sum_ns,\n  \
                   s.own_ns AS self_ns, s.min_ns AS min_ns, s.p50_ns AS p50_ns, s.p90_ns AS p90_ns, s.p99_ns AS p99_ns, s.max_ns AS max_ns,\n  \
                   s.open_spans AS open_spans, s.unfinished_spans AS unfinished_spans, l.lost_events AS lost, l.uncounted AS uncounted\n\
                 FROM (\n  \
                   SELECT host, date, provider, span, build_id, count(duration_ns) AS spans, sum(duration_ns) AS sum_ns, sum(self_ns) AS own_ns,\n    \
                     min(duration_ns) AS min_ns, {} AS p50_ns, {} AS p90_ns, {} AS p99_ns, max(duration_ns) AS max_ns,\n    \
                     count(CASE WHEN fate = 'open' THEN 1 END) AS open_spans, count(CASE WHEN fate = 'unfinished' THEN 1 END) AS unfinished_spans\n  \
                   FROM spans GROUP BY host, date, provider, span, build_id\n\
                 ) s LEFT JOIN (\n  \
                   SELECT host, date, provider, sum(lost) AS lost_events, count(CASE WHEN lost IS NULL OR NOT exact THEN 1 END) AS uncounted\n  \
                   FROM losses GROUP BY host, date, provider\n\
                 ) l ON s.host = l.host AND s.date = l.date AND s.provider = l.provider;",
                view("span_stats"),
                percentile(50),
                percentile(90),
                percentile(99),
            ),
        },
        Question {
            about: "Stacks as lines of folded stacks: frames from the outermost one.",
            sql: format!(
                "{}\n\
                 SELECT stack_id, {} AS stack_line\n\
                 FROM (SELECT DISTINCT stack_id, depth, coalesce(frame, concat('[cut: ', cut, ']')) AS frame FROM stacks) frames\n\
                 GROUP BY stack_id;",
                view("stack_lines"),
                engine.folded(),
            ),
        },
    ]
}

/// Examples of questions.
fn questions(engine: SqlEngine) -> Vec<Question> {
    let percentile = |percent| engine.percentile(percent, "duration_ns");
    vec![
        Question {
            about: "Which spans take the most time, where, in which build? What was lost there?",
            sql: "SELECT * FROM span_stats ORDER BY sum_ns DESC LIMIT 20;".to_owned(),
        },
        Question {
            about: "The spans of all hosts together, by build.",
            sql: format!(
                "SELECT provider, span, build_id, count(DISTINCT host) AS hosts, count(duration_ns) AS spans, sum(duration_ns) AS sum_ns, {} AS p50_ns, {} AS p99_ns\n\
                 FROM spans GROUP BY provider, span, build_id ORDER BY sum_ns DESC LIMIT 20;",
                percentile(50),
                percentile(99),
            ),
        },
        Question {
            about: "Which containers and services wait longest? Their control groups, by host.",
            sql: format!(
                "SELECT host, cgroup, provider, span, count(duration_ns) AS spans, sum(duration_ns) AS sum_ns, {} AS p99_ns\n\
                 FROM spans GROUP BY host, cgroup, provider, span ORDER BY sum_ns DESC LIMIT 20;",
                percentile(99),
            ),
        },
        Question {
            about: "Which events were lost? Counts of events are estimated if they are multiplied by scale.",
            sql: "SELECT host, date, event, exported, lost, exact, (exported + lost) * 1.0 / nullif(exported, 0) AS scale\n\
                  FROM losses WHERE lost > 0 OR lost IS NULL ORDER BY lost DESC LIMIT 20;"
                .to_owned(),
        },
        Question {
            about: "What has changed between the last two days?",
            sql: format!(
                "SELECT later.provider, later.span, earlier.spans AS spans_before, later.spans AS spans_after, earlier.p50_ns AS p50_before, later.p50_ns AS p50_after,\n  \
                   earlier.p99_ns AS p99_before, later.p99_ns AS p99_after\n\
                 FROM (\n  {after}\n) later JOIN (\n  {before}\n) earlier ON later.provider = earlier.provider AND later.span = earlier.span\n\
                 ORDER BY later.p99_ns * 1.0 / nullif(earlier.p99_ns, 0) DESC LIMIT 20;",
                after = on_day(engine, "SELECT max(date) FROM spans"),
                before = on_day(
                    engine,
                    "SELECT max(date) FROM spans WHERE date < (SELECT max(date) FROM spans)"
                ),
            ),
        },
        Question {
            about: "In which stacks do spans begin that take the most time? Of events: join their stack_id.",
            sql: "SELECT stack_line, count(*) AS spans, sum(self_ns) AS self_ns\n\
                  FROM spans JOIN stack_lines ON spans.begin_stack_id = stack_lines.stack_id\n\
                  GROUP BY stack_line ORDER BY self_ns DESC LIMIT 20;"
                .to_owned(),
        },
        Question {
            about: "Which probes are hit most?",
            sql: "SELECT host, provider, probe, count(*) AS hits FROM events GROUP BY host, provider, probe ORDER BY hits DESC LIMIT 20;".to_owned(),
        },
    ]
}

fn on_day(engine: SqlEngine, day: &str) -> String {
    let percentile = |percent| engine.percentile(percent, "duration_ns");
    format!(
        "SELECT provider, span, count(duration_ns) AS spans, {} AS p50_ns, {} AS p99_ns FROM spans WHERE date = ({day}) GROUP BY provider, span",
        percentile(50),
        percentile(99),
    )
}

impl SqlEngine {
    /// An identifier.
    fn identifier(self, name: &str) -> String {
        match self {
            Self::Duckdb => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Spark => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// A string.
    fn literal(self, text: &str) -> String {
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
    fn percentile(self, percent: u8, column: &str) -> String {
        match self {
            Self::Duckdb => format!("quantile_disc({column}, 0.{percent:02})"),
            Self::Spark => format!(
                "CAST(percentile_disc(0.{percent:02}) WITHIN GROUP (ORDER BY {column}) AS BIGINT)"
            ),
        }
    }

    /// The frames of a stack in one string, the outermost first.
    const fn folded(self) -> &'static str {
        match self {
            Self::Duckdb => "string_agg(frame, ';' ORDER BY depth DESC)",
            Self::Spark => {
                "array_join(transform(array_sort(collect_list(struct(-depth AS place, frame))), x -> x.frame), ';')"
            }
        }
    }

    /// How a view begins.
    fn view(self, name: &str) -> String {
        let name = self.identifier(name);
        match self {
            Self::Duckdb => format!("CREATE OR REPLACE VIEW {name} AS"),
            Self::Spark => format!("CREATE OR REPLACE TEMPORARY VIEW {name}"),
        }
    }

    /// Makes a view of the columns that all files of a table have.
    fn table(self, dataset: &str, table: &DatasetTable) -> String {
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
    fn probe(self, dataset: &str, table: &DatasetTable, name: &str, folder: &str) -> String {
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
