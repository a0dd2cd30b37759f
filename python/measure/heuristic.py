"""cuDNN's heuristic for convolutions, asked through its backend interface, without a GPU or on one (choices.py)."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

# cudnn_graph.h of cuDNN 9: kinds of descriptors, attributes, types of attributes.
TENSOR, CONVOLUTION, GRAPH, HEURISTIC, CONFIG, ENGINE, KNOB, DEVICE = 17, 1, 15, 4, 3, 2, 7, 38
OPERATIONS = (10, 12, 11)  # forward, the image's gradient, the filters'
OPERANDS = ((702, 704, 703, 705, 700, 701), (708, 710, 709, 711, 706, 707), (714, 716, 715, 717, 712, 713))
HANDLE, DATA_TYPE, INT64, FLOAT, MODE, HEURISTIC_MODE, KNOB_TYPE, NOTE, DESCRIPTOR, CHAR = 0, 1, 3, 4, 7, 8, 9, 11, 15, 24
FP32, CROSS_CORRELATION, INSTANT, TENSOR_CORE = 0, 1, 0, 0
DTYPES = {"bf16": 9, "tf32": FP32, "fp32": FP32}  # fp32 is tf32 without engines of matrix units, as PyTorch leaves them out
SAYS = (2, 25, 11)  # knobs of which one says what an engine runs: its tile, its workspace, how it multiplies
DEEP, ROOM, CLUSTER, SPLITS = 13, 25, (27, 28), (0, 17)  # a step's depth, a workspace, tiles of a cluster, parts of a sum
KNOBS, NOTES, ANSWERS = 24, 10, {"bf16": 1, "tf32": 1, "fp32": 40}


class Shape(NamedTuple):
    product: int  # 0 the result, 1 the image's gradient, 2 the filters'
    nhwc: bool
    n: int
    c: int
    k: int
    sides: tuple[int, ...]
    taps: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dtype: str = "bf16"
    groups: int = 1
    dilation: tuple[int, ...] = ()  # of each axis; none: 1
    transposed: bool = False  # what goes the other way was asked for


def dilations(s: Shape) -> tuple[int, ...]:
    return s.dilation or (1,) * len(s.sides)


def outer(s: Shape) -> tuple[int, ...]:
    dims = zip(s.sides, s.taps, s.stride, s.pad, dilations(s), strict=True)
    return tuple((side + 2 * pad - apart * (taps - 1) - 1) // stride + 1 for side, taps, stride, pad, apart in dims)


def strides(sizes: tuple[int, ...], last: bool) -> list[int]:
    order = [0, *range(2, len(sizes)), 1] if last else list(range(len(sizes)))
    out, step = [0] * len(sizes), 1
    for axis in reversed(order):
        out[axis] = step
        step *= sizes[axis]
    return out


def tile_of(knobs: dict[int, int]) -> int:
    return next((knobs[knob] for knob in SAYS if knob in knobs), -1)


class Heuristic:
    """One described device; None: the GPU that is there."""

    def __init__(self, device: bytes | None) -> None:
        self.library = ctypes.CDLL("libcudnn.so.9")
        self.taken: list[ctypes.c_void_p] = []
        self.device = self.handle = ctypes.c_void_p()
        if device is None:
            if self.library.cudnnCreate(ctypes.byref(self.handle)):
                raise ValueError("no GPU")
            return
        self.device = self.make(DEVICE)
        self.set(self.device, 2702, CHAR, ctypes.create_string_buffer(device, len(device)), len(device))
        self.finish(self.device)
        self.taken.clear()  # it stays

    def call(self, name: str, *arguments) -> None:
        status = getattr(self.library, f"cudnnBackend{name}")(*arguments)
        if status:
            raise ValueError(f"{name}: status {status}")

    def make(self, kind: int) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.call("CreateDescriptor", kind, ctypes.byref(made))
        self.taken.append(made)
        return made

    def set(self, at: ctypes.c_void_p, attribute: int, kind: int, value, count: int = 1) -> None:
        self.call("SetAttribute", at, attribute, kind, ctypes.c_int64(count), ctypes.byref(value))

    def whole(self, at: ctypes.c_void_p, attribute: int, values) -> None:
        self.set(at, attribute, INT64, (ctypes.c_int64 * len(values))(*values), len(values))

    def get(self, at: ctypes.c_void_p, attribute: int, kind: int, out, count: int = 1) -> int:
        got = ctypes.c_int64()
        self.call("GetAttribute", at, attribute, kind, ctypes.c_int64(count), ctypes.byref(got), ctypes.byref(out))
        return min(got.value, count)

    def finish(self, at: ctypes.c_void_p) -> ctypes.c_void_p:
        self.call("Finalize", at)
        return at

    def tensor(self, name: str, sizes: tuple[int, ...], s: Shape) -> ctypes.c_void_p:
        made = self.make(TENSOR)
        self.set(made, 901, DATA_TYPE, ctypes.c_int(DTYPES[s.dtype]))
        self.whole(made, 902, sizes)
        self.whole(made, 903, strides(sizes, s.nhwc))
        self.whole(made, 906, [ord(name)])
        self.whole(made, 900, [16])
        return self.finish(made)

    def graph(self, s: Shape) -> ctypes.c_void_p:
        conv = self.make(CONVOLUTION)
        self.whole(conv, 106, [len(s.sides)])
        self.set(conv, 100, DATA_TYPE, ctypes.c_int(FP32))
        self.set(conv, 101, MODE, ctypes.c_int(CROSS_CORRELATION))
        for attribute, values in ((105, s.pad), (104, s.pad), (102, dilations(s)), (103, s.stride)):
            self.whole(conv, attribute, values)
        self.finish(conv)
        x = self.tensor("x", (s.n, s.c, *s.sides), s)
        w = self.tensor("w", (s.k, s.c // s.groups, *s.taps), s)
        y = self.tensor("y", (s.n, s.k, *outer(s)), s)
        operation = self.make(OPERATIONS[s.product])
        at = OPERANDS[s.product]
        for attribute, operand in zip(at, (conv, x, w, y), strict=False):
            self.set(operation, attribute, DESCRIPTOR, operand)
        self.set(operation, at[4], FLOAT, ctypes.c_float(1))
        self.set(operation, at[5], FLOAT, ctypes.c_float(0))
        graph = self.make(GRAPH)
        if self.handle:
            self.set(graph, 800, HANDLE, self.handle)
        self.set(graph, 801, DESCRIPTOR, self.finish(operation))
        return self.finish(graph)

    def knobs(self, config: ctypes.c_void_p) -> dict[int, int]:
        all_of = (ctypes.c_void_p * KNOBS)(*(self.make(KNOB).value for _ in range(KNOBS)))
        kind, value, said = ctypes.c_int(), ctypes.c_int64(), {}
        for knob in all_of[: self.get(config, 302, DESCRIPTOR, all_of, KNOBS)]:
            self.get(ctypes.c_void_p(knob), 600, KNOB_TYPE, kind)
            self.get(ctypes.c_void_p(knob), 601, INT64, value)
            said[kind.value] = value.value
        return said

    def allowed(self, s: Shape, engine: ctypes.c_void_p) -> bool:
        notes = (ctypes.c_int * NOTES)()
        return s.dtype != "fp32" or TENSOR_CORE not in notes[: self.get(engine, 1303, NOTE, notes, NOTES)]

    def first(self, s: Shape) -> tuple[int, int] | None:
        """Engine and tile (-1: none) of its first answer; both -1: it has none, PyTorch asks for fallbacks; None: refused."""
        answer = self.answer(s)
        return answer and (answer[0], tile_of(answer[1]))

    def answer(self, s: Shape) -> tuple[int, dict[int, int]] | None:
        """The same with all of its knobs."""
        try:
            asked = self.make(HEURISTIC)
            self.set(asked, 201, DESCRIPTOR, self.graph(s))
            self.set(asked, 200, HEURISTIC_MODE, ctypes.c_int(INSTANT))
            if self.device:
                self.set(asked, 204, DESCRIPTOR, self.device)
            self.finish(asked)
            many = ANSWERS[s.dtype]
            configs = (ctypes.c_void_p * many)(*(self.make(CONFIG).value for _ in range(many)))
            for at in configs[: self.get(asked, 202, DESCRIPTOR, configs, many)]:
                config, engine, index = ctypes.c_void_p(at), self.make(ENGINE), ctypes.c_int64()
                self.get(config, 300, DESCRIPTOR, engine)
                self.get(engine, 1301, INT64, index)
                if self.allowed(s, engine):
                    return index.value, self.knobs(config)
            return -1, {}
        except ValueError:
            return None
        finally:
            for each in self.taken:
                self.library.cudnnBackendDestroyDescriptor(each)
            self.taken.clear()
