"""From the start of a recorder to the first hit that it records."""

import subprocess
import time

from .process import Process
from .recorder import Recorder
from .unit import MILLISECONDS

# Hits after the recorder says that it is ready.
MORE = 5
PAUSE = 0.0003


class Starting:
    """A program hits a probe all the time, and which hit is the first recorded is known by how many are recorded."""

    def __init__(self, ticker, program, options):
        self.ticker, self.program, self.options = ticker, program, options
        self.what = f"`{' '.join(['record', *options])}`"

    def take(self, build):
        arguments = [*self.options, "-p", self.ticker.pid, "-o", build.file("started")]
        recorder = Recorder(build, *arguments, "-e", f"sdt_ticker:tick@{self.program}")
        moments = []
        more = MORE
        while more:
            more -= recorder.is_ready()
            moments.append((recorder.process.elapsed(), recorder.process.cpu()))
            self.ticker.hit()
            time.sleep(PAUSE)
        totals = recorder.stop()
        elapsed, cpu = moments[-totals.events - totals.lost]
        return {
            (f"{self.what}: start to the first hit recorded", MILLISECONDS): elapsed,
            (f"{self.what}: the same, CPU", MILLISECONDS): cpu,
        }


class Ticker:
    """The target that waits for commands."""

    def __init__(self, lab, program):
        self.process = Process(lab, [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid

    def hit(self):
        child = self.process.child
        child.stdin.write(b"fire 1\n")
        child.stdin.flush()
        while child.stdout.readline() != b"done\n":
            pass


def cases(lab, _):
    program = lab.target("ticker.c")
    ticker = Ticker(lab, program)
    return [Starting(ticker, program, []), Starting(ticker, program, ["-g"])]
