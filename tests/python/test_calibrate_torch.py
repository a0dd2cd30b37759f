"""The device layer of `calibrate` over PyTorch, with a stand-in for torch.cuda: kernels run on the CPU in no time, events
read a clock of their own, which a graph's replay puts on by 0.1 ms. What it times is made up; that everything runs is not.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from foretell.calibrate import timing, torch_device  # noqa: E402
from foretell.calibrate.cells import all_cells, chosen_cells  # noqa: E402
from foretell.calibrate.errors import CalibrateError, OutOfMemory, Skip  # noqa: E402
from foretell.calibrate.kernels.of_request import bind  # noqa: E402
from foretell.calibrate.machine import Monitor, Readings  # noqa: E402
from foretell.calibrate.operands import Operands  # noqa: E402
from foretell.calibrate.sequence import Spread  # noqa: E402
from foretell.calibrate.timing import BRISK, GraphTimer, Sample  # noqa: E402


class Clock:
    """The stand-in's own: no test depends on how fast the machine is."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


CLOCK = Clock()


class Event:
    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self) -> None:
        CLOCK.sleep(1e-6)  # what the launch between two of them takes at least
        self.at = CLOCK.now

    def synchronize(self) -> None: ...

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) * 1e3


class Graph:
    """Remembers nothing: every replay takes as long."""

    captured = 0

    def capture_begin(self, pool: object = None) -> None: ...

    def capture_end(self) -> None:
        Graph.captured += 1

    def replay(self) -> None:
        CLOCK.sleep(1e-4)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A GPU of 64 GiB by the name of an H200, half a gigabyte of it taken."""
    gpu = SimpleNamespace(
        name="NVIDIA H200", multi_processor_count=132, total_memory=64 << 30, L2_cache_size=1 << 20, major=9, minor=0,
        uuid="", free=(64 << 30) - (1 << 29), reserved=0, emptied=0,
    )  # fmt: skip
    properties = gpu

    def emptied() -> None:
        gpu.emptied += 1

    for name, value in {
        "device_count": lambda: 1, "is_available": lambda: True, "current_device": lambda: 0,
        "get_device_properties": lambda device=None: properties, "Stream": lambda device=None: None,
        "set_stream": lambda stream: None, "graph_pool_handle": lambda: (0, 1), "CUDAGraph": Graph, "Event": Event,
        "synchronize": lambda device=None: None, "mem_get_info": lambda device=None: (gpu.free, gpu.total_memory),
        "memory_reserved": lambda device=None: gpu.reserved, "empty_cache": emptied,
    }.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, value)
    for module in (torch_device, timing):
        monkeypatch.setattr(module, "time", CLOCK)
    monkeypatch.setattr(torch_device, "WARM_UP_S", 0.0)
    monkeypatch.setattr(torch_device, "BUFFER_BYTES", 17 << 20)
    monkeypatch.setattr(torch_device, "Monitor", _Monitor)
    yield gpu
    torch.set_grad_enabled(True)


class _Monitor:
    busy: float | None = 0.0

    def __init__(self, device: str) -> None:
        self.latest = {"clock": 1980.0}

    def utilisation(self) -> float | None:
        return _Monitor.busy

    def driver(self) -> str | None:
        return "580"

    def state(self) -> torch_device.State:
        return torch_device.State(1980.0)

    def close(self) -> None: ...


def opened(**more: object) -> torch_device.TorchDevice:
    return torch_device.TorchDevice(None, False, 0, torch.device("cpu"), **more)


MOST = {
    "rows": 64, "cols": 96, "vocab": 128, "numel": 4096, "m": 48, "n": 48, "k": 48, "b": 2, "batch": 2, "q_len": 64,
    "kv_len": 64, "c": 16, "h": 32, "w": 32, "tensors": 4,
}  # fmt: skip


GPU_ALONE = (  # kernels, or combinations of number formats, that PyTorch has for GPUs only
    {"op": "rmsnorm", "pass": "bwd"},
    {"op": "layernorm", "pass": "bwd", "dtype": "bf16"},
    {"op": "optimizer", "name": "adamw_fused"},
    {"op": "optimizer", "name": "adamw_foreach"},
)


def one_of_each_kind() -> list[dict[str, object]]:
    """Every operator, name, pass, layout and number format that a cell draws, in a size for a CPU."""
    kinds: dict[tuple[object, ...], dict[str, object]] = {}
    for cell in all_cells():
        spread = Spread(cell.name, 0, cell.dimensions)
        for index in range(300):
            request = cell.draw(spread(index), index)
            if request is not None:
                kind = tuple(request.get(key) for key in ("op", "name", "pass", "dtype", "layout", "causal"))
                kinds.setdefault(kind, request)
    small = []
    for request in kinds.values():
        request = {key: min(value, MOST[key]) if key in MOST else value for key, value in request.items()}
        if request["op"] == "optimizer":
            request["params"] = 1024 * request["tensors"]
        small.append(request)
    return small


def test_every_kind_of_request_runs(cuda: SimpleNamespace) -> None:
    """A wrong argument of one operator would be skipped on the GPU and cost its family; here it fails."""
    device = opened()
    failed, done = [], set()
    for request in one_of_each_kind():
        if (request["dtype"] == "fp8" and request["op"] == "gemm") or request["op"] == "moe":
            continue  # _scaled_mm and _grouped_mm ask for hardware
        try:
            result = bind(request, device._operands).make()()
            assert result is not None or request["op"] == "optimizer"
            done.add((request["op"], request.get("name"), request.get("pass")))
        except (Skip, RuntimeError, AttributeError, TypeError, ValueError) as error:
            if not any(request.items() >= kind.items() for kind in GPU_ALONE):
                failed.append((request, str(error)[:200]))
    assert not failed
    assert len(done) > 50


def test_the_products_of_a_layout_are_the_products(cuda: SimpleNamespace) -> None:
    """nt: A[m,k], B stored [n,k]; nn: B stored [k,n]; tn: A stored [k,m]."""
    operands = opened()._operands
    for layout, a_stride, b_stride in (("nt", (32, 1), (1, 32)), ("nn", (32, 1), (24, 1)), ("tn", (1, 16), (24, 1))):
        request = {"op": "gemm", "dtype": "fp32", "m": 16, "n": 24, "k": 32, "layout": layout}
        launch = bind(request, operands).make()
        a, b = (cell.cell_contents for cell in launch.__closure__)
        assert launch().shape == (16, 24)
        assert (a.stride(), b.stride()) == (a_stride, b_stride)


def test_measures_and_keeps_to_its_pace(cuda: SimpleNamespace) -> None:
    device = opened()
    before = Graph.captured
    measured = device.measure({"op": "elementwise", "dtype": "fp32", "name": "add", "inputs": 2, "numel": 4096})
    assert measured.ms > 0
    assert BRISK.min_replays <= measured.repeats <= BRISK.max_replays
    assert Graph.captured > before


def test_long_kernels_need_no_graph(cuda: SimpleNamespace) -> None:
    device = opened()
    before = Graph.captured
    sample = device._timer.time(lambda: lambda: CLOCK.sleep(0.005))
    assert sample.ms == pytest.approx(5.001)
    assert Graph.captured == before
    assert sample.repeats == BRISK.long_replays


def test_copies_exceed_the_cache(cuda: SimpleNamespace) -> None:
    """Ten copies of small operands, and of large ones only so many as push each other out of L2."""
    device = opened()
    made: list[int] = []

    def make_of(bytes_each: int):
        def make():
            made.append(bytes_each)
            device._operands.take(torch.float32, bytes_each // 4)
            return lambda: None

        return make

    device._timer.time(make_of(4096))
    assert len(made) == 10
    made.clear()
    device._timer.time(make_of(2 << 20))
    assert len(made) == 3  # 3 x 1 MiB of L2 over 2 MiB, and one
    made.clear()
    device._timer.time(make_of(4096), rotate=False)
    assert len(made) == 1


def test_out_of_memory_is_the_points_own(cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened()

    def full(*_: object, **__: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(OutOfMemory, match="buffer"):
        device.measure({"op": "elementwise", "dtype": "fp32", "name": "copy", "inputs": 1, "numel": 1 << 30})
    assert cuda.emptied == 0
    monkeypatch.setattr(device._timer, "time", full)
    with pytest.raises(OutOfMemory, match="out of memory"):
        device.measure({"op": "elementwise", "dtype": "fp32", "name": "add", "inputs": 2, "numel": 4096})
    assert cuda.emptied == 1


def test_a_lost_device_ends_the_run(cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    monkeypatch.setattr(device._timer, "time", broken)
    request = {"op": "elementwise", "dtype": "fp32", "name": "add", "inputs": 2, "numel": 4096}
    with pytest.raises(Skip, match="illegal memory access"):
        device.measure(request)  # the device still answers: the kernel alone was refused
    monkeypatch.setattr(torch.cuda, "synchronize", broken)
    with pytest.raises(CalibrateError, match="lost"):
        device.measure(request)


def test_memory_is_given_back_only_when_it_piles_up(cuda: SimpleNamespace) -> None:
    device = opened()
    request = {"op": "elementwise", "dtype": "fp32", "name": "add", "inputs": 2, "numel": 4096}
    device.measure(request)
    assert cuda.emptied == 0
    cuda.reserved = cuda.total_memory
    device.measure(request)
    assert cuda.emptied == 1


def test_eager_gap_and_references(cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("copy", {"numel": 4096}), ("product", {"m": 64, "n": 64, "k": 64})):
        monkeypatch.setitem(torch_device.REFERENCES, name, {**torch_device.REFERENCES[name], **size})
    device = opened()
    told = device.eager()
    assert len(told) >= 5
    assert all(measured.ms > 0 and measured.repeats == 30 for _, measured in told)
    assert set(device.reference()) == {"product", "copy"}


def test_readings(cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi's, or PyTorch's where there is none; and memory that others take."""
    for name, size in (("copy", {"numel": 4096}), ("product", {"m": 64, "n": 64, "k": 64})):
        monkeypatch.setitem(torch_device.REFERENCES, name, {**torch_device.REFERENCES[name], **size})
    device = opened()
    assert device.state().clock_mhz == 1980.0 and device.state().others is None
    cuda.free -= 10 << 30
    device.reference()
    assert device.state().others == "10 GiB of its memory have been taken meanwhile"
    device._monitor.latest = {}
    assert device.state().clock_mhz is None  # this machine's PyTorch has nobody to ask
    told = Readings({"clock_mhz": lambda: 1200, "power_w": lambda: 310.0})
    assert told.state().clock_mhz == 1200.0 and told.state().temperature_c is None


def test_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "*clocks_event*) exit 2 ;;\n"  # a driver from before that name
        '*utilization.gpu\\ *|*"utilization.gpu -i"*) echo 37 ;;\n'
        "*driver_version*) echo 525.1 ;;\n"
        "*) echo '1410, 2619, 688.25, 71, 0x0000000000000044, 99, 1980' ;;\n"
        "esac\n"
    )
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monitor = Monitor("GPU-1")
    state = monitor.state()
    assert (state.clock_mhz, state.power_w, state.temperature_c) == (1410.0, 688.25, 71.0)
    assert state.power_capped and state.held_back == "heat (hardware)"
    assert (monitor.utilisation(), monitor.driver()) == (37.0, "525.1")
    monitor.close()
    smi.write_text("#!/bin/sh\necho nonsense\n")
    silent = Monitor("0")
    assert silent.state() == torch_device.State() and silent.utilisation() is None
    silent.close()


def test_description(cuda: SimpleNamespace) -> None:
    described = opened().describe()
    assert described.gpu == "h200_sxm"
    assert described.dtypes == ("bf16", "fp16", "fp32", "tf32", "fp8")
    assert described.facts["device"]["sms"] == 132
    cuda.major, cuda.minor = 7, 5
    assert opened().describe().dtypes == ("fp16", "fp32")
    assert any(cell.dtype == "fp16" and cell.weight > 8 for cell in chosen_cells(("fp16", "fp32"), (), ()))


def test_an_unknown_gpu_gets_a_spec_or_asks_for_one(cuda: SimpleNamespace) -> None:
    cuda.name = "NVIDIA H100 MIG 3g.40gb"
    described = opened().describe()
    assert described.gpu["base"] == "h100_sxm" and described.gpu["sms"] == 132
    assert "not in the catalogue" in described.warnings[0]
    cuda.name, cuda.major = "NVIDIA Z9000", 42
    with pytest.raises(CalibrateError, match="--gpu"):
        opened()


def test_a_busy_gpu_is_refused(cuda: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Monitor, "busy", 93.0)
    with pytest.raises(CalibrateError, match="93 % busy") as caught:
        opened()
    assert caught.value.status == 3
    device = torch_device.TorchDevice(None, True, 0, torch.device("cpu"))
    assert "93 % busy" in device.describe().warnings[0]
    monkeypatch.setattr(_Monitor, "busy", 0.0)
    cuda.free = 20 << 30
    with pytest.raises(CalibrateError, match="44.0 of its 64.0 GiB"):
        opened()


def test_no_gpu_and_no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(CalibrateError, match="no GPU") as caught:
        torch_device.open_device(None, False, 0)
    assert caught.value.status == 3
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    with pytest.raises(CalibrateError, match="built for the CPU"):
        torch_device.open_device(None, False, 0)


def test_samples() -> None:
    sample = Sample.of([4.0, 1.0, 2.0, 3.0, 100.0], 2)
    assert (sample.ms, sample.ms_min, sample.ms_max, sample.repeats) == (1.5, 0.5, 50.0, 5)
    assert sample.spread == pytest.approx(2.0 / 3.0)


def test_operands_are_apart_and_random() -> None:
    operands = Operands(torch.device("cpu"), 1 << 20)
    a, b = operands.take(torch.float32, 1000), operands.take(torch.float32, 1000)
    assert a.data_ptr() != b.data_ptr()
    assert abs(float(a.mean())) < 0.2 and 0.8 < float(a.std()) < 1.2
    assert operands.bytes_taken == 8000
    assert isinstance(GraphTimer, type)


def test_collectives_between_processes() -> None:
    """The worker and its parent, over gloo on the CPU: NCCL needs GPUs."""
    from foretell.calibrate import collectives

    told = list(islice(collectives.measure(2, 60.0, 3, backend="gloo"), 8))
    assert len(told) == 8
    assert {entry["request"]["op"] for entry in told} == {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
    assert [entry["id"] for entry in told] == [f"collectives#{3 + i}" for i in range(len(told))]
    assert all(entry["ms"] > 0 and entry["repeats"] == 5 for entry in told)
    assert all(entry["request"]["bytes"] % (2 * entry["request"]["ranks"]) == 0 for entry in told)
    assert list(collectives.measure(1, 1.0, 0, backend="no such backend")) == []
