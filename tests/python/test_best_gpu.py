"""scripts/best_gpu: runs of one job on several GPUs, from files of rows and from a folder of measurements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LABELS = "gpu,mode,model,batch,seq,options,e2e_ms,suspect\n"
FOUNDRY = (
    "source,gpu,n_gpus,gpus_per_node,interconnect,layers,hidden,heads,ffn,vocab,seq,micro_batch,global_batch,dtype,zero_fsdp,act_ckpt,step_time_s\n"
    "MosaicML llm-foundry training benchmarks,{gpu},8,8,{wire},24,2048,16,8192,50368,2048,{batch},64,amp_bf16,FSDP {shard},{again},{seconds}\n"
)


def report(*flags: str, fails: bool = False) -> str:
    program = Path(os.environ["FORETELL_PROGRAM"])
    command = [sys.executable, str(ROOT / "scripts" / "best_gpu"), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=not fails, env={**os.environ, "BUILD": str(program.parent)})
    return done.stderr if fails else done.stdout


def line_of(said: str, source: str) -> list[str]:
    """The source's line of the first table."""
    (line,) = (line for line in said.split("\n\n")[0].splitlines() if line.startswith(f"| {source}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def folder(at: Path) -> Path:
    """A folder of measurements with a job or two of each file."""
    (at / "neusight").mkdir(parents=True)
    (at / "published").mkdir()
    labels = [("Tesla_T4", "", 400), ("NVIDIA_L4", "", 300), ("NVIDIA_L4", "fusion", 250), ("Some_GPU", "", 1),
              ("NVIDIA_H100_80GB_HBM3", "dp4", 50), ("NVIDIA_A100-SXM4-40GB", "dp4", 100)]
    (at / "neusight" / "labels.csv").write_text(
        LABELS + "".join(f"{gpu},train,gpt2_large,4,1024,{how},{ms},\n" for gpu, how, ms in labels))
    rows = [FOUNDRY.format(gpu="H100-SXM-80GB", wire="", batch=8, shard="FULL_SHARD", again="none", seconds=1),
            FOUNDRY.format(gpu="A100-SXM-80GB", wire="1600 Gbps/node RoCE", batch=4, shard="SHARD_GRAD_OP", again="full", seconds=2),
            FOUNDRY.format(gpu="A100-SXM-40GB", wire="", batch=5, shard="FULL_SHARD", again="full", seconds=2)]
    first, *others = (text.splitlines(keepends=True) for text in rows)
    (at / "published" / "training.csv").write_text("".join([*first, *(other[1] for other in others)]))
    ask = {"task": "train", "model": "bert-base-uncased", "batch": 8, "seq": 384, "dtype": "fp16"}
    runs = [{"source": "R", "truth_ms": ms, "request": {**ask, "gpu": gpu}, "quantity": "sequences_per_s"} for gpu, ms in (("a100_sxm_80gb", 30), ("h100_sxm", 20))]
    runs += [{"source": "R", "truth_bytes": 1, "request": {**ask, "gpu": "l4"}}, {"source": "R", "truth_ms": 5, "weak": True, "request": {**ask, "gpu": "t4"}},
             {"source": "R", "truth_ms": 5, "quantity": "e2e_ms", "request": {**ask, "gpu": "l40s"}}]
    (at / "published" / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    return at


def test_rows_of_a_folder_become_requests(tmp_path: Path) -> None:
    """What each file says is in the request; what cannot be asked is left out."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import gpu_runs
    finally:
        sys.path.pop(0)
    rows = gpu_runs.runs(folder(tmp_path / "data"))
    by: dict[str, list[dict]] = {}
    for row in rows:
        by.setdefault(row["source"], []).append(row)
    assert [row["request"]["gpu"] for row in by["NeuSight"]] == ["t4", "l4", "l4", "h100_sxm", "a100_sxm_40gb"]
    assert [row["request"]["execution"] for row in by["NeuSight"][:3]] == ["eager", "eager", "compile"]
    assert by["NeuSight"][3]["request"]["parallel"] == {"dp": 4} and by["NeuSight"][3]["request"]["batch"] == 1
    h100, a100 = (row["request"] for row in by[gpu_runs.FOUNDRY])  # the third's batch is no multiple of its ranks' share
    assert h100["parallel"] == {"dp": 8, "zero": 3} and h100["recompute"] == "none" and "interconnect" not in h100["cluster"]
    assert a100["parallel"] == {"dp": 8, "zero": 2} and a100["recompute"] == "full" and a100["cluster"]["interconnect"] == "1600 Gbps/node RoCE"
    assert [row["step_ms"] for row in by[gpu_runs.FOUNDRY]] == [1000, 2000]
    assert [row["request"]["gpu"] for row in by["R"]] == ["a100_sxm_80gb", "h100_sxm"]


def test_folder_and_files_are_compared_together(tmp_path: Path) -> None:
    said = report("--data", str(folder(tmp_path / "data")), "--over", "0")
    assert line_of(said, "NeuSight")[1:3] == ["2", "2"]  # T4 and L4 as they come, A100 and H100 by fours; compiled is a job of its own
    assert line_of(said, "R")[1:4] == ["1", "1", "100"]
    assert line_of(said, "MosaicML")[1:4] == ["1", "1", "100"]
    pairs = int(line_of(said, "all")[2])
    assert f"{pairs} pairs are further off than 0 %" in said
    assert any("| R | bert-base-uncased, 1 GPUs, 8 of 384 | fp16 | a100_sxm_80gb | h100_sxm | 0.67 |" in line for line in said.splitlines())


def test_a_folder_without_runs_is_said(tmp_path: Path) -> None:
    assert "published/runs.jsonl" in report("--data", str(tmp_path), fails=True)


def test_gpus_of_our_published_runs() -> None:
    """Recipes of one publisher on H100, B200, B300, GB200 and GB300: the fastest is found, and the ratio is a tenth off at most."""
    everything = line_of(report(), "all")
    assert everything[3] == "100" and float(everything[4].split(" / ")[0]) < 10
