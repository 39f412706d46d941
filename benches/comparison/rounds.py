"""Alternating rounds of both builds."""

import dataclasses
import time
from collections.abc import Callable

from .process import Failed
from .table import Table

MOST = 30
# If there is time for so many.
LEAST = 3
# Where only one of the builds can do it, there is nothing to compare.
MOST_OF_ONE = 5


@dataclasses.dataclass
class Case:
    """Something that a build does. `take` gives its figures: values, in seconds or bytes, by name and unit."""

    what: str
    take: Callable


@dataclasses.dataclass
class Plan:
    """A case, the builds that can do it, and how many rounds it has, at most as long as so many seconds are not used up."""

    case: Case
    builds: list
    least: int
    most: int
    share: float
    used: float

    def has_round(self, number):
        return number < self.least or number < self.most and self.used < self.share


class Rounds:
    def __init__(self, lab, pair, table: Table):
        self.lab, self.pair, self.table = lab, pair, table
        self.begin = time.monotonic()
        # Whether only OLD can do something.
        self.lacks_something = False

    def elapsed(self):
        return time.monotonic() - self.begin

    def run(self, cases, end):
        """Rounds of all cases until so many seconds after the beginning, of which each has its share."""
        share = max(end - self.elapsed(), 0) / len(cases)
        plans = [self.plan(case, share) for case in cases]
        for number in range(MOST):
            for plan in plans:
                if plan.has_round(number):
                    begin = self.elapsed()
                    self.round(plan.case, plan.builds if number % 2 == 0 else plan.builds[::-1])
                    plan.used += self.elapsed() - begin

    def plan(self, case, share):
        """Runs a case once, which counts for nothing else: caches are empty."""
        begin = self.elapsed()
        builds = [build for build in self.pair if self.can(case, build)]
        used = self.elapsed() - begin
        self.lacks_something |= builds == self.pair[:1]
        least, most = (LEAST, MOST) if builds == self.pair else (1, MOST_OF_ONE)
        return Plan(case, builds, least if used * LEAST < share else 1, most, share, used)

    def can(self, case, build):
        try:
            self.take(case, build)
        except Failed as failed:
            self.lab.note(case.what, f"not in {build.label}: {failed}")
            return False
        return True

    def round(self, case, builds):
        """A run of each build; of all or of none, so that the values stay pairs."""
        try:
            taken = [(build, self.take(case, build)) for build in builds]
        except Failed as failed:
            self.lab.note(case.what, f"a round is left out: {failed}")
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
