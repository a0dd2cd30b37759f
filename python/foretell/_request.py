"""Keywords of a call as a request of the library.

The names are those of a JSON request (docs/interface.md). Keys of a layout and of a cluster may be given side by side
with the others, ``tp=8`` for ``parallel={"tp": 8}``, as on the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from ._model import dtype_name
from .errors import Error

__all__ = ["ModelRequest", "request_of"]


class ModelRequest(TypedDict, total=False):
    """What may be said of a forecast beside the model, the GPU, the task and the dtype."""

    id: Any
    batch: int
    seq: int
    global_batch: int
    weights_dtype: str
    kv_dtype: str
    cache: Literal["paged", "static", "dynamic"]
    attention: Literal["flash", "eager", "sdpa", "flash1", "flash2"]
    execution: Literal["eager", "fused", "compile", "cuda_graph", "ideal"]
    stack: str | Mapping[str, Any]
    compile_scope: Literal["auto", "model", "layers"]
    fusions: Literal["recipe", "plain"]
    host: str | Mapping[str, Any]
    host_us_per_op: float
    optimizer: str
    master_weights: bool
    clip_grad: bool
    recompute: Literal["none", "selective", "full"]
    recompute_modules: Sequence[str]
    lora_rank: int
    layout: Literal["nhwc", "nchw"]
    read_as: str
    quantile: float
    detail: Literal["summary", "layers", "kernels"]
    advice: bool
    techniques: bool
    loader: Mapping[str, Any]
    parallel: Mapping[str, Any]
    cluster: Mapping[str, Any]
    dp: int
    tp: int
    pp: int
    vpp: int
    cp: int
    cp_kind: Literal["ring", "ulysses", "gather", "pytorch"]
    ulysses: bool
    ep: int
    etp: int
    zero: int
    shard: int
    sp: bool
    schedule: Literal["1f1b", "interleaved", "gpipe", "zero_bubble", "dualpipe"]
    deal: Literal["even", "rest"]
    overlap: bool
    tp_overlap: bool
    overlap_p2p: bool
    gather: Literal["layer", "parameter"]
    reshard: bool
    gather_overlap: bool
    expert_dispatch: Literal["copies", "once"]
    expert_overlap: bool
    expert_skew: float
    expert_capacity: float
    bucket_mib: float
    reduce_dtype: str
    gather_dtype: str
    nodes: int
    gpus_per_node: int
    interconnect: str
    topology: str
    oversubscription: float
    leaf_nodes: int
    nccl: str
    tiers: Sequence[Mapping[str, Any]]


_PARALLEL = frozenset(
    "dp tp pp vpp cp cp_kind ulysses ep etp zero shard sp schedule deal overlap tp_overlap overlap_p2p gather reshard "
    "gather_overlap expert_dispatch expert_overlap expert_skew expert_capacity bucket_mib reduce_dtype "
    "gather_dtype".split()
)
_CLUSTER = frozenset("nodes gpus_per_node interconnect topology oversubscription leaf_nodes nccl tiers".split())
_DTYPES = frozenset("dtype weights_dtype kv_dtype reduce_dtype gather_dtype".split())


def request_of(**given: Any) -> dict[str, Any]:
    """A request from keywords; None means left out.

    >>> request_of(task="train", model="gpt2", gpu="h100_sxm", tp=2, batch=None)
    {'task': 'train', 'model': 'gpt2', 'gpu': 'h100_sxm', 'parallel': {'tp': 2}}
    """
    request: dict[str, Any] = {}
    for key, value in given.items():
        if value is None:
            continue
        if key in _PARALLEL:
            _inside(request, "parallel", given)[key] = _scalar(key, value)
        elif key in _CLUSTER:
            _inside(request, "cluster", given)[key] = _scalar(key, value)
        elif key in ("parallel", "cluster"):
            _inside(request, key, given)
        elif key == "gpu":
            request[key] = [_gpu(each) for each in value] if isinstance(value, (list, tuple)) else _gpu(value)
        else:
            request[key] = _scalar(key, value)
    return request


def _inside(request: dict[str, Any], key: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if key not in request:
        said = given.get(key) or {}
        if not isinstance(said, Mapping):
            raise Error(f"{key} is a dictionary", code="wrong_type", where=key)
        request[key] = dict(said)
    inner: dict[str, Any] = request[key]
    return inner


def _gpu(gpu: Any) -> Any:
    if isinstance(gpu, (str, Mapping)):
        return gpu
    if hasattr(gpu, "__fspath__"):
        return str(gpu.__fspath__())
    if isinstance(getattr(gpu, "name", None), str):  # a row of gpus()
        return str(gpu.name)
    raise Error(f"a GPU is a name, a path or a spec, not a {type(gpu).__name__}", code="wrong_type", where="gpu")


def _scalar(key: str, value: Any) -> Any:
    """PyTorch's dtypes by their names, NumPy's and PyTorch's numbers as Python's own."""
    if key in _DTYPES:
        return dtype_name(value)
    if isinstance(value, (str, bool, int, float, Mapping, list, tuple)) or not hasattr(value, "item"):
        return value
    return value.item()
