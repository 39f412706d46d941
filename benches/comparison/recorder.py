"""`usdtrec record` in the background."""

import dataclasses
import re
import signal

from .process import Failed

READY = "[ usdtrec record:"
TOTALS = re.compile(r"(\d+) events?, (\d+) lost")
ATTACHED = re.compile(r"(\d+) probes? at (\d+) sites?")


@dataclasses.dataclass
class Totals:
    """What a recording came to."""

    events: int
    lost: int
    # CPU time of the whole process, in seconds.
    cpu: float


class Recorder:
    def __init__(self, build, *arguments):
        self.process = build.start("record", *arguments)

    def until_ready(self):
        """Waits until all probes are attached, which is the first thing that it says."""
        self.process.until_said(READY)
        return self

    def is_ready(self):
        return self.process.has_said(READY)

    def attached(self):
        """`N probes at N sites`, once it is ready."""
        found = ATTACHED.search(self.process.error_text())
        return found[0] if found else "all probes"

    def interrupt(self):
        self.process.signal(signal.SIGINT)

    def finish(self):
        """What it recorded, when it has ended."""
        cpu = self.process.finish()
        found = TOTALS.search(self.process.error_text())
        if not found:
            raise Failed(f"{self.process.what}: no number of events in {self.process.error_text()!r}")
        return Totals(int(found[1]), int(found[2]), cpu)

    def stop(self):
        self.interrupt()
        return self.finish()
