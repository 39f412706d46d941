//! Views that are made of the tables, and examples of questions.

use crate::cli::SqlEngine;

/// A statement, and what it answers.
pub(super) struct Question {
    pub(super) about: &'static str,
    pub(super) sql: String,
}

/// Views of the views.
pub(super) fn views(engine: SqlEngine) -> Vec<Question> {
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
pub(super) fn questions(engine: SqlEngine) -> Vec<Question> {
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
                after = of_day(engine, "SELECT max(date) FROM spans"),
                before = of_day(
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

fn of_day(engine: SqlEngine, day: &str) -> String {
    let percentile = |percent| engine.percentile(percent, "duration_ns");
    format!(
        "SELECT provider, span, count(duration_ns) AS spans, {} AS p50_ns, {} AS p99_ns FROM spans WHERE date = ({day}) GROUP BY provider, span",
        percentile(50),
        percentile(99),
    )
}
