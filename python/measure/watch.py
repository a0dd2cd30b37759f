"""Clock, power and temperature of the GPU beside what runs on it."""
from __future__ import annotations

import subprocess
import threading
import time


class Watch(threading.Thread):
    """Clock, power and temperature, five times a second."""

    QUERY = "--query-gpu=clocks.sm,power.draw,temperature.gpu"

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.samples: list[tuple[float, list[float]]] = []
        self.start()

    def run(self) -> None:
        command = ["nvidia-smi", self.QUERY, "--format=csv,noheader,nounits", "-lms", "200"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as smi:
            for line in smi.stdout or ():
                self.samples.append((time.time(), [float(x) for x in line.split(",")]))

    def since(self, began: float) -> list[list[float]]:
        """[seconds, MHz, W, degrees] of what was seen since a moment."""
        return [[round(at - began, 2), *sample] for at, sample in self.samples if began <= at]
