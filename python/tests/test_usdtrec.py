"""The package has what the command prints. Needs the command in $USDTREC; run by .ci/python."""

import glob
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from datetime import datetime

import pyarrow
import pyarrow.parquet

import usdtrec

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DEMO = os.path.join(ROOT, "testdata", "demo.data")
TRACES = sorted(glob.glob(os.path.join(ROOT, "testdata", "traces", "*.data")))


SCHEMA = """
provider = "nasty"
[[probe]]
name = "value"
arguments = ["low: s64", "high: u64", "real: f64", "text: str"]
[[probe]]
name = "work__start"
arguments = ["key: u64", "text: str"]
[[probe]]
name = "work__done"
arguments = ["key: u64", "status: s32"]
"""


OWN_NAMES = """
provider = "usdtrec"
[[probe]]
name = "gc__done"
arguments = ["kept", "freed", "old", "new"]
"""


def nasty(folder):
    """A recording with values and spans that programs get wrong."""
    program, schema, trace = (os.path.join(folder, name) for name in ("nasty", "nasty.toml", "nasty.data"))
    source = os.path.join(ROOT, "testdata", "targets", "nasty.c")
    subprocess.run(["gcc", "-O2", "-o", program, source, "-pthread", "-lm"], check=True)
    with open(schema, "w", encoding="utf-8") as file:
        file.write(SCHEMA)
    options = ["--schema", schema, "--strlen", "4096", "-g", "-o", trace, "-e", f"sdt_nasty:*@{program}"]
    command("record", *options, "--", program, "100")
    return trace


def command(*words, succeeds=True):
    """What the command prints."""
    done = subprocess.run([os.environ["USDTREC"], *words], capture_output=True, check=False)
    assert not succeeds or done.returncode == 0, done.stderr
    return done


def printed(trace, *options):
    """The events of a trace as the command prints them."""
    with_time = command("script", "-i", trace, "--format", "json", "-F", "+tod,+sym,+dso,+cgroup,+container,+unit,+exe,+uid,+ppid,+parent,+service,+trace_id,+span_id,+runnable,+iowait,+blocked,+build_id", *options, succeeds=False)
    if with_time.returncode == 0:
        return [json.loads(line) for line in with_time.stdout.splitlines()]
    done = command("script", "-i", trace, "--format", "json", "-F", "+sym,+dso,+cgroup,+container,+unit,+exe,+uid,+ppid,+parent,+service,+trace_id,+span_id,+runnable,+iowait,+blocked,+build_id", *options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def threads():
    """Threads of this process. Their names do not tell which read traces: a thread has its own only once it runs."""
    return set(os.listdir("/proc/self/task"))


def nanoseconds(text):
    """A time of day in RFC 3339 with nine digits."""
    seconds, fraction = text.rstrip("Z").split(".")
    whole = datetime.fromisoformat(seconds + "+00:00").timestamp()
    return int(whole) * 10**9 + int(fraction)


def json_value(value):
    """A value as the command prints it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN"}.get(str(value), str(value))
    return value


def shortest(found, printed):
    """A float of 4 bytes as the command prints it, with as few digits as identify it; else what was found."""
    if isinstance(found, float) and isinstance(printed, float) and abs(printed) < 3e38:
        of_4_bytes = struct.unpack("f", struct.pack("f", printed))[0]
        return printed if of_4_bytes == found else found
    return found


def as_printed(row):
    """A row as the command prints it, with what differs left out."""
    row = dict(row)
    comm, tid = row["comm"], row["tid"]
    row["comm"] = f":{tid}" if comm is None else comm
    row["ip"] = hex(row["ip"])
    assert row["event"].removeprefix("sdt_") == f"{row.pop('provider')}:{row.pop('probe')}"
    row["args"] = {name: json_value(value) for name, value in row["args"].items()}
    if "bytes" in row:
        row["bytes"] = {name: value.hex() for name, value in row["bytes"].items()}
    for frame in row.get("stack", []):
        frame.pop("offset", None)
        frame.pop("ip", None)
    return row


def expected(event):
    """The row of an event that the command printed."""
    event = {name: value for name, value in event.items() if name not in ("sym", "dso", "symoff")}
    tod = event.pop("tod", None)
    event["wall_ns"] = None if tod is None else nanoseconds(tod)
    for frame in event.get("stack", []):
        frame.pop("ip")
    return event


# With CI=true they fail without root.
RECORDS = unittest.skipUnless(os.geteuid() == 0 or os.environ.get("CI") == "true", "recording needs root")


class Values(unittest.TestCase):
    def test_arguments_of_the_span_that_an_event_is_in(self):
        trace = usdtrec.open(DEMO, with_spans="request")
        expected = [json.loads(line)["args"] for line in command("script", "-i", DEMO, "--format", "json", "--with", "request").stdout.splitlines()]
        rows = list(trace.events())
        self.assertEqual(len(rows), len(expected))
        found = 0
        for row, args in zip(rows, expected):
            self.assertEqual(set(row["args"]), set(args))
            self.assertEqual(row["args"].get("request.arg1"), args.get("request.arg1"))
            found += "request.arg1" in args and args["request.arg1"] is not None
        self.assertGreater(found, 10)
        report = trace.report(span="gc", by="request.arg1")
        printed = command("report", "-i", DEMO, "--format", "json", "--span", "gc", "--by", "request.arg1", "--with", "request")
        self.assertEqual(report.answer, json.loads(printed.stdout))

    def compare(self, trace, *options, **selection):
        patterns = selection.pop("events", [])
        schema = selection.pop("schema", [])
        rows = list(usdtrec.open(trace, schema=schema).events(*patterns, stacks=True, **selection))
        events = printed(trace, *options)
        self.assertEqual(len(rows), len(events))
        for row, event in zip(rows, events):
            row, event = as_printed(row), expected(event)
            for name, value in event["args"].items():
                row["args"][name] = shortest(row["args"][name], value)
            self.assertEqual(row, event)
        return rows

    def test_rows_are_what_script_prints(self):
        self.assertGreater(len(TRACES), 10)
        for trace in TRACES + [DEMO]:
            with self.subTest(trace=trace):
                self.compare(trace)

    def test_several_files_are_one_trace(self):
        rows = list(usdtrec.open(DEMO).events())
        self.assertGreater(len(rows), 100)
        self.assertEqual(list(usdtrec.open([DEMO]).events()), rows)
        self.assertEqual(list(usdtrec.open(DEMO[:-1] + "?").events()), rows)
        with self.assertRaisesRegex(usdtrec.Error, "not parts of one trace"):
            usdtrec.open([DEMO, pathlib.Path(DEMO)])

    def test_schema_files_name_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            schema = pathlib.Path(folder, "own.toml")
            schema.write_text(OWN_NAMES, encoding="utf-8")
            for given in (schema, [str(schema)]):
                rows = self.compare(DEMO, "--schema", str(schema), schema=given)
            names = {tuple(row["args"]) for row in rows if row["probe"] == "gc__done"}
            self.assertEqual(names, {("kept", "freed", "old", "new")})

    @RECORDS
    def test_extreme_values_are_what_script_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = self.compare(nasty(folder))
        values = [row for row in rows if row["probe"] == "value"]
        self.assertEqual([values[0]["args"]["low"], values[0]["args"]["high"]], [-(2**63), 2**64 - 1])
        self.assertTrue(math.isnan(values[0]["args"]["real"]))
        self.assertEqual(values[1]["bytes"]["text"], b"not \xff\xfe UTF-8")
        self.assertTrue(values[3]["cut"]["text"])
        self.assertIsNone(values[5]["args"]["text"])
        self.assertEqual(values[5]["missing"]["text"], "null pointer")
        self.assertTrue(all(row["stack"] for row in rows))

    def test_selection_is_that_of_the_command(self):
        options = ["-e", "usdtrec:request__done", "--time", "10%-50%", "--filter", "arg2 >= 400"]
        options += ["--cpu", "1", "--comm", "usdtrec"]
        rows = self.compare(DEMO, *options, events=["usdtrec:request__done"], time="10%-50%", filter="arg2 >= 400", cpu="1", comm="usdtrec")
        self.assertTrue(0 < len(rows) < 500)
        nothing = list(usdtrec.open(DEMO).events(pid=[1, 2], tid=3))
        self.assertEqual(nothing, [])

    def test_spans_are_those_of_report(self):
        trace = usdtrec.open(DEMO)
        report = json.loads(command("report", "-i", DEMO, "--format", "json").stdout)
        self.assertEqual(trace.span_names, [span["name"] for span in report["spans"]])
        for span in report["spans"]:
            rows = list(trace.spans(span["name"]))
            self.assertEqual(sum(row["self_ns"] for row in rows), span["self_ns"])
            durations = [row["duration_ns"] for row in rows]
            self.assertEqual([len(rows), min(durations), max(durations)], [span["count"], span["min_ns"], span["max_ns"]])
            for row in rows:
                self.assertEqual(row["end"]["time_ns"] - row["begin"]["time_ns"], row["duration_ns"])
                self.assertEqual([row["span"], row["fate"]], [span["name"], "ended"])
        keyed = list(trace.spans("usdtrec:request__start..usdtrec:request__done", key="arg1"))
        self.assertEqual(len(keyed), 2291)

    def test_reports_are_those_of_the_command(self):
        asked = [
            ([], {}),
            (["--sort", "comm,event"], {"sort": ["comm", "event"]}),
            (["--by", "comm,event"], {"by": ["comm", "event"]}),
            (["--sort", "event", "--value", "arg1", "--order", "max", "--top", "2"], {"sort": "event", "value": "arg1", "order": "max", "top": 2}),
            (["--span", "request"], {"span": "request"}),
            (["--span", "gc", "--span", "request"], {"span": ["gc", "request"]}),
            (["--span", "request", "--by", "arg1:shape", "--order", "p99.9", "--min", "1ms"], {"span": "request", "by": "arg1:shape", "order": "p99.9", "min_ns": 1_000_000}),
            (["--sort", "cpu", "--filter", "arg1 > 100"], {"sort": "cpu", "filter": "arg1 > 100"}),
        ]
        trace = usdtrec.open(DEMO)
        for options, parameters in asked:
            lines = command("report", "-i", DEMO, "--format", "json", *options).stdout.splitlines()
            expected = [json.loads(line) for line in lines]
            report = trace.report(**parameters)
            self.assertEqual(report.answer if isinstance(report.answer, list) else [report.answer], expected, options)
            frame = report.to_pandas()
            self.assertEqual(len(frame), len(report.rows()))
            self.assertGreater(len(frame), 0)
        by = trace.report(span="request", by="comm").to_pandas()
        self.assertEqual([by["span"][0], by["comm"][0], by["count"][0]], ["usdtrec:request", "usdtrec", 2291])
        for wrong, parameters in [
            ("by and sort have the same meaning without span", {"by": "comm", "sort": "event"}),
            ("value has no effect with span", {"span": "request", "value": "arg1"}),
            ("value has no effect without sort", {"value": "arg1"}),
            ("top has no effect without sort or span", {"top": 3}),
            ("sort has no effect with span: use by", {"span": "request", "sort": "comm"}),
            ("order has no effect without value or span", {"sort": "comm", "order": "max"}),
            ('order: expected count, total, sum, self, mean, p50, p90, p99, p99.9, max, oncpu, runnable, iowait or blocked, found "much"', {"span": "request", "order": "much"}),
            ('order: expected count, sum, mean, p50, p90, p99 or max, found "self"', {"sort": "comm", "value": "arg1", "order": "self"}),
            ('has no span "nothing"', {"span": "nothing"}),
        ]:
            with self.assertRaises(usdtrec.Error) as raised:
                trace.report(**parameters)
            self.assertIn(wrong, str(raised.exception))

    def test_losses_and_notices_are_those_of_the_command(self):
        for path in TRACES + [DEMO]:
            report = command("report", "-i", path, "--format", "json")
            said = report.stderr.decode()
            report = json.loads(report.stdout)
            trace = usdtrec.open(path)
            losses = trace.losses()
            self.assertEqual([losses["lost"], losses["exact"]], [report["lost"], report["lost_exact"]], path)
            rows = trace.events()
            for _ in rows:
                pass
            self.assertEqual(bool(rows.notices), ": offset " in said, path)
            for notice in rows.notices:
                self.assertIn(notice, said)


class Arrow(unittest.TestCase):
    @RECORDS
    def test_tables_of_extreme_values_are_those_of_parquet(self):
        with tempfile.TemporaryDirectory() as folder:
            self.compare_all([nasty(folder)])

    def test_tables_are_those_of_parquet(self):
        self.compare_all(TRACES + [DEMO])

    def compare_all(self, paths):
        for path in paths:
            with self.subTest(trace=path), tempfile.TemporaryDirectory() as folder:
                dataset = os.path.join(folder, "dataset")
                command("export", "-i", path, "--to", "parquet", "-o", dataset)
                trace = usdtrec.open(path)
                compared = 0
                for name in trace.event_names:
                    if not name.startswith("sdt_"):
                        continue
                    provider, probe = name.removeprefix("sdt_").split(":")
                    files = glob.glob(f"{dataset}/table=events/*/*/provider={provider}/probe={probe}/*.parquet")
                    found = trace.events(name, stacks=True).to_arrow()
                    self.assertEqual(set(found["probe"].to_pylist()) - {probe}, set())
                    if not files:
                        self.assertEqual(found.num_rows, 0)
                        continue
                    self.compare(found, files, ["provider", "probe"], leave=["no_begin"])
                    compared += 1
                stacks = glob.glob(f"{dataset}/table=stacks/**/*.parquet", recursive=True)
                self.compare(trace.events(stacks=True).stacks().to_arrow(), stacks, [])
                for name in trace.span_names:
                    provider, span = name.split(":")
                    files = glob.glob(f"{dataset}/table=spans/*/*/provider={provider}/span={span}/*.parquet")
                    self.compare(trace.spans(name, stacks=True).to_arrow(), files, ["provider", "span"])
                self.assertTrue(compared or "killed-z" in path)

    def compare(self, found, files, names, leave=()):
        self.assertEqual(found.column_names[: len(names)], names)
        self.assertEqual(len(files), 1)
        expected = pyarrow.parquet.ParquetFile(files[0]).read()
        found, expected = found.drop_columns([*names, *leave]), expected.drop_columns(list(leave))
        self.assertEqual(found.schema.remove_metadata(), expected.schema.remove_metadata())
        # As text, in which NaN is equal to NaN.
        self.assertEqual(repr(found.to_pylist()), repr(expected.to_pylist()))

    def test_a_table_of_several_probes_has_the_arguments_of_all(self):
        trace = usdtrec.open(DEMO)
        frame = trace.events("usdtrec:request__*").to_pandas()
        rows = list(trace.events("usdtrec:request__*"))
        self.assertEqual(list(frame["probe"]), [row["probe"] for row in rows])
        self.assertEqual(list(frame["clock_ns"]), [row["time_ns"] for row in rows])
        self.assertEqual(list(frame["ts_ns"]), [row["wall_ns"] for row in rows])
        self.assertEqual(list(frame["arg1"]), [row["args"]["arg1"] for row in rows])
        done = frame[frame["probe"] == "request__done"]
        self.assertEqual(list(done["arg4"]), [row["args"]["arg4"] for row in rows if row["probe"] == "request__done"])
        self.assertEqual(len(trace.events().to_arrow()), 4672)

    def test_batches_are_taken_one_by_one(self):
        stream = pyarrow.RecordBatchReader.from_stream(usdtrec.open(DEMO).spans())
        self.assertEqual(sum(batch.num_rows for batch in stream), 2336)

    def test_walks_end_that_nobody_reads(self):
        before = threads()
        for _ in range(100):
            rows = usdtrec.open(DEMO).events()
            next(iter(rows))
            pyarrow.RecordBatchReader.from_stream(rows).close()
        patience = time.monotonic() + 120
        while threads() - before and time.monotonic() < patience:
            time.sleep(0.01)
        self.assertEqual(threads() - before, set())


class Refusals(unittest.TestCase):
    def refused(self, words, make):
        with self.assertRaises(usdtrec.Error) as refused:
            make()
        self.assertIn(words, str(refused.exception))

    def test_errors_say_what_is_wrong(self):
        trace = usdtrec.open(DEMO)
        self.refused("nowhere.data", lambda: usdtrec.open("nowhere.data"))
        self.refused("no span", lambda: usdtrec.open(DEMO, with_spans=["query"]))
        self.refused("no lock", lambda: usdtrec.open(DEMO, holders=True))
        self.refused("usdtrec:gc__start", lambda: trace.events("nothing:here"))
        self.refused("usdtrec:request", lambda: trace.spans("nothing"))
        self.refused("nothing", lambda: trace.events(filter="nothing > 1"))
        self.refused("FROM,TO", lambda: trace.events(time="later"))
        self.refused("cpu", lambda: trace.events(cpu="cpu"))
        self.refused("no effect", lambda: trace.spans(key="arg1"))
        self.refused("no effect", lambda: trace.spans("request", events="usdtrec:gc*"))
        with tempfile.NamedTemporaryFile() as empty:
            self.refused("", lambda: usdtrec.open(empty.name))
            self.refused("expected a schema file", lambda: usdtrec.open(DEMO, schema=empty.name))
        self.refused("nowhere.toml", lambda: usdtrec.open(DEMO, schema=["nowhere.toml"]))
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as wrong:
            self.refused("expected a definition", lambda: usdtrec.open(DEMO, schema=wrong.name))
            wrong.write("provider = 1")
            wrong.flush()
            self.refused(f"{wrong.name}:1", lambda: usdtrec.open(DEMO, schema=wrong.name))

    def test_forks_of_a_reader_are_refused(self):
        trace = usdtrec.open(DEMO)
        rows = trace.events()
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (lambda: usdtrec.open(DEMO), trace.events, rows.__iter__, rows.__arrow_c_stream__, lambda: trace.span_names):
                try:
                    use()
                except usdtrec.Error as error:
                    refused += "spawn" in str(error)
            os._exit(refused)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 5)

    def test_rows_need_no_pyarrow(self):
        script = (
            "import sys; sys.modules['pyarrow'] = None; import usdtrec\n"
            f"rows = usdtrec.open({DEMO!r}).events()\n"
            "assert len(list(rows)) == 4672\n"
            "try: rows.to_arrow()\n"
            "except ImportError as error: assert 'pip install' in str(error)\n"
            "else: raise AssertionError\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True)


if __name__ == "__main__":
    unittest.main()
