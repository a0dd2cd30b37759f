"""Forward passes and training steps of models under torch.compile and without: compiled.py CASES OUT [SECONDS]

CASES: a JSON line each with `request` (a config with its `model_type` or a net's name, `batch`, of texts `seq`, `dtype` bf16 or
amp_bf16), `tasks` and forecasts, as python/measure/compiled.jsonl has them. The model is compiled by the default mode, and hands out its
logits beside its loss; of a case that says `whole`, a function that hands out the loss alone. sdpa, random weights, no mask, fused AdamW
in `train`. Rows have the compiled pass and, under `eager`, the same one before it was compiled: the median of seven between CUDA events,
`busy_ms` the kernels' sum of one more pass under the profiler (the median of three), the allocator's peak. `graphs` counts what the
compiler made of the pass: 1 where it did not have to stop. Every pass has a folder of the compiler's own files, so that compiled_ahead.py can
make them for many at once; what a kernel's choices were found to take is measured again.
"""
from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import pathlib
import sys
import tempfile
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]

import architectures  # noqa: E402
import catalogue_nets  # noqa: E402
import nets  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from passes import Case, Run, busy_ms, every  # noqa: E402

PICTURES = {"vit": "ViTForImageClassification", "dinov2": "Dinov2ForImageClassification", "convnext": "ConvNextForImageClassification",
            "deit": "DeiTForImageClassification", "beit": "BeitForImageClassification"}
NETS = catalogue_nets.MODELS | {
    "resnet-50": ("torchvision", "resnet50", {}, catalogue_nets.PICTURE, 224),
    "resnet-18": ("torchvision", "resnet18", {}, catalogue_nets.PICTURE, 224),
    "swin-tiny": ("transformers", "SwinForImageClassification", {"num_labels": 1000}, catalogue_nets.PICTURE, 224),
    "swin-base": ("transformers", "SwinForImageClassification",
                  {"num_labels": 1000, "embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32]}, catalogue_nets.PICTURE, 224),
    "mobilenet-v2-1.0": ("transformers", "MobileNetV2ForImageClassification", {"num_labels": 1001}, catalogue_nets.PICTURE, 224),
    "mobilevit-small": ("transformers", "MobileViTForImageClassification", {"num_labels": 1000}, catalogue_nets.PICTURE, 256),
    "segformer-b2": ("transformers", "SegformerForSemanticSegmentation",
                     {"num_labels": 150, "hidden_sizes": [64, 128, 320, 512], "depths": [3, 4, 6, 3], "decoder_hidden_size": 768}, catalogue_nets.PICTURE, 512),
}


def net_of(request: Case) -> tuple[torch.nn.Module, dict[str, torch.Tensor], str]:
    """The module in fp32 or bf16, what it is given, and which library it is of."""
    model, low = request["model"], request["dtype"] == "bf16"
    if isinstance(model, str):
        library, kind, config, said, edge = NETS[model]
        net, given = nets.build(library, kind, config), nets.inputs(said, edge, request)
        given = given if low else {name: each.float() if each.is_floating_point() else each for name, each in given.items()}
        if model.startswith("segformer"):  # its loss is its own, over all pixels
            given["labels"] = torch.zeros(request["batch"], edge, edge, device="cuda", dtype=torch.long)
    elif model["model_type"] in PICTURES:
        library, kind = "transformers", getattr(transformers, PICTURES[model["model_type"]])
        config = kind.config_class(**{key: value for key, value in model.items() if key != "model_type"})
        with torch.device("cuda"):
            net = kind._from_config(config, attn_implementation="sdpa" if kind._supports_sdpa else "eager", dtype=torch.bfloat16)
        given = {"pixel_values": torch.randn(request["batch"], 3, config.image_size, config.image_size, device="cuda", dtype=torch.bfloat16 if low else torch.float32),
                 "labels": torch.zeros(request["batch"], dtype=torch.long, device="cuda")}
    else:
        library, net = "transformers", architectures.build(model, "cuda")
        given = {name: each.to("cuda") for name, each in architectures.inputs(net.config, request).items()}
        given["labels"] = given.get("decoder_input_ids", given.get("input_ids"))
    return net if low else net.float(), given, library


def figures(run: Run, most: int) -> Case:
    """Four passes to warm up, seven timed, one for the peak, three under the profiler."""
    torch._C._cuda_clearCublasWorkspaces()
    for _ in range(4):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(7):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        run()
        ended.record()
        torch.cuda.synchronize()
        times.append(begun.elapsed_time(ended))
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    busy, kernels, longest = sorted((busy_ms(run, most) for _ in range(3)), key=lambda each: each[0])[1]
    row = {"ms": round(sorted(times)[3], 4), "busy_ms": round(busy, 4), "kernels": kernels, "peak_bytes": peak}
    return row | ({"by_kernel": longest} if most else {})


class Pass:
    """One task of a case: its module, what it is given, and what runs it."""

    def __init__(self, case: Case, task: str) -> None:
        self.request, self.task, self.whole = case["request"], task, case.get("whole", False)
        self.net, self.given, self.library = net_of(self.request)
        self.net.train(task == "train")
        if task == "forward":
            self.given.pop("labels", None)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-5, fused=True) if task == "train" else None

    def of(self, called: typing.Callable[..., typing.Any]) -> typing.Any:
        made = called(**self.given)
        if self.task == "forward":
            return made
        if self.library == "transformers" and "labels" in self.given:
            return made.loss
        made = made[0] if self.library == "transformers" else catalogue_nets.said(self.library, made)
        return torch.nn.functional.mse_loss(made, torch.zeros_like(made))

    def run_of(self, whole: typing.Callable[[], typing.Any]) -> Run:
        def run() -> None:
            with torch.autocast("cuda", torch.bfloat16) if self.request["dtype"] == "amp_bf16" else contextlib.nullcontext():
                with torch.set_grad_enabled(self.task == "train"):
                    made = whole()
            if self.optimizer:
                made.backward()
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
        return run

    def eager(self) -> Run:
        return self.run_of(lambda: self.of(self.net))

    def compiled(self) -> Run:
        made = torch.compile((lambda: self.of(self.net)) if self.whole else self.net)
        return self.run_of(made if self.whole else lambda: self.of(made))


def keep_apart(case: Case, task: str) -> pathlib.Path:
    """The folder of the compiler's files for this pass."""
    said = hashlib.sha256(json.dumps([case["request"], task], sort_keys=True).encode()).hexdigest()[:12]
    model = case["request"]["model"]
    name = model if isinstance(model, str) else model["model_type"]
    folder = pathlib.Path(tempfile.gettempdir()) / "compiled" / f"{name}-{task}-{said}"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"], os.environ["TRITON_CACHE_DIR"] = str(folder), str(folder / "triton")
    return folder


def one(case: Case, task: str) -> Case:
    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.reset()
    for each in keep_apart(case, task).rglob("*.best_config"):
        each.unlink()
    step = Pass(case, task)
    eager = figures(step.eager(), 0)
    gc.collect()
    torch.cuda.empty_cache()
    torch._dynamo.utils.counters.clear()
    compiled = step.compiled()
    begun = time.perf_counter()
    compiled()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    row = figures(compiled, 60)
    stats = torch._dynamo.utils.counters["stats"]
    return {"request": {"task": task, "gpu": "h200_sxm", "attention": "sdpa", "execution": "compile", **case["request"]}, "class": type(step.net).__name__,
            "whole": step.whole, "parameters": sum(each.numel() for each in step.net.parameters()), "graphs": stats["unique_graphs"],
            "compile_s": round(seconds, 1), **{key: value for key, value in row.items() if key != "by_kernel"}, "eager": eager,
            "forecast": case.get("forecast", {}).get(task), "by_kernel": row["by_kernel"]}


def measure(case: Case) -> typing.Iterator[Case]:
    for task in case["tasks"]:
        try:
            yield one(case, task)
        except Exception as why:  # noqa: BLE001  the other task is still measured
            print(f"{str(case['request']['model'])[:60]}, {task}: {type(why).__name__}: {why}"[:500], file=sys.stderr, flush=True)


if __name__ == "__main__":
    every(measure, lambda case: str(case["request"]["model"])[:60])
