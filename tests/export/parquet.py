"""Compares a dataset of `export --to parquet` with what other verbs print of the same trace.

    parquet.py DATASET SCRIPT REPORT...

SCRIPT has the lines of `script --format json`, with `-F +tod` if the trace has the time of day, each REPORT the answer of `report --span NAME --format json`. DuckDB, pyarrow and polars read the
dataset. Prints what is not equal, and how much was compared.
"""
import datetime
import glob
import json
import math
import struct
import sys

import duckdb
import polars
import pyarrow.parquet as parquet

DATASET, SCRIPT, REPORTS = sys.argv[1], sys.argv[2], sys.argv[3:]
wrong = []


def differ(*words):
    wrong.append(" ".join(str(word) for word in words))


def of_duckdb(files):
    """Rows of files, and the columns that their folders say."""
    if not files:
        return []
    relation = duckdb.sql(
        f"SELECT * FROM read_parquet({files}, hive_partitioning=true, hive_types_autocast=false)"
    )
    names = relation.columns
    return [dict(zip(names, row)) for row in relation.fetchall()]


def of_pyarrow(files):
    rows = []
    for file in files:
        rows += parquet.ParquetFile(file).read().to_pylist()
    return rows


def of_polars(files):
    rows = []
    for file in files:
        rows += polars.read_parquet(file, hive_partitioning=False).to_dicts()
    return rows


def number(text):
    return {"NaN": math.nan, "inf": math.inf, "-inf": -math.inf}.get(text, text)


def same(value, expected):
    if isinstance(value, float) and isinstance(expected, float):
        # JSON has the shortest digits of a float of 4 bytes.
        short = expected if abs(expected) > 3e38 else struct.unpack("f", struct.pack("f", expected))[0]
        return math.isnan(value) and math.isnan(expected) or value in (expected, short)
    return value == expected


def compare_argument(row, name, column, line):
    value = row[column]
    shown = line["args"][name]
    reason = line.get("missing", {}).get(name)
    if row[f"{column}__missing"] != reason:
        differ(name, "is missing because", row[f"{column}__missing"], "expected", reason)
    if reason is not None:
        expected = None
    elif name in line.get("numbers", {}):
        expected = line["numbers"][name]
        if row[f"{column}__text"] != shown:
            differ(name, "text", row[f"{column}__text"], "expected", shown)
    elif isinstance(value, bytes):
        expected = bytes.fromhex(shown)
    elif isinstance(value, int) and isinstance(shown, str):
        expected = int(shown, 16)
    elif isinstance(value, float):
        expected = float(number(shown))
    elif isinstance(value, str) and not isinstance(shown, str):
        expected = str(shown)
    else:
        expected = shown
    if not same(value, expected) or isinstance(value, bool) != isinstance(expected, bool):
        differ(line["event"], name, repr(value), "expected", repr(expected))
    if f"{column}__cut" in row:
        if bool(row[f"{column}__cut"]) != (name in line.get("cut", {})):
            differ(name, "cut", row[f"{column}__cut"])
    if f"{column}__bytes" in row:
        raw = row[f"{column}__bytes"]
        if (raw.hex() if raw is not None else None) != line.get("bytes", {}).get(name):
            differ(name, "bytes", raw, line.get("bytes"))
    if f"{column}__demangled" in row:
        if row[f"{column}__demangled"] != line.get("demangled", {}).get(name):
            differ(name, "demangled", row[f"{column}__demangled"])
    return 1


def wall_ns(line):
    """ns since 1970 of a time of day; None if the trace does not say it."""
    if "tod" not in line:
        return None
    day, digits = line["tod"].rstrip("Z").split(".")
    seconds = datetime.datetime.fromisoformat(day).replace(tzinfo=datetime.timezone.utc).timestamp()
    return int(seconds) * 1_000_000_000 + int(digits)


def compare_event(row, line, columns):
    for name, column in [("time_ns", "clock_ns"), ("cpu", "cpu"), ("pid", "pid"), ("tid", "tid")]:
        if row[column] != line[name]:
            differ(line["event"], column, row[column], "expected", line[name])
    comm = row["comm"] if row["comm"] is not None else f":{row['tid']}"
    if comm != line["comm"]:
        differ("comm", repr(comm), "expected", repr(line["comm"]))
    if row["ts_ns"] != wall_ns(line):
        differ("ts_ns", row["ts_ns"], "expected", wall_ns(line))
    if (row["stack_id"] is not None) != bool(line.get("stack")) and "stack_cut" not in line:
        differ("stack_id", row["stack_id"], line.get("stack"))
    return sum(compare_argument(row, name, columns[name], line) for name in line["args"])


def main():
    lines = {}
    for line in open(SCRIPT, encoding="utf-8"):
        line = json.loads(line)
        lines.setdefault(line["event"], []).append(line)
    files = lambda table: sorted(glob.glob(f"{DATASET}/table={table}/**/*.parquet", recursive=True))
    meta, = of_duckdb(files("meta"))
    if lines and (meta["first_ts_ns"] is None) != all("tod" not in line for of in lines.values() for line in of):
        differ("meta", meta)
    columns = {}
    for row in of_duckdb(files("columns")):
        key = (row["of_table"], row["name"])
        columns.setdefault(key, {}).setdefault(row["argument"], row["column_name"])
    values = 0
    for read in (of_duckdb, of_pyarrow, of_polars):
        events = {}
        for file in files("events"):
            event = parquet.read_metadata(file).metadata.get(b"usdtrec.event")
            if event is not None:
                events.setdefault(event.decode(), []).append(file)
        if events.keys() != lines.keys():
            differ("events", sorted(events), "expected", sorted(lines))
        for event in sorted(events.keys() & lines.keys()):
            rows = read(events[event])
            if len(rows) != len(lines[event]):
                differ(event, len(rows), "rows, expected", len(lines[event]))
            names = columns.get(("events", event), {})
            for row, line in zip(rows, lines[event]):
                values += compare_event(row, line, names)
    for row in of_duckdb(files("losses")):
        if row["event"] is not None and row["exported"] != len(lines.get(row["event"], [])):
            differ("losses", row, "expected", len(lines.get(row["event"], [])))
    spans = compare_spans(files("spans"))
    for words in wrong[:30]:
        print(words)
    print(f"{values} values, {spans} spans, {len(wrong)} differ")
    sys.exit(bool(wrong))


def compare_spans(files):
    """The figures of `report`, worked out by DuckDB."""
    by_name = {}
    for file in files:
        name = parquet.read_metadata(file).metadata.get(b"usdtrec.span")
        if name is not None:
            by_name.setdefault(name.decode(), []).append(file)
    compared = 0
    for report in REPORTS:
        span, = json.load(open(report, encoding="utf-8"))["spans"]
        figures, = duckdb.sql(
            f"""SELECT count(duration_ns), min(duration_ns), max(duration_ns), sum(self_ns),
                       sum(duration_ns) // count(duration_ns), count(*) FILTER (fate = 'open'), count(*) FILTER (fate = 'unfinished')
                FROM read_parquet({by_name[span["name"]]})"""
        ).fetchall()
        names = ["count", "min_ns", "max_ns", "self_ns", "mean_ns", "open", "unfinished"]
        for name, figure in zip(names, figures):
            if figure != span[name]:
                differ(span["name"], name, figure, "expected", span[name])
        lasts = "count(*) FILTER (duration_ns <> end_clock_ns - begin_clock_ns)"
        others, = duckdb.sql(f"SELECT {lasts} FROM read_parquet({by_name[span['name']]})").fetchall()
        if others[0]:
            differ(span["name"], "durations are not from begin to end")
        compared += figures[0]
    return compared


main()
