"""Alternating rounds of both builds."""

import dataclasses
import time
from collections.abc import Callable

from .process import Failed
from .table import Table

MOST = 30
LEAST = 3
# Where only one of the builds can do it, there is nothing to compare.
OF_ONE = 5


@dataclasses.dataclass
class Case:
    """Something that a build does. `take` gives its figures: values, in seconds or bytes, by name and unit."""

    what: str
    take: Callable


class Rounds:
    def __init__(self, lab, pair, table: Table):
        self.lab, self.pair, self.table = lab, pair, table
        self.begin = time.monotonic()
        # Whether only OLD can do something.
        self.lacks_something = False

    def elapsed(self):
        return time.monotonic() - self.begin

    def run(self, cases, end):
        """Rounds of all cases until so many seconds after the beginning."""
        able = [(case, [build for build in self.pair if self.tried(case, build)]) for case in cases]
        self.lacks_something |= any(builds == self.pair[:1] for _, builds in able)
        for number in range(MOST):
            if number >= LEAST and self.elapsed() > end:
                break
            for case, builds in able:
                if number < (MOST if len(builds) == len(self.pair) else OF_ONE):
                    self.round(case, builds if number % 2 == 0 else builds[::-1])

    def tried(self, case, build):
        """Whether the build can do it. This first run, which finds caches empty, counts for nothing else."""
        try:
            self.take(case, build)
        except Failed as failed:
            self.lab.note(f"{case.what}: not in {build.label}: {failed}")
            return False
        return True

    def round(self, case, builds):
        try:
            taken = [(build, self.take(case, build)) for build in builds]
        except Failed as failed:
            self.lab.note(f"{case.what}: a round is left out: {failed}")
            return
        for build, figures in taken:
            for (name, unit), value in figures.items():
                self.table.add(name, unit, build.label, value)

    def take(self, case, build):
        before = len(self.lab.processes)
        try:
            return case.take(build)
        except Failed:
            for process in self.lab.processes[before:]:
                process.end()
            raise
