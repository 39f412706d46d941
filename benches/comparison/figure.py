"""A figure of both builds: its values, round by round, and their ratio."""

import statistics

from .unit import Unit

# Rounds from which on a spread says something.
ENOUGH = 10


def percentile(values, part):
    """Between the two nearest ranks, in proportion."""
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


class Figure:
    """Something of which less is better."""

    def __init__(self, unit: Unit):
        self.unit = unit
        self.values = {}

    def add(self, label, value):
        self.values.setdefault(label, []).append(value)

    def cells(self, labels):
        """Rounds; minimum and median of each build; the ratio, its spread, and what they say."""
        cells = [str(max(map(len, self.values.values())))]
        for label in labels:
            values = self.values.get(label)
            cells += [self.unit.text(min(values)), self.unit.text(statistics.median(values))] if values else ["", ""]
        return cells + self.comparison(*(self.values.get(label, []) for label in labels))

    def comparison(self, old, new):
        ratios = [after / before for before, after in zip(old, new) if before > 0]
        if not ratios:
            return ["", "", ""]
        low, high = percentile(ratios, 0.05), percentile(ratios, 0.95)
        word = ""
        if len(ratios) >= ENOUGH:
            word = self.unit.more if low > 1 else self.unit.less if high < 1 else ""
        return [f"{statistics.median(ratios):.2f}", f"{low:.2f} to {high:.2f}", word]
