"""The table that is printed."""

from .figure import Figure


class Table:
    def __init__(self, labels):
        self.labels = labels
        self.figures = {}

    def add(self, name, unit, label, value):
        self.figures.setdefault((name, unit), Figure(unit)).add(label, value)

    def print(self, notes):
        heads = ["", "unit", "rounds"]
        heads += [f"{label}, {what}" for label in self.labels for what in ("minimum", "median")]
        heads += ["ratio", "5 % to 95 %", ""]
        print_row(heads)
        print_row(["---", "---", *["---:"] * (len(heads) - 3), "---"])
        for (name, unit), figure in self.figures.items():
            print_row([name, unit.name, *figure.cells(self.labels)])
        print()
        for text, whats in notes.items():
            print(f"* {', '.join(whats)}: {text}")


def print_row(cells):
    print(f"| {' | '.join(cells)} |")
