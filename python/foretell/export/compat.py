"""Everything that differs between the PyTorch and transformers versions that the exporter supports (2.6 to 2.11).

No other module of the exporter asks for a version.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch

from ..errors import ExportError

__all__ = [
    "autocast_on_meta",
    "check_torch",
    "inlined",
    "keeps_deepcopy",
    "older_masks",
    "quiet",
    "run_export",
    "torch_version",
    "unwrap_subgraph",
]

OLDEST = (2, 6)

# Regions that tracing puts into graphs of their own, and at which argument the graph and its operands begin.
# Their bodies run where they stand: a block under no_grad or autocast(enabled=False), a checkpointed layer.
_REGIONS = {
    "wrap_with_set_grad_enabled": (1, 2),
    "wrap_with_autocast": (4, 5),
    "wrap": (0, 1),
    "tag_activation_checkpoint": (0, 1),
    "wrap_activation_checkpoint": (0, 1),
    "inline_asm_elementwise": (0, 1),
}


def torch_version() -> tuple[int, int]:
    """(2, 11) for 2.11.0+cu130."""
    numbers = torch.__version__.split("+")[0].split(".")
    return int(numbers[0]), int(numbers[1])


def check_torch() -> None:
    """Refuses versions without the export that this package reads."""
    if torch_version() < OLDEST:
        raise ExportError(
            f"PyTorch {torch.__version__} is too old: its torch.export takes products and attention apart; "
            f"{OLDEST[0]}.{OLDEST[1]} or newer is needed",
            where="torch",
        )


def run_export(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.export`` before any decomposition: linear, attention and norms stay whole.

    Until 2.8 ``export`` gave inference graphs by default, in which composite operators are taken apart;
    ``export_for_training`` was the one that keeps them.
    """
    training = getattr(torch.export, "export_for_training", None)
    export = training if training is not None and torch_version() < (2, 9) else torch.export.export
    options: dict[str, Any] = {"strict": False}
    known = inspect.signature(export).parameters
    return export(module, args, kwargs, **{k: v for k, v in options.items() if k in known})


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """torch.export logs each failure at length and prints every frame; the exporter says the same in a sentence."""
    import logging
    import warnings

    from torch.export import _trace

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    _trace.print = lambda *_, **__: None  # type: ignore[attr-defined]  # the graph so far, on stderr
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        del _trace.print  # type: ignore[attr-defined]
        logging.disable(before)


@contextlib.contextmanager
def autocast_on_meta() -> Iterator[None]:
    """``torch.autocast("meta", enabled=False)``, which models write for whatever device they run on, is an error until
    2.9; the CPU's stands in for it."""
    from torch.amp import autocast_mode

    before = autocast_mode.autocast.__init__

    def init(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        before(self, "cpu" if device_type == "meta" else device_type, *args, **kwargs)

    autocast_mode.autocast.__init__ = init  # type: ignore[method-assign]
    try:
        yield
    finally:
        autocast_mode.autocast.__init__ = before  # type: ignore[method-assign]


@contextlib.contextmanager
def older_masks(modules: list[Any], padded: bool) -> Iterator[None]:
    """transformers before 4.53 has no interface for masks: its helpers look whether anybody is tracing instead. Where
    nothing is padded they are answered as a running model would answer them."""
    import sys

    converters = sys.modules.get("transformers.modeling_attn_mask_utils")
    undo: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        undo.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    if converters is not None and not padded:
        converter = converters.AttentionMaskConverter
        if "_ignore_causal_mask_sdpa" in converter.__dict__:
            put(converter, "_ignore_causal_mask_sdpa", staticmethod(lambda *_, **__: True))
        for name in ("_prepare_4d_attention_mask_for_sdpa", "_prepare_4d_causal_attention_mask_for_sdpa"):
            for module in modules:
                if name in module.__dict__:
                    put(module, name, lambda *_, **__: None)
    try:
        yield
    finally:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)


def unwrap_subgraph(target: Any) -> tuple[int, int] | None:
    """Where a higher-order operator keeps its body and its operands, or None when it is not a plain region."""
    name = getattr(target, "_name", None) or getattr(target, "__name__", "")
    return _REGIONS.get(str(name))


def inlined(target: Any) -> str:
    """The region's name, for messages and for what it says about its body."""
    return str(getattr(target, "_name", None) or getattr(target, "__name__", target))


def keeps_deepcopy(error: BaseException) -> bool:
    """Whether an error is one that copying a module gives when a part of it cannot be copied."""
    return isinstance(error, (TypeError, RuntimeError, AttributeError, NotImplementedError, ValueError))
