"""Compares what an engine of SQL answers to `usdtrec sql` with what `report` prints.

    engines.py ENGINE SQL EXPECTED [STATS]

SQL is what `usdtrec sql --engine ENGINE` printed. EXPECTED has one JSON object a line: {"spans": host, day, answer of `report --span`}, {"by": …, of `report --span --by text`} and
{"arguments": …, of `report --sort event --value NAME`}. STATS is the folder in which the Spark job wrote span_stats. Prints what is not equal, and how much was compared.
"""

import glob
import json
import sys

FIGURES = {
    "count": "spans", "self_ns": "self_ns", "min_ns": "min_ns", "max_ns": "max_ns", "p50_ns": "p50_ns", "p90_ns": "p90_ns",
    "p99_ns": "p99_ns", "open": "open_spans", "unfinished": "unfinished_spans", "lost": "lost",
}
wrong, compared = [], 0


def differ(*words):
    wrong.append(" ".join(str(word) for word in words))


def of_duckdb():
    import duckdb

    def run(sql):
        answer = duckdb.sql(sql)
        return [] if answer is None else [dict(zip(answer.columns, row)) for row in answer.fetchall()]

    return run


def of_spark():
    from pyspark.sql import SparkSession

    make = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = make.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    return lambda sql: [row.asDict() for row in spark.sql(sql).collect()]


def same(words, found, expected, exact=True):
    """Percentiles of `report` that are not exact are within 1/256."""
    global compared
    compared += 1
    is_same = found == expected if exact or found is None else abs(found - expected) * 256 <= found
    if not is_same:
        differ(words, found, "expected", expected)


def compare_figures(words, row, span, exact):
    for name, column in FIGURES.items():
        same(f"{words} {name}", row[column], span[name], exact or not name.startswith("p"))
    mean = None if row["sum_ns"] is None else row["sum_ns"] // row["spans"]
    same(f"{words} mean_ns", mean, span["mean_ns"])


def compare_stats(rows, expected):
    """The rows of span_stats: one for each span of a host and day."""
    found = {(row["host"], str(row["day"]), row["provider"], row["span"]): row for row in rows}
    same("rows of span_stats", len(rows), len(expected))
    for host, day, span in expected:
        provider, name = span["name"].split(":")
        row = found.get((host, day, provider, name))
        if row is None:
            differ("no row of", host, day, span["name"], "in", sorted(found))
            continue
        compare_figures(f"{host} {day} {span['name']}", row, span, span["exact"])


def compare_together(rows, expected):
    """The rows of all hosts together."""
    for name in {span["name"] for _, _, span in expected}:
        of = [(host, span) for host, _, span in expected if span["name"] == name]
        rows_of = [row for row in rows if f"{row['provider']}:{row['span']}" == name]
        same(f"{name}: spans of all hosts", sum(row["spans"] for row in rows_of), sum(span["count"] for _, span in of))
        same(f"{name}: hosts", max(row["hosts"] for row in rows_of), len({host for host, _ in of}))


def compare_days(rows, expected):
    """The last day, on which one host was recorded, and the one before."""
    last, before = sorted({day for _, day, _ in expected})[:-3:-1]
    same("spans of the last two days", len(rows), len([1 for _, day, _ in expected if day == last]))
    for row in rows:
        name = f"{row['provider']}:{row['span']}"
        later, = [span for _, day, span in expected if (day, span["name"]) == (last, name)]
        earlier = [span for _, day, span in expected if (day, span["name"]) == (before, name)]
        same(f"{name} before", row["spans_before"], sum(span["count"] for span in earlier))
        same(f"{name} after", row["spans_after"], later["count"])
        for percent in ("p50", "p99"):
            same(f"{name} {percent} after", row[f"{percent}_after"], later[f"{percent}_ns"], later["exact"])


def compare_groups(run, host, day, span):
    view = "span_" + span["name"].replace(":", "_")
    rows = run(
        f"SELECT begin_text, count(duration_ns) AS spans, min(duration_ns) AS min_ns, max(duration_ns) AS max_ns FROM {view} "
        f"WHERE host = '{host}' AND CAST(date AS VARCHAR(10)) = '{day}' GROUP BY begin_text"
    )
    found = {row["begin_text"]: row for row in rows if row["spans"]}
    for group in span["groups"]:
        row = found.pop(group["text"], None)
        for name, column in (("count", "spans"), ("min_ns", "min_ns"), ("max_ns", "max_ns")):
            same(f"{view} {group['text']!r} {name}", row and row[column], group[name])
    same(f"{view}: other groups", list(found), [])


def compare_argument(run, host, day, row):
    event = row["event"].removeprefix("sdt_").replace(":", "_")
    name = next(key for key in row if key.endswith(".count")).removesuffix(".count")
    figures = ("count", "sum", "min", "max")
    columns = ", ".join(f"{figure}({name}) AS {figure}_of" for figure in figures)
    found, = run(f"SELECT {columns} FROM event_{event} WHERE host = '{host}' AND CAST(date AS VARCHAR(10)) = '{day}'")
    for figure in figures:
        same(f"{host} {event} {figure} of {name}", int(found[f"{figure}_of"]), row[f"{name}.{figure}"])


def main():
    engine, sql, expected = sys.argv[1:4]
    run = {"duckdb": of_duckdb, "spark": of_spark}[engine]()
    text = open(sql, encoding="utf-8").read()
    answers = {}
    for statement in filter(None, (part.strip() for part in text.rstrip().removesuffix(";").split(";\n"))):
        rows = run(statement)
        about, _, question = statement.partition("\n")
        if not question.startswith("CREATE") and not about.startswith("CREATE"):
            answers[about] = rows
    stats, together, groups, losses, days, stacks, hits = answers.values()
    lines = [json.loads(line) for line in open(expected, encoding="utf-8")]
    spans = [line["spans"] for line in lines if "spans" in line]
    compare_stats(stats, spans)
    compare_together(together, spans)
    compare_days(days, spans)
    exported, = run("SELECT sum(exported) AS all_events, sum(lost) AS all_lost FROM losses")
    same("spans of control groups", sum(row["spans"] for row in groups), sum(row["spans"] for row in together))
    same("hits", sum(row["hits"] for row in hits), int(exported["all_events"]))
    same("lost", sum(row["lost"] for row in losses), int(exported["all_lost"]))
    if not any(row["stack_line"].endswith(";main;start") for row in stacks):
        differ("stacks", stacks)
    for line in lines:
        if "by" in line:
            compare_groups(run, *line["by"])
        if "arguments" in line:
            compare_argument(run, *line["arguments"])
    if len(sys.argv) > 4:
        import pyarrow.dataset as dataset

        files = glob.glob(f"{sys.argv[4]}/*/*.parquet")
        folders = dataset.partitioning(flavor="hive")
        compare_stats(dataset.dataset(files, partitioning=folders).to_table().to_pylist(), spans)
    for words in wrong[:30]:
        print(words)
    print(f"{engine}: {compared} figures, {len(wrong)} differ")
    sys.exit(bool(wrong))


main()
