"""A temporary directory with the programs that are traced, and the processes that are still to be ended."""

import pathlib
import shutil
import signal
import sys
import tempfile

from .process import Process, handle_signals

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPROBE_EVENTS = pathlib.Path("/sys/kernel/tracing/uprobe_events")


class Lab:
    """Removed, with all processes, at the end of a `with`."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="usdtrec-compare-"))
        self.processes = []
        # What is to be said below the table, and of what.
        self.notes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        handle_signals(signal.SIG_IGN)
        for process in list(self.processes):
            process.end()
        shutil.rmtree(self.path, ignore_errors=True)
        if UPROBE_EVENTS.exists() and str(self.path) in UPROBE_EVENTS.read_text():
            print(f"benches/compare: tracefs events of {self.path} are left: `usdtrec doctor --heal`", file=sys.stderr)

    def note(self, what, text):
        """Has something said below the table, once."""
        whats = self.notes.setdefault(text, [])
        if what not in whats:
            whats.append(what)

    def target(self, source):
        """Builds a program of testdata/targets, if it has not been built."""
        program = self.path / source.removesuffix(".c")
        if not program.exists():
            options = ["-O2", "-std=gnu11", "-pthread"]
            self.run(["gcc", *options, "-o", program, ROOT / "testdata/targets" / source])
        return program

    def run(self, arguments, **options):
        """Runs a process to its end; its CPU time in seconds."""
        return Process(self, arguments, **options).finish()

    def output(self, arguments, **options):
        """What a process prints."""
        with tempfile.TemporaryFile(dir=self.path) as file:
            self.run(arguments, stdout=file, **options)
            file.seek(0)
            return file.read().decode(errors="replace")
