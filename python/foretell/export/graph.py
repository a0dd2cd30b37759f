"""The exporter's result."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Graph"]


@dataclass(frozen=True)
class Graph:
    """A captured model: a graph file, and what is known of it.

    ``document`` is the file's object; ``foretell train x.ft.json`` and ``"model"`` of a request take it.
    """

    document: dict[str, Any] = field(repr=False)
    task: str
    parameters: int
    trained_parameters: int
    flops: float  # of one forward pass at the example's sizes
    batch: int | None = None  # of the example inputs
    seq: int | None = None
    dynamic: bool = False  # sizes follow the request's batch and seq
    recompute: str = "none"  # "full" where the model checkpoints its layers
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.document["name"])

    @property
    def blocks(self) -> int:
        return len(self.document["blocks"])

    @property
    def nodes(self) -> int:
        return sum(len(block["nodes"]) for block in self.document["blocks"])

    @property
    def request(self) -> dict[str, Any]:
        """What a request for this model should say unless it says otherwise."""
        out: dict[str, Any] = {"task": self.task}
        if self.batch is not None:
            out["batch"] = self.batch
        if self.seq is not None:
            out["seq"] = self.seq
        if self.recompute != "none" and self.task == "train":
            out["recompute"] = self.recompute
        return out

    def to_dict(self) -> dict[str, Any]:
        return self.document

    def to_json(self) -> str:
        """One node a line: files are read and compared by people too."""
        head = {k: v for k, v in self.document.items() if k != "blocks"}
        lines = [json.dumps(head, indent=1)[:-2] + ",", ' "blocks": [']
        for i, block in enumerate(self.document["blocks"]):
            about = json.dumps({k: v for k, v in block.items() if k != "nodes"})
            lines.append(f'  {about[:-1]}, "nodes": [')
            nodes = [f"   {json.dumps(node)}" for node in block["nodes"]]
            lines.append(",\n".join(nodes))
            lines.append("  ]}" + ("," if i + 1 < len(self.document["blocks"]) else ""))
        return "\n".join([*lines, " ]", "}", ""])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the graph file; by habit its name ends in ``.ft.json``."""
        target = Path(path)
        target.write_text(self.to_json(), encoding="utf-8")
        return target

    def __str__(self) -> str:
        sizes = "any batch and sequence" if self.dynamic else f"batch {self.batch}, seq {self.seq}"
        text = f"{self.name}: {self.parameters / 1e6:,.1f} M parameters, {self.flops / 1e12:.3g} TFLOP forward ({sizes}), "
        return text + f"{self.nodes} operators in {self.blocks} blocks"
