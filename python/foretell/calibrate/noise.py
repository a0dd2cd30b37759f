"""Is the machine quiet? A kernel that never changes is timed again and again."""

from __future__ import annotations

import statistics

STILL, DRIFTED = 0.03, 0.06  # what the references may scatter, and wander from where they began
FIRST = 5  # readings at the start


class Quiet:
    def __init__(self) -> None:
        self._readings: dict[str, list[float]] = {}

    def add(self, readings: dict[str, float]) -> str | None:
        """A sentence when this reading is out of the ordinary; None while all is quiet."""
        said = []
        for name, ms in readings.items():
            seen = self._readings.setdefault(name, [])
            if len(seen) >= FIRST:
                usual = statistics.median(seen)
                if abs(ms / usual - 1.0) > DRIFTED:
                    said.append(f"the reference {name} took {ms:.4g} ms, usually {usual:.4g}")
            seen.append(ms)
        return "; ".join(said) or None

    def spread(self) -> float:
        """The largest relative spread of a reference: the middle four fifths over the median."""
        worst = 0.0
        for seen in self._readings.values():
            if len(seen) >= 3:
                tenths = statistics.quantiles(seen, n=10, method="inclusive")
                worst = max(worst, (tenths[-1] - tenths[0]) / statistics.median(seen))
        return worst

    @property
    def noisy(self) -> bool:
        return self.spread() > 2 * STILL
