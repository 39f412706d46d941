"""How figures are written."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Unit:
    name: str
    # Of seconds, or of bytes.
    scale: float
    digits: int
    more: str = "slower"
    less: str = "faster"

    def text(self, value):
        return f"{value * self.scale:.{self.digits}f}"


MILLISECONDS = Unit("ms", 1e3, 2)
NANOSECONDS = Unit("ns", 1e9, 0)
BYTES = Unit("bytes", 1, 2, "larger", "smaller")
