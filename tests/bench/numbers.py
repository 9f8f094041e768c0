"""What the operator's metrics say, as Prometheus reads them."""

import re

LINE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$", re.MULTILINE)


class Numbers:
    """What the operator said about itself at one moment."""

    def __init__(self, text: str) -> None:
        self._series = [
            (m["name"], dict(re.findall(r'(\w+)="([^"]*)"', m["labels"] or "")), float(m["value"]))
            for m in LINE.finditer(text)
        ]

    def sum(self, name: str, **labels: str) -> float:
        found = (each for each in self._series if each[0] == f"sandpod_operator_{name}")
        return sum(value for _, given, value in found if labels.items() <= given.items())

    @property
    def settled(self) -> bool:
        """All had been read, and nothing waited to be looked at. False also when it had no time to say so."""
        waiting = self.sum("queue_depth") + self.sum("queue_oldest_seconds")
        return self.sum("synced") == 1 and waiting == 0

    @property
    def converged(self) -> bool:
        """It has read all there is, and every sandbox was looked at."""
        return self.settled and self.sum("reconciles_total") >= self.sum("sandboxes")

    def by(self, name: str, *labels: str) -> dict[str, float]:
        found = (each for each in self._series if each[0] == f"sandpod_operator_{name}")
        return {" ".join(given.get(label, "") for label in labels): value for _, given, value in found}
