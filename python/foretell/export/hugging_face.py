"""What the exporter knows of transformers: pluggable attention and experts, labels, example inputs.

transformers decides at run time whether attention needs a mask, by looking at its values; tracing cannot look, so that a
traced model always builds and passes one. What people run does not. Here both attention and the mask are answered the way
the running model would: no mask where nothing is padded, the window and the cap as figures, and one node per layer.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from . import operators
from .compat import older_masks
from .errors import ExportError
from .scan import SCAN, in_one

__all__ = ["Context", "example_inputs", "is_hugging_face", "prepared", "traces_masks", "with_labels"]

OURS = "foretell"
_FUSED = {"sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention"}
_EXPERT_WAYS = {"eager", "grouped_mm", "batched_mm", "deepgemm", "sonicmoe"}


@dataclass
class Context:
    """What the example inputs say about the model's masks."""

    padded: bool = False  # the attention mask among the example inputs hides something
    always: bool = False  # the model's code reads its mask by itself, and has it made whatever it hides: an indexer's


_context = Context()


class _Never(float):
    """A probability below every random number: comparing a tensor with it needs no look at the tensor.

    Layers that are dropped at random (``layerdrop``) ask ``torch.rand([]) < self.layerdrop`` in training, or whether it
    is greater.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> bool:
        below = getattr(func, "__name__", "").strip("_") in ("lt", "le", "less", "less_equal")
        return below == (len(args) > 0 and isinstance(args[0], _Never))


def traces_masks(model: torch.nn.Module) -> bool:
    """Whether a module's code makes a mask for every pair of tokens when a compiler traces it, though none is hidden.

    transformers' encoders call ``create_bidirectional_mask``, which leaves the mask out only where it can look.
    """
    owners = {type(module).__module__ for module in model.modules()}
    return any(hasattr(sys.modules.get(name), "create_bidirectional_mask") for name in owners)


def _undropped(owner: Any) -> list[str]:
    """Names of the probabilities at which a module or a config drops whole layers."""
    return [
        name
        for name, value in vars(owner).items()
        if name.endswith("layerdrop") and isinstance(value, (int, float)) and not isinstance(value, bool)
    ]


# What transformers asks to see whether it is being exported: exported graphs then get code that runs elsewhere (a loop
# in place of a triangular solver). What people run does not.
_ASKS = ("is_torchdynamo_exporting", "is_torchdynamo_compiling")


def is_hugging_face(model: object) -> bool:
    """Whether this is one of transformers' models; transformers is not imported for the question."""
    module = sys.modules.get("transformers")
    base = getattr(module, "PreTrainedModel", None) if module is not None else None
    return base is not None and isinstance(model, base)


def inside(model: torch.nn.Module) -> bool:
    """Whether a transformers model is this one or a part of it (adapters, wrappers)."""
    return any(is_hugging_face(module) for module in model.modules())


# -- attention and experts ---------------------------------------------------------------------------


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    position_bias: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    causal = bool(causal) and query.shape[2] > 1 and query.shape[2] == key.shape[2]
    if position_bias is not None:
        attention_mask = _biased(position_bias, attention_mask, causal, query, key)
    y = operators.attention(
        query,
        key,
        value,
        attention_mask,
        causal,
        attention_mask is not None,
        int(sliding_window or 0),
        float(softcap or 0.0),
        float(dropout or 0.0),
        float(scaling or 0.0),
    )
    return y, None


def _biased(
    bias: torch.Tensor, mask: torch.Tensor | None, causal: bool, query: torch.Tensor, key: torch.Tensor
) -> torch.Tensor:
    """Position biases as the mask that sdpa gets, made as this release of transformers makes it: how it lies in memory
    decides whether a fused kernel takes it."""
    from transformers.integrations import sdpa_attention

    made = getattr(sdpa_attention, "create_position_bias_mask", None)
    if made is not None:
        return made(bias, mask, causal and mask is None, query, key)
    return bias if mask is None else bias + mask


class _GeluAgain:
    """bloom's GELU: an autograd function that keeps its input and computes the rest again when it goes back."""

    @staticmethod
    def apply(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            half = x * 0.5
            inner = 1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        return operators.gelu_again(x, half, inner)


def _mask(*args: Any, **kwargs: Any) -> torch.Tensor | None:
    """No mask where a running model would find that it hides nothing that ``causal`` and the window do not hide."""
    from transformers import masking_utils

    hides = kwargs.get("attention_mask") is not None and _context.padded
    if hides or kwargs.get("use_vmap") or (_context.always and kwargs.get("allow_is_causal_skip") is False):
        return masking_utils.sdpa_mask(*args, **kwargs)
    return None


def _makes_masks(source: str) -> bool:
    """Whether this module's code asks for a mask even where it hides nothing that is not hidden anyway."""
    try:
        return "allow_is_causal_skip" in inspect.getsource(sys.modules[source])
    except (KeyError, OSError, TypeError):
        return False


def _hides_nothing(padding_mask: Any, kv_length: int, local_attention_size: int | None = None, *_: Any) -> bool:
    """What masking_utils._ignore_bidirectional_mask_sdpa finds when it may look: written-out attention asks it too."""
    near = local_attention_size is not None and kv_length >= local_attention_size
    return not near and (padding_mask is None or not _context.padded)


def _activation_name(act: Any) -> str:
    """What configs call a function: graph files know it by that name, not by its class's."""
    from transformers.activations import ACT2CLS

    for name, made in ACT2CLS.items():
        if (made[0] if isinstance(made, tuple) else made) is type(act):
            return str(name)
    return type(act).__name__.lower()


def _run_experts(
    self: torch.nn.Module, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> torch.Tensor:
    gated = bool(getattr(self, "has_gate", True))
    up: Any = self.gate_up_proj if gated else self.up_proj
    across = bool(getattr(self, "is_transposed", False))
    wide = up.shape[-1] if across else up.shape[-2]
    bias = bool(getattr(self, "has_bias", False))
    name = "gate_up_proj_bias" if gated else "up_proj_bias"
    act = getattr(self, "act_fn", None)
    return operators.experts(
        hidden_states,
        top_k_index,
        top_k_weights,
        up,
        self.down_proj,
        getattr(self, name) if bias else None,
        self.down_proj_bias if bias else None,
        wide // 2 if gated else wide,
        gated,
        "clamped" if act is None else _activation_name(act),
    )


def _register() -> None:
    import transformers

    interface = getattr(transformers, "AttentionInterface", None)
    if interface is not None:
        interface.register(OURS, _attend)
    masks = getattr(transformers, "AttentionMaskInterface", None)
    if masks is not None:
        masks.register(OURS, _mask)
    with contextlib.suppress(ImportError, AttributeError):
        from transformers.integrations import moe

        moe.ALL_EXPERTS_FUNCTIONS.register(OURS, _run_experts)


def _pluggable(model: torch.nn.Module) -> bool:
    """Whether this model class asks the attention interface at all; older ones choose a class when they are made."""
    if not hasattr(sys.modules["transformers"], "AttentionInterface"):
        return False
    source = sys.modules.get(type(model).__module__)
    return source is not None and hasattr(source, "ALL_ATTENTION_FUNCTIONS")


@contextlib.contextmanager
def prepared(model: torch.nn.Module, padded: bool) -> Iterator[list[str]]:
    """The model with our attention and experts; everything is put back afterwards. Yields warnings."""
    warnings: list[str] = []
    if not inside(model):
        yield warnings
        return
    _register()
    undo: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        undo.append((owner, name, owner.__dict__.get(name, undo)))
        owner.__dict__[name] = value

    written_out = sys.modules.get("transformers.masking_utils")
    if hasattr(written_out, "_ignore_bidirectional_mask_sdpa"):
        put(written_out, "_ignore_bidirectional_mask_sdpa", _hides_nothing)
    seen: set[int] = set()
    for source in {type(module).__module__ for module in model.modules()}:
        if source.endswith("modeling_bloom") and hasattr(sys.modules[source], "GeLUFunction"):
            put(sys.modules[source], "GeLUFunction", _GeluAgain)
        if hasattr(sys.modules.get(source), SCAN):
            put(sys.modules[source], SCAN, in_one(getattr(sys.modules[source], SCAN)))
        if hasattr(sys.modules.get(source), _ASKS[0]):
            for name in _ASKS:
                if hasattr(sys.modules[source], name):
                    put(sys.modules[source], name, lambda: False)
    for module in model.modules():
        for name in _undropped(module):
            put(module, name, _Never(0.0))
        if not is_hugging_face(module):
            continue
        config = module.config
        if id(config) in seen:
            continue
        seen.add(id(config))
        for name in _undropped(config):
            put(config, name, _Never(0.0))
        if getattr(config, "_attn_implementation", None) in _FUSED and _pluggable(module):
            put(config, "_attn_implementation_internal", OURS)
        way = getattr(config, "_experts_implementation", None)
        if way in _EXPERT_WAYS and getattr(type(module), "_can_set_experts_implementation", lambda: False)():
            if way == "eager":
                warnings.append("a Python loop over experts is taken as the grouped products of newer transformers")
            put(config, "_experts_implementation_internal", OURS)
    before = _context.padded, _context.always
    sources = {type(module).__module__ for module in model.modules()}
    _context.padded, _context.always = padded, any(map(_makes_masks, sources))
    old = not hasattr(sys.modules["transformers"], "AttentionMaskInterface")
    masks = older_masks([sys.modules[s] for s in sources if s in sys.modules], padded) if old else contextlib.nullcontext()
    try:
        with masks:
            yield warnings
    finally:
        _context.padded, _context.always = before
        for owner, name, value in reversed(undo):
            if value is undo:
                owner.__dict__.pop(name, None)
            else:
                owner.__dict__[name] = value


# -- inputs ------------------------------------------------------------------------------------------


def _label_shape(model: Any, inputs: dict[str, Any]) -> torch.Tensor | None:
    """Labels of the shape that the model's head takes, or None when it is not known."""
    name = type(model).__name__
    ids = inputs.get("input_ids")
    images = inputs.get("pixel_values")
    if "ForConditionalGeneration" in name or "Seq2Seq" in name:
        ids = inputs.get("decoder_input_ids", ids)
    if "ForImageClassification" in name and images is not None:
        return images.new_zeros((images.shape[0],), dtype=torch.long)
    if "ForSequenceClassification" in name and ids is not None:
        return ids.new_zeros((ids.shape[0],))
    language = ("CausalLM", "LMHeadModel", "MaskedLM", "ConditionalGeneration", "TokenClassification", "PreTraining")
    if ids is not None and any(word in name for word in language):
        return torch.zeros_like(ids)
    return None


def with_labels(model: Any, inputs: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Inputs of a training step: with labels, so that the loss is the model's own, and without a cache."""
    known = inspect.signature(model.forward).parameters
    out = dict(inputs)
    if "return_loss" in known and "labels" not in known:
        out.setdefault("return_loss", True)
    elif "labels" in known and out.get("labels") is None:
        labels = _label_shape(model, out)
        if labels is not None:
            out["labels"] = labels
            if "ForConditionalGeneration" in type(model).__name__:
                out.pop("decoder_input_ids", None)
            warnings.append("no labels among the example inputs: labels like the tokens are taken")
    return out


def example_inputs(model: Any, batch: int = 1, seq: int = 128, *, task: str = "train") -> dict[str, torch.Tensor]:
    """Inputs of the shapes that a Hugging Face model takes, on the meta device.

    >>> import torch, transformers
    >>> from foretell.export import example_inputs
    >>> with torch.device("meta"):
    ...     model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2))
    >>> {name: tuple(x.shape) for name, x in example_inputs(model, 2, 64).items()}
    {'input_ids': (2, 64), 'labels': (2, 64)}
    """
    if not is_hugging_face(model):
        raise ExportError("example_inputs makes inputs of transformers models alone", where="model")
    config, train = model.config, task == "train"
    main = getattr(model, "main_input_name", "input_ids")
    kind = getattr(config, "model_type", "")
    dtype = next((p.dtype for p in model.parameters()), torch.float32)

    def tokens(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.long, device="meta")

    def numbers(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device="meta")

    inputs: dict[str, Any] = {}
    if kind == "whisper":
        inputs["input_features"] = numbers(batch, config.num_mel_bins, 2 * config.max_source_positions)
        inputs["labels" if train else "decoder_input_ids"] = tokens(batch, seq)
        return inputs
    if kind in ("clip", "siglip"):
        size = config.vision_config.image_size
        inputs = {"input_ids": tokens(batch, seq), "pixel_values": numbers(batch, 3, size, size)}
        if train:
            inputs["return_loss"] = True
        return inputs
    if main == "pixel_values":
        size = getattr(config, "image_size", None) or 224
        size = size if isinstance(size, int) else size[0]
        inputs["pixel_values"] = numbers(batch, getattr(config, "num_channels", 3) or 3, size, size)
    elif main == "input_values":
        inputs["input_values"] = numbers(batch, seq)
    else:
        inputs["input_ids"] = tokens(batch, seq)
    if getattr(config, "is_encoder_decoder", False):
        inputs["labels" if train else "decoder_input_ids"] = tokens(batch, seq)
    elif train:
        inputs = with_labels(model, inputs, [])
    return inputs
