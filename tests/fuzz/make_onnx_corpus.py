"""Writes the first inputs of fuzz_onnx: small files of the operators that exporters use.

Needs the onnx package; run it again when the corpus should know more operators:
    python tests/fuzz/make_onnx_corpus.py tests/fuzz/corpus/fuzz_onnx
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name: str, *shape: int | str, kind: int = FLOAT) -> object:
    return helper.make_tensor_value_info(name, kind, list(shape))


def ints(name: str, *numbers: int) -> object:
    return numpy_helper.from_array(numpy.array(numbers, dtype=numpy.int64), name)


def weight(name: str, *shape: int) -> object:
    """Declared to be elsewhere: the reader never looks at contents."""
    tensor = TensorProto(name=name, data_type=FLOAT, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    return tensor


def model(nodes: list[object], inputs: list[object], outputs: list[object], weights: list[object], **more: object) -> bytes:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, opset_imports=sets, **more).SerializeToString()


def corpus() -> dict[str, bytes]:
    node = helper.make_node
    half = numpy_helper.from_array(numpy.array(0.5, dtype=numpy.float32), "half")
    body = helper.make_function(
        "my", "Twice", ["a"], ["b"], [node("Relu", ["a"], ["h"]), node("Tanh", ["h"], ["b"])], [helper.make_opsetid("", 17)]
    )
    return {
        "linear": model(
            [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "b"], ["c"]), node("Gelu", ["c"], ["y"])],
            [value("x", "batch", "seq", 8)],
            [value("y", "batch", "seq", 4)],
            [weight("w", 8, 4), weight("b", 4)],
        ),
        "attention": model(
            [
                node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
                node("MatMul", ["q", "t"], ["s"]),
                node("Mul", ["s", "half"], ["m"]),
                node("Softmax", ["m"], ["p"], axis=-1),
                node("MatMul", ["p", "v"], ["y"]),
            ],
            [value(name, "batch", 2, "seq", 4) for name in "qkv"],
            [value("y", "batch", 2, "seq", 4)],
            [half],
        ),
        "shapes": model(
            [
                node("Shape", ["x"], ["s"]),
                node("Slice", ["s", "zero", "two"], ["lead"]),
                node("Concat", ["lead", "rest"], ["shape"], axis=0),
                node("Reshape", ["x", "shape"], ["r"]),
                node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3]),
                node("Gather", ["t", "zero"], ["g"], axis=1),
                node("Split", ["g"], ["y", "z"], axis=-1),
            ],
            [value("x", "batch", "seq", 8)],
            [value("y", "batch", 1, "seq", 2), value("z", "batch", 1, "seq", 2)],
            [ints("zero", 0), ints("two", 2), ints("rest", -1, 4)],
        ),
        "picture": model(
            [
                node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
                node("BatchNormalization", ["c", "b", "b", "b", "b"], ["n"]),
                node("MaxPool", ["n"], ["m"], kernel_shape=[2, 2]),
                node("GlobalAveragePool", ["m"], ["g"]),
                node("Flatten", ["g"], ["f"]),
                node("Gemm", ["f", "h"], ["y"], transB=1),
            ],
            [value("x", "N", 3, 8, 8)],
            [value("y", "N", 5)],
            [weight("w", 4, 3, 3, 3), weight("b", 4), weight("h", 5, 4)],
        ),
        "lookup": model(
            [
                node("Gather", ["w", "x"], ["e"]),
                node("ReduceMean", ["e"], ["m"], axes=[-1], keepdims=1),
                node("Sub", ["e", "m"], ["d"]),
                node("Cast", ["d"], ["h"], to=10),
                node("LayerNormalization", ["d", "s", "s"], ["n"]),
                node("TopK", ["n", "one"], ["y", "i"]),
            ],
            [value("x", "batch", "seq", kind=INT64)],
            [value("y", "batch", "seq", 1)],
            [weight("w", 9, 8), weight("s", 8), ints("one", 1)],
        ),
        "microsoft": model(
            [
                node("Attention", ["x", "w", "b"], ["a"], num_heads=2, domain="com.microsoft"),
                node("SkipLayerNormalization", ["a", "x", "s", "s"], ["n"], domain="com.microsoft"),
                node("FastGelu", ["n"], ["f"], domain="com.microsoft"),
                node("MatMulNBits", ["f", "p", "q"], ["y"], K=8, N=4, bits=4, block_size=16, domain="com.microsoft"),
            ],
            [value("x", "batch", "seq", 8)],
            [value("y", "batch", "seq", 4)],
            [weight("w", 8, 24), weight("b", 24), weight("s", 8), weight("p", 4, 1, 8), weight("q", 4)],
        ),
        "quantised": model(
            [
                node("DynamicQuantizeLinear", ["x"], ["u", "s", "z"]),
                node("MatMulInteger", ["u", "w"], ["i"]),
                node("Cast", ["i"], ["f"], to=1),
                node("Mul", ["f", "s"], ["y"]),
            ],
            [value("x", "batch", 8)],
            [value("y", "batch", 4)],
            [TensorProto(name="w", data_type=TensorProto.INT8, dims=(8, 4), data_location=TensorProto.EXTERNAL)],
        ),
        "recurrent": model(
            [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3), node("Resize", ["y", "", "k"], ["o"])],
            [value("x", "seq", "batch", 2)],
            [value("o", 1, 1, 1, 1)],
            [weight("w", 1, 12, 2), weight("r", 1, 12, 3), numpy_helper.from_array(numpy.ones(4, numpy.float32), "k")],
        ),
        "function": model(
            [node("Twice", ["x"], ["y"], domain="my"), node("Einsum", ["y", "y"], ["z"], equation="ij,kj->ik")],
            [value("x", 2, 3)],
            [value("z", 2, 2)],
            [],
            functions=[body],
        ),
        "unknown": model(
            [node("Blur", ["x"], ["y"], domain="acme"), node("NonZero", ["y"], ["z"])],
            [value("x", "batch", 3)],
            [value("y", "batch", 3), value("z", 2, 4, kind=INT64)],
            [],
        ),
    }


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, data) in enumerate(corpus().items()):
        for task in (0, 1):
            (folder / f"{name}_{task}").write_bytes(bytes([0x32, task | (number & 3) << 3]) + data)


if __name__ == "__main__":
    main()
