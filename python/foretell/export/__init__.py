"""PyTorch models as graphs that Foretell forecasts.

``export(model, example_inputs)`` captures any ``torch.nn.Module`` on tensors without memory; ``load_pt2`` reads what
``torch.export.save`` wrote; ``example_inputs`` makes inputs for a Hugging Face model.
"""

from __future__ import annotations

from .api import export
from .errors import ExportError
from .graph import Graph
from .hugging_face import example_inputs
from .pt2 import export_program, load_pt2

__all__ = ["ExportError", "Graph", "example_inputs", "export", "export_program", "load_pt2"]
