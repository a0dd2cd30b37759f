"""Measures whole Hugging Face models on the GPU of this machine: step time, peak memory, and what a step launched.

    python models_cases.py > cases.json
    python models.py --cases cases.json --out models.jsonl.gz --seconds 500
    python models.py --cases cases.json --out models.jsonl.gz --compare ../../data/measurements/h200/models.jsonl.gz

A case is an object: `cls` (class of transformers), `config` (its keywords), `model` (a name), `mode`, `batch`, `seq`,
`dtype`, and optionally `attn` (eager), `ckpt`, `compile` (true or a mode), `static`, `optimizer`, `lora` (keywords of
peft's LoraConfig), `limit` (seconds).
A row is the case with what was measured; rows are written one by one, each its own gzip member where the name ends
in .gz. A case that raises is noted in OUT.failures.jsonl and skipped.

Protocol. The weights are made on the device in fp32 and cast (`bf16`) or left (`fp32`; `amp`: autocast to bf16 around
the forward pass); nothing else is tuned: TF32 stays off for products and on for cuDNN, as PyTorch starts.
- train: forward with labels, backward, AdamW(fused) step, gradients set to None. No key-value cache.
- inf: forward without cache in inference order (eval, no_grad), all logits.
- prefill: forward that fills a cache, logits of the last token.
- decode: one token against a cache that held `seq` tokens before the first warm-up step and grows by one each step;
  `static`: a preallocated cache of seq + 64.
Three warm-up steps, then up to seven timed ones between CUDA events, each behind a synchronisation; `ms` is the median.
`peak_bytes` and `reserved_bytes` are the allocator's figures over the timed steps, `base_bytes` what was allocated
before the model was made. One more step runs under the profiler (models_trace.py).

Where the host's time matters take it in a run of its own with --no-profile, whose rows have no `profile` and no `ops`:
a process that has profiled before may launch more slowly. Host-bound times also differ by up to a factor of two from
one virtual machine to the next; busy time, kernel counts and peak memory do not.
Decoding with a growing cache: cuDNN's attention builds an execution plan for each new length (35 to 70 ms of host time
a step), unless the same process has met these shapes before.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import gzip
import inspect
import json
import os
import signal
import statistics
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import torch
import transformers

from models_trace import OPS_FIELDS, Trace

Case = dict[str, Any]
WARMUP, MIN_STEPS, MAX_STEPS = 3, 5, 7
STATIC_ROOM = 64  # tokens that a static cache holds beyond `seq`
LEARNING_RATE = 1e-6  # small: a step's cost does not depend on it, a diverged router's does
KEY = ("model", "mode", "batch", "seq", "dtype", "attn", "ckpt", "compile", "static", "optimizer", "n", "tag", "lora")


class TooSlow(Exception):
    pass


def key(case: Case) -> str:
    return json.dumps([case.get(k) or None for k in KEY])


def make_model(case: Case, device: str) -> torch.nn.Module:
    cls = getattr(transformers, case["cls"])
    config = cls.config_class(**case["config"])
    if case.get("attn") == "eager":
        config._attn_implementation = "eager"
    with torch.device(device):
        model = cls(config)
    model = model.to(device)
    model = model.to(torch.bfloat16) if case["dtype"] == "bf16" else model
    if case.get("lora"):
        import peft

        model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **case["lora"]))
    return model


def make_inputs(model: torch.nn.Module, case: Case, device: str) -> dict[str, Any]:
    """Random tokens or images; labels in training."""
    config, batch, seq = model.config, case["batch"], case["seq"]
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    dtype = torch.bfloat16 if case["dtype"] == "bf16" else torch.float32
    train = case["mode"] == "train"

    def tokens(length: int) -> torch.Tensor:
        return torch.randint(5, text.vocab_size, (batch, length), device=device)

    if config.model_type == "whisper":  # seq is the decoder's; the encoder sees 3000 mel frames, 1500 positions
        frames = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions, device=device, dtype=dtype)
        return {"input_features": frames, "labels" if train else "decoder_input_ids": tokens(seq)}
    if config.model_type == "clip":
        size = config.vision_config.image_size
        images = torch.randn(batch, 3, size, size, device=device, dtype=dtype)
        return {"input_ids": tokens(seq), "pixel_values": images, **({"return_loss": True} if train else {})}
    if model.main_input_name == "input_values":  # seq counts samples of sound; one label each 200 ms
        labels = torch.randint(5, config.vocab_size, (batch, seq // 3200), device=device)
        return {
            "input_values": torch.randn(batch, seq, device=device, dtype=dtype),
            **({"labels": labels} if train else {}),
        }
    if model.main_input_name == "pixel_values":
        size = case.get("image", 224)
        images = torch.randn(batch, 3, size, size, device=device, dtype=dtype)
        labels = torch.randint(0, config.num_labels, (batch,), device=device)
        return {"pixel_values": images, **({"labels": labels} if train else {})}
    inputs = {"input_ids": tokens(seq)}
    if config.is_encoder_decoder:
        inputs["labels" if train else "decoder_input_ids"] = tokens(seq)
    elif train:
        inputs["labels"] = inputs["input_ids"].clone()
    return inputs


def make_optimizer(name: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    parameters = [p for p in model.parameters() if p.requires_grad]
    if name == "adafactor":
        return transformers.Adafactor(parameters, lr=LEARNING_RATE, relative_step=False, scale_parameter=False)
    make = {
        "adamw": lambda: torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True),
        "adamw_foreach": lambda: torch.optim.AdamW(parameters, lr=LEARNING_RATE, foreach=True),
        "adamw_loop": lambda: torch.optim.AdamW(parameters, lr=LEARNING_RATE, foreach=False),
        "adam": lambda: torch.optim.Adam(parameters, lr=LEARNING_RATE),
        "sgd": lambda: torch.optim.SGD(parameters, lr=LEARNING_RATE),
        "sgd_fused": lambda: torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9, fused=True),
        "sgd_momentum": lambda: torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9),
        "adafactor_torch": lambda: torch.optim.Adafactor(parameters, lr=LEARNING_RATE),
    }
    return make[name]()


class Step:
    """One step of a case; `marks` collects a CUDA event behind each phase."""

    def __init__(self, model: torch.nn.Module, case: Case, device: str) -> None:
        self.model, self.case = model, case
        self.mode = case["mode"]
        self.inputs = make_inputs(model, case, device)
        bare = model.get_base_model() if case.get("lora") else model
        self.accepts = inspect.signature(bare.forward).parameters
        self.call = model
        model.train(self.mode == "train")
        if self.mode == "train":
            if case.get("ckpt"):
                model.gradient_checkpointing_enable()
            self.optimizer = make_optimizer(case.get("optimizer", "adamw"), model)
        if "use_cache" in self.accepts:
            self.inputs["use_cache"] = self.mode in ("prefill", "decode")
        if self.mode in ("prefill", "decode") and "logits_to_keep" in self.accepts:
            self.inputs["logits_to_keep"] = 1
        if self.mode == "decode":
            self._fill_cache()
        if case.get("compile"):
            torch._dynamo.reset()
            mode = case["compile"] if isinstance(case["compile"], str) else None
            self.call = torch.compile(model, mode=mode)

    def _fill_cache(self) -> None:
        cache_name = "cache_params" if "cache_params" in self.accepts else "past_key_values"
        if self.case.get("static"):
            config = self.model.config
            cache = transformers.StaticCache(config=config, max_cache_len=self.case["seq"] + STATIC_ROOM)
            self.inputs[cache_name] = cache
        with torch.no_grad():
            out = self.model(**self.inputs)
        self.inputs[cache_name] = getattr(out, cache_name)
        self.inputs["input_ids"] = self.inputs["input_ids"][:, :1].clone()

    def __call__(self, mark: Any) -> None:
        if self.mode == "train":
            self._train(mark)
        else:
            with torch.no_grad(), torch.profiler.record_function("phase:fw"), self._autocast():
                self.call(**self.inputs)
            mark()

    def _train(self, mark: Any) -> None:
        with torch.profiler.record_function("phase:fw"):
            with self._autocast():
                loss = self.call(**self.inputs).loss
        mark()
        with torch.profiler.record_function("phase:bw"):
            loss.backward()
        mark()
        with torch.profiler.record_function("phase:opt"):
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        mark()

    def _autocast(self) -> contextlib.AbstractContextManager:
        amp = self.case["dtype"] == "amp"
        return torch.autocast("cuda", torch.bfloat16) if amp else contextlib.nullcontext()


class Bench:
    """Keeps the last model: the next case often wants the same."""

    def __init__(self, device: str, seconds_per_case: float, profile: bool) -> None:
        self.device, self.seconds, self.profile = device, seconds_per_case, profile
        self.kept: tuple[str, torch.nn.Module] | None = None
        self.base_bytes = 0

    def measure(self, case: Case) -> Case:
        began = time.monotonic()
        model = self._model(case)
        weights_bytes = torch.cuda.memory_allocated()
        step = Step(model, case, self.device)
        times = self._time(step)
        row = {k: v for k, v in case.items() if k != "limit"}
        row["attn"] = model.config._attn_implementation
        row["config"] = model.config.to_dict() | {"architectures": [case["cls"]]}
        experts = getattr(model.config, "_experts_implementation", None)
        row |= {"experts": experts} if experts else {}
        row |= {
            "params": sum(p.numel() for p in model.parameters()),
            "trainable": sum(p.numel() for p in model.parameters() if p.requires_grad),
            "weights_bytes": weights_bytes,
            "base_bytes": self.base_bytes,
        }
        row |= times
        row |= self._profile(step) if self.profile else {}
        row["seconds"] = round(time.monotonic() - began, 2)
        return row

    def drop(self, everything: bool = True) -> None:
        if everything:
            self.kept = None
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()

    def _model(self, case: Case) -> torch.nn.Module:
        same = json.dumps(
            [case["cls"], case["config"], case["dtype"], case.get("attn"), case.get("lora")], sort_keys=True
        )
        if self.kept and self.kept[0] == same:
            self.drop(everything=False)
            return self.kept[1]
        self.drop()
        self.base_bytes = torch.cuda.memory_allocated()
        torch.manual_seed(0)
        model = make_model(case, self.device)
        torch.cuda.empty_cache()
        if not case.get("ckpt") and not case.get("compile"):
            self.kept = (same, model)
        return model

    def _time(self, step: Step) -> dict[str, Any]:
        def once() -> list[float]:
            marks: list[torch.cuda.Event] = []

            def mark() -> None:
                marks.append(torch.cuda.Event(enable_timing=True))
                marks[-1].record()

            torch.cuda.synchronize()
            mark()
            step(mark)
            torch.cuda.synchronize()
            return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]

        for _ in range(WARMUP):
            last = sum(once())
        torch.cuda.reset_peak_memory_stats()
        count = max(MIN_STEPS, min(MAX_STEPS, int(1e3 * self.seconds / last)))
        spans = [once() for _ in range(count)]
        totals = [sum(s) for s in spans]
        result: dict[str, Any] = {"ms": statistics.median(totals)}
        if step.mode == "train":
            phases = zip(("fw_ms", "bw_ms", "opt_ms"), zip(*spans))
            result |= {name: statistics.median(values) for name, values in phases}
        return result | {
            "ms_all": [round(t, 3) for t in totals],
            "peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_bytes": torch.cuda.memory_reserved(),
        }

    @staticmethod
    def _profile(step: Step) -> dict[str, Any]:
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True) as profiler:
            step(lambda: None)
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profiler.export_chrome_trace(path)
            del profiler
            trace = Trace(path)
        return {
            "profile": trace.profile(),
            "launches": trace.launches(),
            "cpu_ops": trace.cpu_ops(),
            "runtime": dict(trace.runtime.most_common()),
            "orphans": dict(trace.orphans),
            "ops_fields": list(OPS_FIELDS),
            "ops": trace.ordered(),
        }


def append(path: Path, row: Case) -> None:
    data = (json.dumps(row) + "\n").encode()
    with open(path, "ab") as file:
        file.write(gzip.compress(data) if path.suffix == ".gz" else data)


def read(path: Path) -> list[Case]:
    if not path.exists():
        return []
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        return [json.loads(line) for line in file]


def compare(row: Case, old: dict[str, Case]) -> str:
    """The new figures over the old ones, where the old file holds the case."""
    before = old.get(key(row | {"attn": None})) or old.get(key(row))
    if not before:
        return ""
    ratio = {k: row[k] / before[k] for k in ("ms", "peak_bytes") if before.get(k)}
    if "profile" in row:
        ratio |= {k: row["profile"][k] / before["profile"][k] for k in ("busy_ms", "kernels")}
    return "  new/old " + " ".join(f"{k} {v:.3f}" for k, v in ratio.items())


def alarm(_signal: int, _frame: object) -> None:
    raise TooSlow("past its time limit")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True, help="JSON list of cases")
    parser.add_argument("--out", type=Path, required=True, help="rows are appended here; cases it holds are skipped")
    parser.add_argument("--seconds-per-case", type=float, default=3, help="for the timed steps; five always run")
    parser.add_argument("--limit-per-case", type=int, default=60, help="a case is given up after this many seconds")
    parser.add_argument("--seconds", type=float, default=1e9, help="no case is started after this long")
    parser.add_argument("--began", type=float, default=time.time(), help=argparse.SUPPRESS)
    parser.add_argument("--compare", type=Path, help="older rows: prints the ratio of new to old")
    parser.add_argument("--no-profile", action="store_true", help="time alone; see above")
    parser.add_argument("--give-up", type=int, default=8, help="stop after this many failures in a row")
    arguments = parser.parse_args()
    failures = Path(str(arguments.out).removesuffix(".gz").removesuffix(".jsonl") + ".failures.jsonl")
    done = {key(r["case"]) for r in read(failures)} | {r["key"] for r in read(arguments.out)}
    old = {key(r): r for r in read(arguments.compare)} if arguments.compare else {}
    if not torch.cuda.is_available():
        parser.error("no CUDA device")
    transformers.logging.set_verbosity_error()
    print(f"torch {torch.__version__} transformers {transformers.__version__}", flush=True)
    signal.signal(signal.SIGALRM, alarm)
    bench, failed = Bench("cuda", arguments.seconds_per_case, not arguments.no_profile), 0
    for case in json.loads(arguments.cases.read_text()):
        if key(case) in done:
            continue
        if time.time() - arguments.began > arguments.seconds or failed >= arguments.give_up:
            print("stopped early", flush=True)
            break
        name = " ".join(str(case.get(k)) for k in KEY if case.get(k))
        signal.alarm(int(case.get("limit", arguments.limit_per_case)))
        try:
            row = bench.measure(case)
            signal.alarm(0)
            row["key"] = key(case)
            append(arguments.out, row)
            profile = row.get("profile", {"busy_ms": 0, "kernels": 0})
            print(
                f"{time.time() - arguments.began:5.0f}s {name}: {row['ms']:.2f} ms, busy {profile['busy_ms']:.2f}, peak"
                f" {row['peak_bytes'] / 2**30:.2f} GiB, {profile['kernels']} kernels{compare(row, old)}",
                flush=True,
            )
            failed = 0
        except Exception as error:  # a case must not stop the run
            signal.alarm(0)
            failed += 1
            text = traceback.format_exc()
            append(failures, {"case": case, "error": f"{type(error).__name__}: {error}"[:600], "trace": text[-3000:]})
            print(f"FAILED {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            del error
            try:
                bench.drop()
                torch.cuda.synchronize()
            except Exception:  # the device's context is lost: go on in a new process
                began = [] if "--began" in sys.argv else ["--began", str(arguments.began)]
                os.execv(sys.executable, [sys.executable, *sys.argv, *began])
    return 0


if __name__ == "__main__":
    sys.exit(main())
