"""Selective recomputation against PyTorch's own: transformers' layers under torch.utils.checkpoint with torchtitan's
policy (attention and every other product saved), counted operator by operator on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts  # noqa: E402

PROGRAM = Path(os.environ.get("FORETELL_PROGRAM", ROOT / "build" / "foretell"))
ATEN = torch.ops.aten
# Products without and with bias, as overloads; on a GPU attention has other names.
PRODUCTS = (ATEN.mm.default, ATEN.addmm.default)
SAVED = (*PRODUCTS, ATEN._scaled_dot_product_flash_attention_for_cpu.default)
BATCH, SEQ = 2, 64
SIZES = {"hidden_size": 128, "intermediate_size": 384, "num_attention_heads": 4, "vocab_size": 512}
MODELS = {
    "llama": {"model_type": "llama", **SIZES, "num_key_value_heads": 2, "tie_word_embeddings": False},
    "qwen2": {"model_type": "qwen2", **SIZES, "num_key_value_heads": 2, "tie_word_embeddings": False},
    "gpt_neox": {"model_type": "gpt_neox", **SIZES, "use_parallel_residual": False, "tie_word_embeddings": False},
}


class Watch(TorchDispatchMode):
    """Counts products as they run, and keeps weak references to everything that is made but views of parameters."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.parameters = {each.untyped_storage()._cdata for each in model.parameters()}
        self.counts: Counter[str] = Counter()
        self.made: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in PRODUCTS:
            self.counts["product"] += 1
        elif "scaled_dot_product" in str(func):
            self.counts["attention"] += 1
        for each in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(each, torch.Tensor):
                storage = each.untyped_storage()
                if storage._cdata not in self.parameters:
                    self.made[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        return result

    def alive(self) -> int:
        """Bytes of what was made and is still held by somebody."""
        return sum(size for ref, size in self.made.values() if not ref.expired())


def contexts() -> tuple[Any, Any]:
    """The policy: a layer's first product is saved, its second is not, and so on."""
    counts: Counter[bool] = Counter()

    def decide(context: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        if func in PRODUCTS:
            counts[context.is_recompute] += 1
            if counts[context.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if func in SAVED else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(decide)


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(config: dict[str, Any], layers: int) -> tuple[Counter[str], int]:
    """One step of that many layers: what its backward pass ran, and what its forward pass left."""
    made = transformers.AutoConfig.for_model(**config, num_hidden_layers=layers, use_cache=False)
    model = transformers.AutoModelForCausalLM.from_config(made, attn_implementation="sdpa").float()
    model.train()
    model.gradient_checkpointing_enable({"use_reentrant": False, "context_fn": contexts, "preserve_rng_state": False})
    tokens = torch.zeros(BATCH, SEQ, dtype=torch.long)
    with one_thread(), Watch(model) as forward:
        loss = model(tokens, labels=tokens).loss
    left = forward.alive()
    with one_thread(), Watch(model) as backward:
        loss.backward()
    return backward.counts, left


def forecast(config: dict[str, Any], layers: int) -> tuple[Counter[str], float]:
    """The same of Foretell, in fp32 as the CPU computes."""
    request = {
        "task": "train",
        "model": {**config, "num_hidden_layers": layers},
        "gpu": "h200_sxm",
        "dtype": "fp32",
        "batch": BATCH,
        "seq": SEQ,
        "attention": "flash",
        "recompute": "selective",
        "detail": "kernels",
    }
    text = json.dumps(request) + "\n" + json.dumps({**request, "detail": "layers"}) + "\n"
    done = subprocess.run([PROGRAM, "batch"], input=text, capture_output=True, text=True, check=False)
    kernels, blocks = [json.loads(line) for line in done.stdout.splitlines()]
    assert kernels["ok"], kernels
    counts: Counter[str] = Counter()
    for each in kernels["kernels"]:
        if each["phase"] in ("backward", "recompute") and each["op"] in ("linear", "attention"):
            counts["product" if each["op"] == "linear" else "attention"] += round(each["count"])
    return counts, sum(each["activations_bytes"] for each in blocks["layers"])


@pytest.mark.parametrize("name", sorted(MODELS))
def test_products_and_saved_bytes(name: str) -> None:
    (few, small), (many, large) = run(MODELS[name], 2), run(MODELS[name], 4)
    (few_too, small_too), (many_too, large_too) = forecast(MODELS[name], 2), forecast(MODELS[name], 4)
    assert few_too == few
    assert many_too == many
    # Two layers' worth: the CPU's attention leaves the same statistics as a GPU's.
    assert large_too - small_too == pytest.approx(large - small, rel=0.01)
