"""A figure of both builds: its values, round by round, and their ratio."""

import math
import statistics

from .unit import Unit

# Rounds from which on all of them on one side of 1 are no accident.
ENOUGH = 8
# How seldom an interval of the median is beside it by accident: a table has about 50.
SELDOM = 0.005


def percentile(values, part):
    """Between the two nearest ranks, in proportion."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def of_median(values):
    """An interval that has the median of all rounds that there could be, by ranks; of few rounds, from the least to the greatest."""
    ordered = sorted(values)
    count, rank, outside = len(ordered), 0, 1
    while 2 * (outside + math.comb(count, rank + 1)) <= SELDOM * 2**count:
        rank += 1
        outside += math.comb(count, rank)
    return ordered[rank], ordered[count - 1 - rank]


class Figure:
    """Something of which less is better."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.values = {}

    def add(self, label, value):
        self.values.setdefault(label, []).append(value)

    def cells(self, labels):
        """Rounds; minimum and median of each build; the ratio of NEW to OLD, its spread, and what they say."""
        cells = [str(max(map(len, self.values.values())))]
        for label in labels:
            values = self.values.get(label)
            cells += [self.unit.text(min(values)), self.unit.text(statistics.median(values))] if values else ["", ""]
        missing = [label for label in labels if label not in self.values]
        if missing:
            return [*cells, "", "", f"not in {missing[0]}"]
        old, new = (self.values[label] for label in labels)
        ratios = [after / before for before, after in zip(old, new)]
        spread = percentile(ratios, 0.05), percentile(ratios, 0.95)
        return [*cells, f"{statistics.median(ratios):.2f}", "{:.2f} to {:.2f}".format(*spread), self.verdict(ratios, spread)]

    def verdict(self, ratios, spread):
        """What is said only if a whole interval is on one side of 1."""
        if len(ratios) < ENOUGH:
            return ""
        for prefix, (low, high) in ("", spread), ("perhaps ", of_median(ratios)):
            if low > 1 or high < 1:
                return prefix + (self.unit.more if low > 1 else self.unit.less)
        return ""
