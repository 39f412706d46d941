"""What a hit costs the traced program, and the recorder."""

import dataclasses
import subprocess
import tempfile
import time

from .process import Failed, Process
from .recorder import Recorder
from .unit import BYTES, NANOSECONDS

SCHEMA = """
provider = "hot"
[[probe]]
name = "url"
arguments = ["id", "url: str", "status", "client: ptr"]
"""
# Room for all hits.
RING = "64M"
THREADS = 1, 2


@dataclasses.dataclass
class Hits:
    """Hits as fast as they come, of one thread and of two."""

    lab: object
    what: str
    # Of testdata/targets: its name, the probe, and the argument that selects it.
    source: str
    probe: str
    kind: str
    # Of a thread.
    count: int
    options: list

    def take(self, build):
        program = self.lab.target(self.source)
        file = build.file("hits")
        event = ["-e", f"sdt_{self.probe}@{program}", *self.options]
        recorder = Recorder(build, "-m", RING, "-a", "-o", file, *event).until_ready()
        cpu = recorder.process.cpu()
        # How much room stacks need is learned by the first of them.
        self.hit(program, 100, 1)
        time.sleep(0.05)
        taken = {threads: self.hit(program, self.count, threads) for threads in THREADS}
        totals = recorder.stop()
        figures = {(f"a hit, {self.what}, {threads} thread{'s' * (threads > 1)}", NANOSECONDS): ns for threads, ns in taken.items()}
        if "--filter" not in self.options:
            hits = 100 + self.count * sum(THREADS)
            if totals.events + totals.lost != hits:
                raise Failed(f"{recorder.process.what}: {totals.events} events and {totals.lost} lost of {hits} hits")
            if totals.lost:
                self.lab.note(f"hits, {self.what}", f"{build.label} lost some")
            figures[f"an event, {self.what}: the recorder's CPU", NANOSECONDS] = (totals.cpu - cpu) / totals.events
            figures[f"an event, {self.what}: in the file", BYTES] = file.stat().st_size / totals.events
        return figures

    def hit(self, program, count, threads):
        """CPU time of a hit, in seconds."""
        with tempfile.TemporaryFile(dir=self.lab.path) as printed:
            arguments = [program, count, threads, self.kind]
            process = Process(self.lab, arguments, stdin=subprocess.PIPE, stdout=printed)
            process.child.stdin.write(b"\n")
            process.finish()
            printed.seek(0)
            _, hits, nanoseconds, _ = printed.read().split()
        return float(nanoseconds) / float(hits) / 1e9


def cases(lab, _):
    schema = lab.path / "hot.toml"
    schema.write_text(SCHEMA)
    integers = ["--strings=off"]
    return [
        Hits(lab, "rejected by `--filter`", "kinds.c", "hot:req", "req", 40_000, [*integers, "--filter", "arg1 < 0"]),
        Hits(lab, "four integers", "kinds.c", "hot:req", "req", 40_000, integers),
        Hits(lab, "three integers and a string", "kinds.c", "hot:url", "url", 30_000, ["--schema", schema]),
        Hits(lab, "a stack of 14 frames (`-g`)", "deep.c", "deep:hit", "10", 8_000, ["-g"]),
    ]
