"""What record_trace.py records: models and their sizes, how a step of each is made, and the cases by name."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

Step = Callable[[], object]


@dataclass
class Case:
    """What is recorded: how a step is made, and what the accuracy script should expect of it."""

    name: str
    make: Callable[[Case, torch.device], Step]
    config: str = ""
    batch: int = 1
    seq: int = 0
    dtype: str = "bf16"
    layers: int = 0  # 0: as the configuration has them
    compile: bool = False
    tf32: bool = False
    optimizer: str = "adamw"
    attention: str = "sdpa"
    cpu_batch: int = 1
    cpu_seq: int = 16
    note: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


LLAMA_1B = dict(  # the shape of Llama 3.2 1B
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    vocab_size=128256,
    max_position_embeddings=8192,
    tie_word_embeddings=True,
)
TINY_LLAMA = LLAMA_1B | dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, head_dim=32, vocab_size=1000)  # fmt: skip
CONFIGS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {  # class, real sizes, sizes for --cpu
    "llama": ("LlamaForCausalLM", LLAMA_1B, TINY_LLAMA),
    "gpt2": ("GPT2LMHeadModel", {}, dict(n_embd=64, n_head=2, n_layer=2, vocab_size=500)),
    "bert": (
        "BertForMaskedLM",
        {},
        dict(hidden_size=64, num_attention_heads=2, num_hidden_layers=2, intermediate_size=128, vocab_size=500),
    ),
    "vit": (
        "ViTForImageClassification",
        dict(num_labels=1000),
        dict(hidden_size=64, num_attention_heads=2, num_hidden_layers=2, intermediate_size=128, num_labels=10),
    ),
    "resnet": (
        "ResNetForImageClassification",
        dict(num_labels=1000),
        dict(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 1], num_labels=10),
    ),
}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "amp": torch.float32}


def model_of(case: Case, device: torch.device) -> torch.nn.Module:
    name, real, tiny = CONFIGS[case.config]
    cls = getattr(transformers, name)
    sizes = dict(real if device.type == "cuda" else tiny)
    if case.layers and device.type == "cuda":
        sizes["n_layer" if case.config == "gpt2" else "num_hidden_layers"] = case.layers
    config = cls.config_class(**sizes)
    if case.config != "resnet":
        config._attn_implementation = case.attention
    with torch.device(device):
        model = cls(config)
    return model.to(device=device, dtype=DTYPES[case.dtype])


def inputs_of(model: torch.nn.Module, case: Case, device: torch.device, labels: bool) -> dict[str, torch.Tensor]:
    config = model.config
    batch = case.batch if device.type == "cuda" else case.cpu_batch
    if case.config in ("vit", "resnet"):
        images = torch.randn(batch, 3, 224, 224, device=device, dtype=DTYPES[case.dtype])
        classes = torch.randint(0, config.num_labels, (batch,), device=device)
        return {"pixel_values": images} | ({"labels": classes} if labels else {})
    seq = case.seq if device.type == "cuda" else case.cpu_seq
    tokens = torch.randint(5, config.vocab_size, (batch, seq), device=device)
    return {"input_ids": tokens} | ({"labels": tokens.clone()} if labels else {})


def optimizer_of(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
    how = {"adamw": {"fused": True}, "adamw_foreach": {"foreach": True}, "adamw_loop": {"foreach": False}}[name]
    return torch.optim.AdamW(model.parameters(), lr=1e-6, **how)


def autocast(case: Case, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    amp = case.dtype == "amp"
    return torch.autocast(device.type, torch.bfloat16) if amp else contextlib.nullcontext()


def train(case: Case, device: torch.device) -> Step:
    model = model_of(case, device).train()
    if case.extra.get("channels_last"):
        model = model.to(memory_format=torch.channels_last)
    optimizer = optimizer_of(case.optimizer, model)
    inputs = inputs_of(model, case, device, labels=True)
    call = torch.compile(model) if case.compile else model
    clip = case.extra.get("clip", 0.0)

    def step() -> object:
        with autocast(case, device):
            loss = call(**inputs).loss
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item() if case.extra.get("item") else loss

    return step


def forward(case: Case, device: torch.device) -> Step:
    model = model_of(case, device).eval()
    inputs = inputs_of(model, case, device, labels=False)
    if "use_cache" in model.forward.__code__.co_varnames:
        inputs["use_cache"] = False
    call = torch.compile(model) if case.compile else model

    def step() -> object:
        with torch.no_grad(), autocast(case, device):
            return call(**inputs)

    return step


def prefill(case: Case, device: torch.device) -> Step:
    model = model_of(case, device).eval()
    inputs = inputs_of(model, case, device, labels=False)

    def step() -> object:
        with torch.no_grad():
            return model(**inputs, use_cache=True, logits_to_keep=1)

    return step


def decode(case: Case, device: torch.device) -> Step:
    """One token at a time against a preallocated cache; the position starts again where the cache is full."""
    model = model_of(case, device).eval()
    inputs = inputs_of(model, case, device, labels=False)
    length = inputs["input_ids"].shape[1]
    cache = transformers.StaticCache(config=model.config, max_cache_len=length + 64)
    with torch.no_grad():
        model(**inputs, past_key_values=cache, use_cache=True, logits_to_keep=1)
    token = inputs["input_ids"][:, :1].clone()
    position = torch.tensor([length], device=device)
    call = torch.compile(model, mode="max-autotune-no-cudagraphs") if case.compile else model

    def step() -> object:
        with torch.no_grad():
            out = call(input_ids=token, past_key_values=cache, use_cache=True, cache_position=position)
            return out.logits[:, -1].argmax(-1)

    return step


class Slow(torch.utils.data.Dataset):
    """Pictures that the host takes `delay` seconds each to prepare: the loader cannot keep up."""

    def __init__(self, delay: float) -> None:
        self.delay = delay

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        time.sleep(self.delay)
        return torch.full((3, 224, 224), float(i % 7)), i % 10


def loader(case: Case, device: torch.device) -> Step:
    model = model_of(case, device).train()
    optimizer = optimizer_of("sgd", model)
    batch = case.batch if device.type == "cuda" else case.cpu_batch
    data = torch.utils.data.DataLoader(Slow(0.0005), batch_size=batch, num_workers=0, pin_memory=device.type == "cuda")
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]] = iter(data)

    def step() -> object:
        images, labels = next(batches)
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        with autocast(case, device):
            loss = model(pixel_values=images, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()  # what most training loops do, and what makes them wait

    return step


def data_parallel(case: Case, device: torch.device) -> Step:
    """DistributedDataParallel over one rank: the collectives' records are real, their kernels are not."""
    import torch.distributed as dist

    if not dist.is_initialized():
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29517")
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=0, world_size=1)
    model = model_of(case, device).train()
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = optimizer_of(case.optimizer, model)
    inputs = inputs_of(model, case, device, labels=True)

    def step() -> object:
        loss = wrapped(**inputs).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step


CASES = [
    # at the sizes people run
    Case("gpt2_train_b8", train, "gpt2", 8, 512, note="launches may take longer than kernels"),
    Case("gpt2_train_b32", train, "gpt2", 32, 1024),
    Case("gpt2_train_amp", train, "gpt2", 16, 1024, "amp", extra={"clip": 1.0}),
    Case("gpt2_train_fp32", train, "gpt2", 4, 512, "fp32", note="TF32 off: no tensor cores in products"),
    Case("gpt2_train_foreach", train, "gpt2", 16, 1024, optimizer="adamw_foreach"),
    Case("gpt2_train_eager_attention", train, "gpt2", 16, 1024, attention="eager"),
    Case("llama1b_train_b1", train, "llama", 1, 1024),
    Case("llama1b_train_b8", train, "llama", 8, 1024),
    Case("llama1b_train_compile", train, "llama", 4, 1024, compile=True, layers=8),
    Case("llama1b_prefill", prefill, "llama", 4, 2048),
    Case("llama1b_decode", decode, "llama", 16, 1024, note="host-bound"),
    Case("bert_infer", forward, "bert", 64, 384, "fp16"),
    Case("bert_infer_tf32", forward, "bert", 64, 384, "fp32", tf32=True),
    Case("bert_infer_compile", forward, "bert", 64, 384, compile=True),
    Case("vit_infer", forward, "vit", 128),
    Case("vit_train", train, "vit", 96, 0, "amp"),
    Case("resnet50_train", train, "resnet", 128, 0, "amp", optimizer="sgd", extra={"channels_last": True}),
    Case("resnet50_train_nchw", train, "resnet", 128, 0, "fp32", optimizer="sgd"),
    Case("resnet50_loader", loader, "resnet", 64, 0, "amp", note="the loader stalls"),
    # few layers: small enough to be kept with the tests
    Case("small_gpt2_train", train, "gpt2", 16, 1024, layers=2, extra={"item": True}),
    Case("small_gpt2_fp32", train, "gpt2", 8, 512, "fp32", layers=2),
    Case("small_llama_train", train, "llama", 8, 1024, layers=2),
    Case("small_llama_compile", train, "llama", 8, 1024, layers=2, compile=True),
    Case("small_llama_decode", decode, "llama", 16, 1024, layers=2),
    Case("small_vit_infer", forward, "vit", 128, layers=2),
    Case("small_gpt2_ddp", data_parallel, "gpt2", 8, 512, layers=2),
]
