"""How a collection of library modules is written down, shared by library_*.py: a case is a name and a function that gives a
module and its inputs, made by `made` (numbers) and `tokens` (whole ones). Libraries are imported where a case is built, so
that a collection can be listed without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

Made = Callable[..., Tensor]
Makes = Callable[[Made, Made], tuple[nn.Module, tuple[Any, ...]]]
Case = tuple[str, Makes]
# name, family, head, what differs from its default config, inputs
Row = tuple[str, str, str, dict[str, Any], dict[str, tuple[int, ...]]]


class Picked(nn.Module):
    """A library's model whose result is one tensor, given named inputs in this order."""

    def __init__(self, model: nn.Module, names: tuple[str, ...] = (), key: str | int | None = None) -> None:
        super().__init__()
        self.model, self.names, self.key = model, names, key

    def forward(self, *inputs: Tensor) -> Tensor:
        given = dict(zip(self.names, inputs, strict=True)) if self.names else {}
        out = self.model(**given) if given else self.model(*inputs)
        if self.key is None and getattr(out, "loss", None) is not None:
            return out.loss  # type: ignore[no-any-return]
        return out if isinstance(out, Tensor) else out[0 if self.key is None else self.key]  # type: ignore[no-any-return]


class Decodes(nn.Module):
    """The second half of an autoencoder of diffusers."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.decode(x).sample  # type: ignore[no-any-return, operator]


def timm_case(name: str, batch: int, side: int, last: bool) -> Case:
    """Pictures through a model of timm, channels last or not."""

    def make(made: Made, tokens: Made) -> Any:
        import timm

        model, x = timm.create_model(name), made(batch, 3, side, side)
        if last:
            model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        return model, (x,)

    return f"timm {name} b{batch}", make


def torchvision_case(name: str, batch: int, side: int, **more: Any) -> Case:
    def make(made: Made, tokens: Made) -> Any:
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **more), (made(batch, 3, side, side),)

    return f"torchvision {name} b{batch}", make


def hugging_face_case(name: str, family: str, head: str, config: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> Case:
    """A model of transformers by its family's config; ids and labels are whole numbers, other inputs are not."""

    def make(made: Made, tokens: Made) -> Any:
        import transformers

        kind = f"{family}{'Text' if family == 'Gemma3' else ''}Config"
        model = getattr(transformers, family + head)(getattr(transformers, kind)(**config))
        whole = ("input_ids", "labels")
        inputs = tuple(tokens(*shape, below=30000) if key in whole else made(*shape) for key, shape in shapes.items())
        return Picked(model, tuple(shapes)), inputs

    return f"transformers {name}", make


def adapted(family: str, config: dict[str, Any], adapter: Callable[[], Any]) -> Makes:
    """A decoder of transformers with an adapter of peft, two sequences of 1024 words."""

    def make(made: Made, tokens: Made) -> Any:
        import transformers
        from peft import get_peft_model

        model = getattr(transformers, f"{family}ForCausalLM")(getattr(transformers, f"{family}Config")(**config))
        inputs = (tokens(2, 1024, below=50000), tokens(2, 1024, below=50000))
        return Picked(get_peft_model(model, adapter()), ("input_ids", "labels")), inputs

    return make


def in_turn(*libraries: Iterable[Case]) -> dict[str, Makes]:
    """One of each library after another, so that a measurement that runs out of time has some of every one."""
    each = [list(library) for library in libraries]
    return dict(cases[rank] for rank in range(max(map(len, each))) for cases in each if rank < len(cases))
