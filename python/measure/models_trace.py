"""What one profiled step launched, read from the profiler's trace.

The trace, not the profiler's own tables, because only the trace keeps the shapes of tensor lists, the input types and
strides, the scalar arguments and the allocator's events. `Trace(path)` gives the totals that a row of models.jsonl
holds (`profile`, `launches`, `cpu_ops`, ...) and `ops`: every operator that launched kernels or took memory, in the
order in which the host called it, with the fields of OPS_FIELDS.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path

OPS_FIELDS = (
    "op",  # the innermost operator that launched the kernels
    "shapes",  # of its inputs; [] is a scalar or none; a tensor list is nested
    "dtypes",
    "kernels",  # launched, copies and fills included
    "device_us",
    "cpu_self_us",  # host time of the operator without the operators it called, under the profiler
    "kernel",  # the first kernel's name
    "outer",  # the outermost operator (linear for an addmm), behind the autograd node's name in the backward pass
    "phase",  # fw, bw or opt
    "scalars",  # scalar arguments as the trace prints them
    "strides",  # of the inputs where one of them is not contiguous
    "alloc",  # bytes taken from the allocator during the outermost operator; on its first line alone
    "free",  # bytes given back
    "total",  # bytes allocated after the outermost operator
    "more",  # further kernels, [name, us] each
)
KERNEL_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCH_NAMES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
MAX_OPS = 3000
MAX_TEXT = 400
KERNEL_NAME = 100
TYPES = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "long int": "i64",
    "int": "i32",
    "bool": "bool",
    "unsigned char": "u8",
    "signed char": "i8",
    "Scalar": "s",
    "ScalarList": "sl",
    "TensorList": "list",
    "": "",
}


def is_wrapper(name: str) -> bool:
    """Events of the autograd engine around operators."""
    return name.startswith(("autograd::", "torch::autograd::")) or "::" not in name


def flat_shapes(dims: list) -> str:
    """Shapes as the profiler's own tables print them: a list of tensors is []."""
    return str([[] if d and isinstance(d[0], list) else d for d in dims])


def contiguous(dims: list, strides: list) -> bool:
    if dims and isinstance(dims[0], list):
        return all(contiguous(d, s) for d, s in zip(dims, strides))
    expected = 1
    for size, stride in zip(reversed(dims), reversed(strides)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def short_types(types: list) -> str:
    return ",".join(TYPES.get(t, str(t)) for t in types)


class Op:
    """One operator on the host's side, and what it launched."""

    __slots__ = ("name", "start", "end", "thread", "args", "parent", "child_us", "kernels", "outer", "node")

    def __init__(self, event: dict) -> None:
        self.name, self.start, self.thread = event["name"], float(event["ts"]), event["tid"]
        self.end = self.start + float(event.get("dur", 0))
        self.args = event.get("args", {})
        self.parent: Op | None = None
        self.child_us = 0.0
        self.kernels: list[tuple[float, float, str]] = []
        self.outer: Op = self
        self.node = ""

    @property
    def dims(self) -> list:
        return self.args.get("Input Dims", [])


class Trace:
    def __init__(self, path: Path | str) -> None:
        events = json.loads(Path(path).read_text(errors="replace"), strict=False)["traceEvents"]
        self.ops = [Op(e) for e in events if e.get("cat") == "cpu_op" and e.get("ph") == "X"]
        self.kernels = [e for e in events if e.get("cat") in KERNEL_CATEGORIES]
        self.runtime = Counter(e["name"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver"))
        self.phases = [
            (float(e["ts"]), float(e["ts"]) + float(e["dur"]), e["name"].removeprefix("phase:"))
            for e in events
            if e.get("cat") == "user_annotation" and e["name"].startswith("phase:")
        ]
        self.memory = sorted(
            (
                (float(e["ts"]), e["tid"], int(e["args"]["Bytes"]), int(e["args"].get("Total Allocated", 0)))
                for e in events
                if e.get("name") == "[memory]" and e["args"].get("Device Type") == 1
            ),
            key=lambda m: m[0],
        )
        self._nest()
        self._attach_kernels()

    def _nest(self) -> None:
        threads: dict[object, list[Op]] = defaultdict(list)
        for op in self.ops:
            threads[op.thread].append(op)
        for ops in threads.values():
            ops.sort(key=lambda o: (o.start, -o.end))
            stack: list[Op] = []
            for op in ops:
                while stack and stack[-1].end <= op.start and not (stack[-1].end == stack[-1].start == op.start):
                    stack.pop()
                if stack:
                    op.parent = stack[-1]
                    op.parent.child_us += op.end - op.start
                    inside = not is_wrapper(op.parent.outer.name)
                    op.outer = op.parent.outer if inside else op
                    op.node = op.parent.node
                if op.name.startswith("autograd::engine::evaluate_function: "):
                    op.node = op.name.split(": ", 1)[1]
                stack.append(op)

    def _attach_kernels(self) -> None:
        by_id = {op.args["External id"]: op for op in self.ops if "External id" in op.args}
        self.orphans: Counter[str] = Counter()
        for event in self.kernels:
            op = by_id.get(event["args"].get("External id"))
            duration = float(event["dur"])
            if op is None:
                self.orphans[event["name"][:KERNEL_NAME]] += 1
            else:
                op.kernels.append((float(event["ts"]), duration, event["name"]))
        for op in self.ops:
            op.kernels.sort()

    def profile(self) -> dict[str, object]:
        """Sums by kernel and by operator with its shapes, the 40 and 60 largest."""
        kernels: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        for event in self.kernels:
            total = kernels[event["name"][:110]]
            total[0] += 1
            total[1] += float(event["dur"])
        ops: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
        for op in self.ops:
            if op.kernels:
                total = ops[op.name, flat_shapes(op.dims)]
                total[0] += 1
                total[1] += sum(k[1] for k in op.kernels)
        return {
            "busy_ms": sum(float(e["dur"]) for e in self.kernels) / 1e3,
            "kernels": len(self.kernels),
            "by_kernel": [
                [n, int(c), round(us, 2)] for n, (c, us) in sorted(kernels.items(), key=lambda i: -i[1][1])[:40]
            ],
            "by_op": [
                [n, s, int(c), round(us, 2)] for (n, s), (c, us) in sorted(ops.items(), key=lambda i: -i[1][1])[:60]
            ],
        }

    def launches(self) -> int:
        return sum(self.runtime[name] for name in LAUNCH_NAMES)

    def cpu_ops(self) -> int:
        return sum(op.name.startswith("aten::") for op in self.ops)

    def ordered(self) -> list[list[object]]:
        """One line for each operator with kernels, and one for an outermost operator that took memory without any."""
        taken = self._memory_by_outer()
        launching: dict[Op, list[Op]] = defaultdict(list)
        for op in self.ops:
            if op.kernels:
                launching[op.outer].append(op)
        outers = sorted({*launching, *taken}, key=lambda o: o.start)
        lines: list[list[object]] = []
        for outer in outers:
            memory = taken.get(outer, (0, 0, 0))
            inner = sorted(launching.get(outer, [outer] if memory[0] else []), key=lambda o: o.start)
            for op in inner:
                lines.append(self._line(op, memory))
                memory = (0, 0, 0)
            if len(lines) >= MAX_OPS:
                break
        return lines[:MAX_OPS]

    def _memory_by_outer(self) -> dict[Op, tuple[int, int, int]]:
        """Bytes taken and given back while an outermost operator ran, and the total after it."""
        tops: dict[object, list[Op]] = defaultdict(list)
        for op in self.ops:
            if op.outer is op and not is_wrapper(op.name):
                tops[op.thread].append(op)
        starts = {thread: [o.start for o in sorted(ops, key=lambda o: o.start)] for thread, ops in tops.items()}
        for ops in tops.values():
            ops.sort(key=lambda o: o.start)
        taken: dict[Op, tuple[int, int, int]] = {}
        for when, thread, size, total in self.memory:
            i = bisect_right(starts.get(thread, []), when) - 1
            if i < 0 or tops[thread][i].end < when:
                continue
            alloc, free, _ = taken.get(tops[thread][i], (0, 0, 0))
            taken[tops[thread][i]] = (alloc + max(size, 0), free + max(-size, 0), total)
        return taken

    def _phase(self, when: float) -> str:
        return next((name for begin, end, name in self.phases if begin <= when <= end), "")

    def _line(self, op: Op, memory: tuple[int, int, int]) -> list[object]:
        args = op.args
        strides = args.get("Input Strides", [])
        outer = op.outer.name.removeprefix("aten::")
        return [
            op.name,
            str(op.dims)[:MAX_TEXT],
            short_types(args.get("Input type", [])),
            len(op.kernels),
            round(sum(k[1] for k in op.kernels), 3),
            round(op.end - op.start - op.child_us, 2),
            op.kernels[0][2][:KERNEL_NAME] if op.kernels else "",
            f"{op.node}>{outer}" if op.node else outer,
            self._phase(op.start),
            ",".join(str(c)[:60] for c in args.get("Concrete Inputs", []) if c not in ("", "[]"))[:MAX_TEXT],
            "" if contiguous(op.dims, strides) else str(strides)[:MAX_TEXT],
            *memory,
            [[name[:KERNEL_NAME], round(us, 2)] for _, us, name in op.kernels[1:8]],
        ]
