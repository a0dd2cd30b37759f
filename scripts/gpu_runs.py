"""Runs of one job on several GPUs, from a folder of measurements, as rows {"source", "request", "step_ms"}.

`runs(DATA)` reads three files of DATA (as `foretell fit --data` takes it), each where it is there:

  neusight/labels.csv      whole models in fp32, one GPU or four of a server: one source, "NeuSight"
  published/training.csv   llm-foundry's tables, the only source of it with a job on several GPUs: FSDP, blocks not compiled, attention of
                           the first FlashAttention (`attn_impl: triton` of 2023)
  published/runs.jsonl     runs whose request is there: those of steps (`truth_ms`); `weak` ones, which leave something unsaid, are left out

Nothing is chosen here: what a file says becomes a key of the request, what it does not say stays at the default. Of Lambda's runs on several
GPUs the request gains what the script that ran them says (`without_p2p`), and of its BERT a step is what the log ends at
(data/published/lambda_steady.jsonl), not what its table counts: 100 steps in the time of 101 and of the start.
"""

from __future__ import annotations

import csv
import json
import pathlib

import neighbour

HERE = pathlib.Path(__file__).resolve().parent
FOUNDRY = "MosaicML llm-foundry training benchmarks"
FOUNDRY_GPUS = {"H100-SXM-80GB": "h100_sxm", "A100-SXM-80GB": "a100_sxm_80gb", "A100-SXM-40GB": "a100_sxm_40gb"}
LABEL_GPUS = {"NVIDIA_A100-SXM4-40GB": "a100_sxm_40gb", "NVIDIA_A100_80GB_PCIe": "a100_pcie_80gb", "NVIDIA_H100_80GB_HBM3": "h100_sxm",
              "NVIDIA_L4": "l4", "AMD_Instinct_MI250": "mi250"}  # beside those of scripts/accuracy
RANKS = 4  # GPUs of NeuSight's servers
LAMBDA = "Lambda deeplearning-benchmark"
# Its script had `export NCCL_P2P_DISABLE=1` from 16 October 2022 (commit 0a684b62) to 6 February 2023 (aad0d1cd). Machines whose logs
# (pytorch/results/*_v1) are of these days, and whose host is a Xeon by their sys_pytorch.txt: GPU and how many of them.
WITHOUT_P2P = {("a100_pcie_80gb", 2), ("a100_sxm_80gb", 2), ("a100_sxm_80gb", 4), ("a100_sxm_80gb", 8), ("h100_pcie", 2), ("h100_pcie", 8),
               ("rtx_3090", 2), ("rtx_4090", 2), ("rtx_6000_ada", 2), ("rtx_a6000", 2), ("v100_sxm_16gb", 2), ("v100_sxm_16gb", 8)}
WITH_XEON = {"h100_pcie", "v100_sxm_16gb"}


def of_label(row: dict, accuracy) -> dict | None:
    """NeuSight's labels: forward, or forward and backward without an optimizer; several GPUs share the batch."""
    gpu = {**accuracy.LABEL_GPUS, **LABEL_GPUS}.get(row["gpu"])
    if gpu is None or row["model"] not in accuracy.LABELS:
        return None
    batch, how = int(row["batch"]), row["options"]
    request = {"task": "train" if row["mode"] == "train" else "forward", "model": accuracy.LABELS[row["model"]], "gpu": gpu, "dtype": "fp32",
               "attention": "eager", "batch": batch, "seq": int(row["seq"]), "optimizer": "none",
               "execution": "compile" if how == "fusion" else "eager"}
    if how not in ("", "fusion"):
        split = {"dp": {"dp": RANKS}, "tp": {"tp": RANKS}, "pp": {"pp": RANKS, "schedule": "gpipe"}}[how[:2]]
        request |= {"parallel": split, "batch": batch // RANKS if "dp" in split else batch, "global_batch": batch,
                    "cluster": {"gpus_per_node": RANKS}}
    return {"source": "NeuSight", "request": request, "step_ms": float(row["e2e_ms"])}


def of_foundry(row: dict) -> dict | None:
    """A line of llm-foundry's tables; a step is what its tokens per second make of the batch."""
    if row["source"] != FOUNDRY or row["gpu"] not in FOUNDRY_GPUS or not row["step_time_s"]:
        return None
    hidden, gpus = int(row["hidden"]), int(row["n_gpus"])
    batch, together = int(row["micro_batch"]), int(row["global_batch"])
    if together % (batch * gpus):
        return None
    model = {"model_type": "gpt2", "n_embd": hidden, "n_inner": int(row["ffn"]), "n_layer": int(row["layers"]), "n_head": int(row["heads"]),
             "n_positions": int(row["seq"]), "vocab_size": int(row["vocab"])}
    network = {"interconnect": row["interconnect"]} if row["interconnect"] else {}
    request = {"task": "train", "model": model, "gpu": FOUNDRY_GPUS[row["gpu"]], "batch": batch, "seq": int(row["seq"]), "global_batch": together,
               "dtype": "fp8" if "fp8" in row["dtype"] else "bf16", "master_weights": True, "attention": "flash1", "execution": "eager",
               "optimizer": "adamw", "recompute": "full" if row["act_ckpt"] == "full" else "none",
               "parallel": {"dp": gpus, "zero": 2 if "GRAD_OP" in row["zero_fsdp"] else 3},
               "cluster": {"gpus_per_node": int(row["gpus_per_node"]), **network}}
    return {"source": FOUNDRY, "request": request, "step_ms": 1e3 * float(row["step_time_s"])}


def steady_steps() -> dict[str, float]:
    """Steps as Lambda's logs have them, by the row of its tables that counts one too few and the start too."""
    rows = map(json.loads, (HERE.parent / "data/published/lambda_steady.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["of"]: row["truth_ms"] for row in rows if "of" in row}


def of_run(row: dict, steady: dict[str, float]) -> dict | None:
    if row.get("weak") or row.get("quantity") == "e2e_ms" or "truth_ms" not in row:
        return None
    return {"source": row["source"], "request": as_it_ran(row), "step_ms": steady.get(row.get("id"), row["truth_ms"])}


def as_it_ran(row: dict) -> dict:
    """Of Lambda's BERT in more than 16 bits the optimizer is BertAdam: run_squad.py takes FusedAdam with --fp16 alone."""
    asked = without_p2p(row)
    if row["source"].startswith(LAMBDA) and "BERT" in row["source"] and asked["dtype"] in ("tf32", "fp32"):
        return {**asked, "optimizer": "bert_adam"}
    return asked


def without_p2p(row: dict) -> dict:
    """The request with what Lambda's script of its day says of how GPUs reach each other."""
    asked = row["request"]
    gpu, several = asked["gpu"], asked.get("parallel", {}).get("dp", 1)
    if not row["source"].startswith(LAMBDA) or not isinstance(gpu, str) or (gpu, several) not in WITHOUT_P2P:
        return asked
    host = ", Xeon" if gpu in WITH_XEON else ""
    return {**asked, "cluster": {**asked.get("cluster", {}), "interconnect": f"PCIe without P2P{host}"}}


def runs(data: pathlib.Path) -> list[dict]:
    """All rows of the folder, those that are not asked left out."""
    accuracy, rows = neighbour.load(HERE / "accuracy"), []  # the models and GPUs of the labels, as it asks for them
    for path, make in (("neusight/labels.csv", lambda row: of_label(row, accuracy)), ("published/training.csv", of_foundry)):
        if (data / path).exists():
            with open(data / path, encoding="utf-8", newline="") as file:
                rows += map(make, csv.DictReader(file))
    path = data / "published/runs.jsonl"
    if path.exists():
        steady = steady_steps()
        rows += (of_run(json.loads(line), steady) for line in path.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row]
