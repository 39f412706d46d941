"""Verbs that read: their CPU time."""

import shutil

from .machine import JVM
from .rounds import Case
from .unit import MILLISECONDS

ANSWERS = [
    ["script"],
    ["script", "--format", "json"],
    ["report"],
    ["report", "--sort", "comm,arg2"],
    ["report", "--span", "request"],
    ["report", "--hist", "arg2"],
]
FORMATS = ["perf", "parquet", "perfetto", "otlp", "otlp-proto"]


def record(build, name, requests):
    """A trace of two threads that serve requests."""
    file = build.file(name)
    program = build.lab.target("requests.c")
    arguments = ["-q", "-m", "1G", "-o", file, "-e", f"sdt_requests:*@{program}"]
    build.run("record", *arguments, "--", program, requests, 2)
    return file


def reads(arguments, file=None):
    """A case that runs a verb; of a trace of its own, if no file is given."""
    what = f"`{' '.join(arguments)}`"
    options = ["-i", file] if file else []
    return Case(what, lambda build: {(f"{what}, CPU", MILLISECONDS): build.run(*arguments, *options)})


def listing(lab, _):
    library = JVM / "lib/server/libjvm.so"
    listed = reads(["list", "--file", str(library)])
    return [reads(["--version"]), reads(["list"]), listed]


def answers(lab, pair):
    """Questions to one trace, which OLD has recorded, so that both can read it; and to a trace of its own."""
    old, new = pair
    file = record(old, "answered", 100_000)
    record(new, "answered", 100_000)
    lines = [build.output("script", "-i", file).count("\n") for build in pair]
    same = "the same number of lines" if lines[0] == lines[1] else "DIFFERENT numbers of lines"
    lab.note("`script` of one trace", f"{same}, {lines[0]} and {lines[1]}")

    def own(build):
        return {("`report` of a trace that it has recorded itself, CPU", MILLISECONDS): build.run("report", "-i", build.file("answered"))}

    return [reads(question, file) for question in ANSWERS] + [Case("`report` of its own trace", own)]


def exports(lab, pair):
    """Of a trace that OLD has recorded."""
    file = record(pair[0], "exported", 15_000)
    return [export(name, file) for name in FORMATS]


def export(name, file):
    what = f"`export --to {name}`"

    def take(build):
        out = build.file("export")
        cpu = build.run("export", "--to", name, "-i", file, "-o", out)
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        return {(f"{what}, CPU", MILLISECONDS): cpu}

    return Case(what, take)
