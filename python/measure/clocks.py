"""The host's clock of training and decoding steps in a process that has not profiled, and after it has: clocks.py OUT

Cases as adapters.py has them (Llama of width 2048, adapters by peft), and T5-base under autocast, BERT, GPT-2, ResNet-50, decoding of a Llama and of
GPT-2. Medians of seven steps. The first cases come again at the end of the unprofiled part, then one step is profiled, then they come once more.
Memory: the peak of a step whose logits are held until the update, and of one whose caller keeps the loss alone.
"""
from __future__ import annotations

import contextlib
import gc
import json
import pathlib
import statistics
import sys
import time

import torch
import transformers

BEGAN = time.time()
LIMIT = float(sys.argv[2]) if len(sys.argv) > 2 else 138.0
OUT = pathlib.Path(sys.argv[1]).open("a")


def note(row: dict) -> None:
    row["at"] = round(time.time() - BEGAN, 1)
    OUT.write(json.dumps(row) + "\n")
    OUT.flush()


def llama(width: int, layers: int, vocab: int = 32000) -> torch.nn.Module:
    inner, heads = {1024: (2816, 8), 2048: (5504, 16)}[width]
    config = transformers.LlamaConfig(hidden_size=width, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
                                      num_key_value_heads=heads, vocab_size=vocab, max_position_embeddings=8192, attn_implementation="sdpa")
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return model


def pack(model: torch.nn.Module) -> None:
    import bitsandbytes

    for block in model.model.layers:
        for name, module in list(block.named_modules()):
            if isinstance(module, torch.nn.Linear):
                packed = bitsandbytes.nn.Linear4bit(module.in_features, module.out_features, bias=False, compute_dtype=torch.bfloat16,
                                                    compress_statistics=True, quant_type="nf4")
                packed.weight = bitsandbytes.nn.Params4bit(module.weight.data.cpu(), requires_grad=False, compress_statistics=True, quant_type="nf4")
                parent, leaf = name.rsplit(".", 1)
                setattr(block.get_submodule(parent), leaf, packed.cuda())
    model.is_loaded_in_4bit = True


def adapted(adapter: str, checkpoint: str, layers: int = 12, dropout: float = 0.0, packed: bool = False, vocab: int = 32000) -> torch.nn.Module:
    model = llama(2048, layers, vocab).train()
    model.config.use_cache = False
    if packed:
        pack(model)
    if adapter != "none":
        import peft

        config = peft.LoraConfig(r=64, lora_alpha=16, lora_dropout=dropout, target_modules="all-linear", task_type="CAUSAL_LM")
        model = peft.get_peft_model(model, config, autocast_adapter_dtype=adapter != "bf16").cuda()
    if checkpoint != "no":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": checkpoint == "reentrant"})
        if adapter != "none":
            model.enable_input_require_grads()
    return model


def clock_training(model: torch.nn.Module, inputs: dict, lowered: bool, optimizer: bool = True, steps: int = 7) -> dict:
    trained = [p for p in model.parameters() if p.requires_grad]
    update = torch.optim.AdamW(trained, lr=1e-5, fused=True) if optimizer else None

    def step() -> list[float]:
        torch.cuda.synchronize()
        clock = [time.perf_counter()]
        with torch.autocast("cuda", torch.bfloat16) if lowered else contextlib.nullcontext():
            loss = model(**inputs).loss
        clock.append(time.perf_counter())
        loss.backward()
        clock.append(time.perf_counter())
        if update:
            update.step()
            update.zero_grad(set_to_none=True)
        else:
            for p in trained:
                p.grad = None
        clock.append(time.perf_counter())
        torch.cuda.synchronize()
        clock.append(time.perf_counter())
        return [1e3 * (clock[-1] - clock[0])] + [1e3 * (clock[i + 1] - clock[i]) for i in range(3)]

    for _ in range(3):
        step()
    taken = [step() for _ in range(steps)]
    ms, forward, back, last = (statistics.median(column) for column in zip(*taken))
    return {"ms": ms, "host_fw_ms": forward, "host_bw_ms": back, "host_opt_ms": last, "least_ms": min(t[0] for t in taken), "most_ms": max(t[0] for t in taken)}


def clock_decoding(model: torch.nn.Module, width: int = 1, tokens: int = 24) -> dict:
    ids = torch.randint(0, 1000, (width, 32), device="cuda")
    taken = []
    with torch.no_grad():
        out = model(input_ids=ids, use_cache=True)
        past = out.past_key_values
        new = ids[:, :1]
        for _ in range(tokens):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            out = model(input_ids=new, past_key_values=past, use_cache=True)
            torch.cuda.synchronize()
            taken.append(1e3 * (time.perf_counter() - begin))
            past = out.past_key_values
    return {"ms": statistics.median(taken[4:]), "least_ms": min(taken[4:]), "most_ms": max(taken[4:])}


def clock_forward(model: torch.nn.Module, inputs: dict, steps: int = 9) -> dict:
    taken = []
    with torch.no_grad():
        for _ in range(steps + 3):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            model(**inputs)
            torch.cuda.synchronize()
            taken.append(1e3 * (time.perf_counter() - begin))
    return {"ms": statistics.median(taken[3:]), "least_ms": min(taken[3:]), "most_ms": max(taken[3:])}


def tokens(batch: int, seq: int, vocab: int = 1000) -> dict:
    ids = torch.randint(0, vocab, (batch, seq), device="cuda")
    return {"input_ids": ids, "labels": ids}


def t5() -> torch.nn.Module:
    config = transformers.T5Config(vocab_size=32128, d_model=768, d_ff=3072, d_kv=64, num_layers=12, num_decoder_layers=12, num_heads=12, use_cache=False,
                                   decoder_start_token_id=0, pad_token_id=0)
    with torch.device("cuda"):
        return transformers.T5ForConditionalGeneration(config).train()


def resnet() -> torch.nn.Module:
    config = transformers.ResNetConfig(num_labels=1000)
    return transformers.ResNetForImageClassification(config).cuda().train()


def bert() -> torch.nn.Module:
    with torch.device("cuda"):
        return transformers.BertForMaskedLM(transformers.BertConfig()).train()


def gpt2() -> torch.nn.Module:
    with torch.device("cuda"):
        return transformers.GPT2LMHeadModel(transformers.GPT2Config()).train()


def images() -> dict:
    return {"pixel_values": torch.randn(1, 3, 224, 224, device="cuda"), "labels": torch.zeros(1, dtype=torch.long, device="cuda")}


def memory(kept: bool, adapter: str, vocab: int, seq: int, fp32_outputs: bool = False) -> dict:
    """Peak and reserved bytes over four steps where the caller keeps the model's output, or the loss alone."""
    model = adapted(adapter, "reentrant", 4, vocab=vocab)
    trained = [p for p in model.parameters() if p.requires_grad]
    update = torch.optim.AdamW(trained, lr=1e-5, foreach=True)
    inputs = tokens(1, seq)

    def loss_of() -> tuple:
        with torch.autocast("cuda", torch.bfloat16):
            out = model(**inputs)
        if fp32_outputs:
            out.logits = out.logits.float()
        return out.loss, out if kept else None

    for turn in range(4):
        if turn == 2:
            torch.cuda.reset_peak_memory_stats()
        loss, held = loss_of()
        loss.backward()
        update.step()
        update.zero_grad(set_to_none=True)
        del loss, held
    return {"peak_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.memory_reserved()}


def run(name: str, work, when: str) -> None:
    if time.time() - BEGAN > LIMIT:
        return
    gc.collect()
    torch.cuda.empty_cache()
    try:
        row = work()
    except Exception as error:  # noqa: BLE001 - one case must not end the others
        row = {"error": f"{type(error).__name__}: {error}"[:300]}
    note({"name": name, "when": when, **row})


def train_case(adapter: str, checkpoint: str, lowered: bool, **more):
    return lambda: clock_training(adapted(adapter, checkpoint, **more), tokens(1, 256), lowered)


CASES = [
    ("llama none no", train_case("none", "no", False)),
    ("llama autocast no", train_case("autocast", "no", True)),
    ("llama autocast reentrant", train_case("autocast", "reentrant", True)),
    ("llama decode 24", lambda: clock_decoding(llama(1024, 24).eval())),
    ("t5 amp", lambda: clock_training(t5(), tokens(4, 48), True, optimizer=False)),
]
MORE = [
    ("llama none reentrant", train_case("none", "reentrant", False)),
    ("llama none hooks", train_case("none", "hooks", False)),
    ("llama autocast hooks", train_case("autocast", "hooks", True)),
    ("llama autocast dropout reentrant 24", train_case("autocast", "reentrant", True, layers=24, dropout=0.05)),
    ("llama bf16 no", train_case("bf16", "no", False)),
    ("llama bf16 reentrant", train_case("bf16", "reentrant", False)),
    ("llama fp32 no", train_case("fp32", "no", False)),
    ("llama bf16 nf4 no", train_case("bf16", "no", False, packed=True)),
    ("llama bf16 nf4 reentrant", train_case("bf16", "reentrant", False, packed=True)),
    ("bert fp32 train", lambda: clock_training(bert(), tokens(1, 64), False)),
    ("gpt2 fp32 train", lambda: clock_training(gpt2(), tokens(1, 64), False)),
    ("gpt2 decode", lambda: clock_decoding(gpt2().eval())),
    ("resnet50 fp32 train", lambda: clock_training(resnet(), images(), False, optimizer=False)),
    ("resnet50 fp32 forward", lambda: clock_forward(resnet().eval(), images())),
    ("bert fp32 forward", lambda: clock_forward(bert().eval(), {"input_ids": torch.randint(0, 1000, (1, 64), device="cuda")})),
]
MEMORY = [(f"memory {adapter} {'kept' if kept else 'dropped'}{' fp32' if wide else ''} {seq}",
           lambda kept=kept, adapter=adapter, seq=seq, wide=wide: memory(kept, adapter, 151936, seq, wide))
          for adapter, seq in (("autocast", 4096), ("autocast", 1024)) for kept, wide in ((True, False), (False, False), (False, True))]


def main() -> None:
    note({"name": "machine", "torch": torch.__version__, "transformers": transformers.__version__, "gpu": torch.cuda.get_device_name(),
          "cpu": next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")})
    for name, work in CASES:
        run(name, work, "first")
    for name, work in MORE + MEMORY:
        run(name, work, "once")
    for name, work in CASES:
        run(name, work, "again")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]):
        a = torch.ones(64, 64, device="cuda")
        (a @ a).sum().item()
    for name, work in CASES:
        run(name, work, "after a profiler")


if __name__ == "__main__":
    main()
