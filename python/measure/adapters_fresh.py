"""Peaks and reserve of adapter training steps, each in a process that nothing ran in before: adapters_fresh.py OUT

Qwen2 of two widths in transformers; adapters as PEFT 0.12 and later runs them (fp32 weights, products lowered by autocast) and weights of 4 bits that
plain operators unpack, as AutoGPTQ's layers do. A row a case: allocator's high-water marks after every micro-batch and step, and what the process
holds on the device beside them.
"""
from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

WIDE = {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 8, "num_attention_heads": 32, "num_key_value_heads": 32,
        "vocab_size": 151936, "tie_word_embeddings": False}
THIN = {"hidden_size": 2048, "intermediate_size": 5504, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
        "vocab_size": 151936, "tie_word_embeddings": False}
SMALL = {"hidden_size": 2048, "intermediate_size": 5504, "num_hidden_layers": 12, "num_attention_heads": 16, "num_key_value_heads": 16,
         "vocab_size": 32000, "tie_word_embeddings": False}
GROUP = 128


def case(name: str, config: dict, seq: int, **more) -> dict:
    return {"name": name, "config": config, "batch": 1, "seq": seq, "rank": 64, "checkpoint": True, "packed": False, "accumulate": 2, "optimizer": "foreach",
            "expandable": False, **more}


ALONE = [{"name": "context"}, case("wide", WIDE, 256), case("thin", THIN, 256)]
CASES = [
    case("wide", WIDE, 1024), case("wide", WIDE, 2048), case("wide", WIDE, 8192), case("wide", WIDE, 2048, accumulate=1), case("wide", WIDE, 8192, expandable=True),
    case("wide", WIDE, 512, batch=2, checkpoint=False),
    case("wide", WIDE, 256, packed=True), case("wide", WIDE, 1024, packed=True), case("wide", WIDE, 2048, packed=True), case("wide", WIDE, 8192, packed=True),
    case("wide", WIDE, 512, packed=True, checkpoint=False),
    case("thin", THIN, 1024), case("thin", THIN, 4096), case("thin", THIN, 256, packed=True), case("thin", THIN, 4096, packed=True),
    case("thin", THIN, 1024, rank=0, optimizer="fused"),
    case("wide", WIDE, 2048, narrow=True), case("wide", WIDE, 2048, reentrant=True),
    *[case("small", SMALL, 256, rank=0, checkpoint=False, zero=stage, accumulate=1, optimizer="fused") for stage in (3, 2, 1)],
    case("small", SMALL, 256, rank=0, checkpoint=False, zero=2, optimizer="fused"), case("small", SMALL, 256, checkpoint=False, zero=2, optimizer="fused"),
    case("thin", THIN, 256, rank=0, zero=3, accumulate=1, optimizer="fused"), case("thin", THIN, 256, rank=0, zero=2, accumulate=1, optimizer="fused"),
    case("wide", WIDE, 2048, chunked=True), case("wide", WIDE, 8192, chunked=True), case("thin", THIN, 2048, chunked=True, rank=0, optimizer="fused"),
]


def layers(torch):
    class Packed(torch.nn.Module):
        """A linear layer of 4 bits: eight weights to a word, a scale and a zero to a group, unpacked by plain operators."""

        def __init__(self, linear):
            super().__init__()
            n, k = linear.weight.shape
            words = torch.randint(0, 2**31 - 1, (k // 8, n), dtype=torch.int32, device="cuda")
            self.register_buffer("qweight", words)
            self.register_buffer("qzeros", torch.randint(0, 2**31 - 1, (k // GROUP, n // 8), dtype=torch.int32, device="cuda"))
            self.register_buffer("scales", torch.full((k // GROUP, n), 1e-3, dtype=torch.float16, device="cuda"))
            self.register_buffer("g_idx", (torch.arange(k, device="cuda") // GROUP).to(torch.int32))
            self.register_buffer("wf", torch.arange(0, 32, 4, dtype=torch.int32, device="cuda").unsqueeze(0))
            self.bias = linear.bias
            self.in_features, self.out_features = k, n

        def forward(self, x):
            shape = x.shape[:-1] + (self.out_features,)
            x = x.reshape(-1, x.shape[-1])
            zeros = torch.bitwise_right_shift(torch.unsqueeze(self.qzeros, 2).expand(-1, -1, 8), self.wf.unsqueeze(0)).to(torch.int8)
            zeros = torch.bitwise_and(zeros, 15)
            zeros = (zeros + 1).reshape(self.scales.shape)
            weight = torch.bitwise_right_shift(torch.unsqueeze(self.qweight, 1).expand(-1, 8, -1), self.wf.unsqueeze(-1)).to(torch.int8)
            weight = torch.bitwise_and(weight, 15)
            weight = weight.reshape(weight.shape[0] * weight.shape[1], weight.shape[2])
            weights = self.scales[self.g_idx.long()] * (weight - zeros[self.g_idx.long()])
            out = torch.matmul(x, weights)
            out = out.to(x.dtype).reshape(shape)
            return out + self.bias if self.bias is not None else out

    class Adapted(torch.nn.Module):
        def __init__(self, base, rank):
            super().__init__()
            self.base = base
            self.a = torch.nn.Linear(base.in_features, rank, bias=False, device="cuda", dtype=torch.float32)
            self.b = torch.nn.Linear(rank, base.out_features, bias=False, device="cuda", dtype=torch.float32)
            self.scaling = 0.25

        def forward(self, x):
            result = self.base(x)
            kind = result.dtype
            x = x.to(self.a.weight.dtype)
            result = result + self.b(self.a(x)) * self.scaling
            return result.to(kind)

    return Packed, Adapted


def build(c: dict):
    import torch
    import transformers
    kind = torch.float16 if c["packed"] else torch.bfloat16
    torch.set_default_dtype(kind)
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model("qwen2", **c["config"]), attn_implementation="sdpa")
    torch.set_default_dtype(torch.float32)
    model.config.use_cache = False
    model.train()
    Packed, Adapted = layers(torch)
    if c["rank"]:
        for p in model.parameters():
            p.requires_grad_(False)
        for block in model.model.layers:
            for name, module in list(block.named_modules()):
                if isinstance(module, torch.nn.Linear):
                    parent, leaf = name.rsplit(".", 1)
                    base = Packed(module) if c["packed"] else module
                    setattr(block.get_submodule(parent), leaf, Adapted(base, c["rank"]))
        torch.cuda.empty_cache()
    if c["checkpoint"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": bool(c.get("reentrant"))})
        if c["rank"]:
            model.enable_input_require_grads()
    return model, kind


def in_chunks(torch, hidden, head, labels, size=256):
    """The loss of TRL since June 2026: head and cross-entropy of 256 tokens at a time, each checkpointed."""
    from torch.utils.checkpoint import checkpoint

    def chunk(h, w, y):
        logits = h.float() @ w.float().t()
        log_p = torch.nn.functional.log_softmax(logits, dim=-1)
        loss = torch.nn.functional.nll_loss(log_p, y, ignore_index=-100, reduction="sum")
        valid = y != -100
        right = ((logits.argmax(dim=-1) == y) & valid).sum().float()
        entropy = (-(log_p.exp() * log_p).sum(dim=-1) * valid).sum()
        return loss, right, entropy

    hidden = hidden[..., :-1, :].reshape(-1, hidden.size(-1))
    labels = labels[..., 1:].reshape(-1)
    order = (labels != -100).to(torch.int8).argsort(descending=True, stable=True)
    hidden, labels = hidden[order], labels[order]
    loss = hidden.new_zeros((), dtype=torch.float32)
    for i in range(0, hidden.shape[0], size):
        part, _, _ = checkpoint(chunk, hidden[i:i + size], head, labels[i:i + size], use_reentrant=False)
        loss = loss + part
    return loss / labels.numel()


def sharded(torch, model, optimizer, c):
    """DeepSpeed's engine in a world of one."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29500 + os.getpid() % 1000), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
    import deepspeed
    if c["rank"]:
        model.to(torch.bfloat16)
    config = {"train_micro_batch_size_per_gpu": c["batch"], "gradient_accumulation_steps": c["accumulate"], "bf16": {"enabled": True},
              "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": c["zero"]}, "gradient_clipping": 1.0, "steps_per_print": 100000}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    return engine


def one(c: dict) -> dict:
    import torch

    def used() -> int:
        free, total = torch.cuda.mem_get_info()
        return total - free

    if c["name"] == "context":
        x = torch.ones(1, device="cuda")
        torch.cuda.synchronize()
        first = used() - torch.cuda.memory_reserved()
        y = torch.randn(512, 512, device="cuda", dtype=torch.bfloat16)
        (y @ y).sum().item()
        torch.nn.functional.conv2d(torch.randn(2, 8, 32, 32, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda"))
        torch.cuda.synchronize()
        return {"first": first, "later": used() - torch.cuda.memory_reserved(), "driver": x.numel()}
    model, kind = build(c)
    trained = [p for p in model.parameters() if p.requires_grad]
    weights = [torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, foreach=c["optimizer"] == "foreach", fused=c["optimizer"] == "fused")
    engine = sharded(torch, model, optimizer, c) if "zero" in c else None
    called = engine or model
    lowered = contextlib.nullcontext() if engine else torch.autocast("cuda", kind) if c["rank"] or c.get("chunked") else contextlib.nullcontext()
    torch.cuda.reset_peak_memory_stats()
    marks = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(c["accumulate"]):
            ids = torch.randint(0, 1000, (c["batch"], c["seq"]), device="cuda")
            with lowered:
                if c.get("chunked"):
                    loss = in_chunks(torch, model.model(input_ids=ids).last_hidden_state, model.lm_head.weight, ids)
                elif c.get("narrow"):
                    logits = model(input_ids=ids).logits
                    with torch.autocast("cuda", enabled=False):
                        loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), ids.view(-1))
                    del logits
                else:
                    loss = called(input_ids=ids, labels=ids).loss
            if engine:
                engine.backward(loss)
                marks.append(["backward", torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()])
                engine.step()
            else:
                (loss / c["accumulate"]).backward()
            del loss
            torch.cuda.synchronize()
            marks.append([torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()])
        if not engine:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        marks.append([torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()])
    return {"ms": 1e3 * (time.perf_counter() - begin), "weights": weights, "trained": sum(p.numel() for p in trained), "marks": marks, "peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.max_memory_reserved(), "beside": used() - torch.cuda.memory_reserved(), "torch": torch.__version__}


def child(c: dict) -> str:
    env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:{c.get('expandable', False)}"}
    begin = time.time()
    try:
        p = subprocess.run([sys.executable, __file__, "--one", json.dumps(c)], env=env, capture_output=True, text=True, timeout=90, check=False)
        lines = [line for line in p.stdout.splitlines() if line.startswith("{")]
        row = json.loads(lines[-1]) if lines else {"error": p.stderr[-400:]}
    except Exception as problem:  # noqa: BLE001 - one case must not end the others
        row = {"error": f"{type(problem).__name__}: {problem}"[:300]}
    return json.dumps({**c, **row, "s": round(time.time() - begin, 1)})


def main() -> None:
    if sys.argv[1] == "--one":
        print(json.dumps(one(json.loads(sys.argv[2]))))
        return
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    with open(out / "adapters_fresh.jsonl", "a", encoding="utf-8") as f:
        for c in ALONE:
            f.write(child(c) + "\n")
            f.flush()

        def guarded(c: dict) -> str:
            return child(c) if time.time() - begin < 200 else json.dumps({**c, "error": "no time left"})

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for line in pool.map(guarded, CASES):
                f.write(line + "\n")
                f.flush()


if __name__ == "__main__":
    main()
