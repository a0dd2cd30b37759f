"""Operators as events of a profiler trace.

The form is Kineto's (``torch.profiler`` with ``record_shapes=True``), so that a recording and a profile go through
the same reader: names, dimensions, types and strides of inputs in the order of the operator's schema, scalars as
text. Times are places in the order of execution, since the time of the machine that recorded means nothing to the
forecast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Tensor", "event_of", "is_free", "spec_of"]

# As c10 prints its types.
_TYPES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long int",
    torch.int32: "int",
    torch.int16: "short int",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "bool",
    torch.complex64: "c10::complex<float>",
    torch.complex128: "c10::complex<double>",
    torch.float8_e4m3fn: "c10::Float8_e4m3fn",
    torch.float8_e5m2: "c10::Float8_e5m2",
}

# Arguments that are formats, as numbers: c10's ScalarType.
_CODES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.float8_e5m2: 23,
    torch.float8_e4m3fn: 24,
}

# They give a result memory and write nothing into it.
_ALLOCATE = frozenset(
    f"aten::{name}"
    for name in "empty empty_like empty_strided new_empty new_empty_strided resize_ set_ record_stream".split()
)
# Views whose schema does not say so, and answers about a tensor.
_NO_KERNEL = frozenset(
    f"aten::{name}"
    for name in "_unsafe_view is_same_size sym_size sym_stride sym_numel sym_storage_offset is_pinned".split()
)


def _name_of(dtype: torch.dtype) -> str:
    return _TYPES.get(dtype, str(dtype))


@dataclass(frozen=True)
class Tensor:
    """What a trace keeps of a tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    strides: tuple[int, ...]


def spec_of(tensor: torch.Tensor) -> Tensor:
    """A tensor without its values; sparse and other layouts have no strides."""
    strides = tuple(tensor.stride()) if tensor.layout == torch.strided else ()
    return Tensor(tuple(int(size) for size in tensor.shape), tensor.dtype, tuple(int(step) for step in strides))


def is_free(func: torch._ops.OpOverload, name: str, results: Any) -> bool:
    """Views, allocations and empty results: the host calls them, the GPU does nothing."""
    if name in _ALLOCATE or name in _NO_KERNEL:
        return True
    made = [each for each in _flat(results) if isinstance(each, torch.Tensor)]
    if made and all(each.numel() == 0 for each in made):
        return True
    schema = func._schema
    returns = schema.returns
    if not returns:
        return False
    return all(each.alias_info is not None and not each.alias_info.is_write for each in returns)


def event_of(
    name: str, schema: torch.FunctionSchema, args: Sequence[Any], kwargs: Mapping[str, Any], results: Any
) -> dict[str, Any]:
    """The ``args`` of an event, without its place and phase."""
    dims: list[Any] = []
    types: list[Any] = []
    strides: list[Any] = []
    concrete: list[str] = []
    for value in _in_order(schema, args, kwargs):
        tensors = _tensors_in(value)
        if tensors and name == "aten::cat":  # a cache that is empty yet: nothing of it is copied
            tensors = [each for each in tensors if 0 not in each.shape] or tensors
        if isinstance(value, (torch.Tensor, Tensor)):
            spec = value if isinstance(value, Tensor) else spec_of(value)
            dims.append(list(spec.shape))
            types.append(_name_of(spec.dtype))
            strides.append(list(spec.strides))
            concrete.append("")
        elif tensors is not None:
            dims.append([list(each.shape) for each in tensors])
            types.append(_type_of_list(tensors))
            strides.append([list(each.strides) for each in tensors])
            concrete.append("")
        else:
            dims.append([])
            types.append("" if value is None else "ScalarList" if isinstance(value, (list, tuple)) else "Scalar")
            strides.append([])
            concrete.append(_text_of(value))
    made = [spec_of(each) for each in _flat(results) if isinstance(each, torch.Tensor)]
    made += [each for each in _flat(results) if isinstance(each, Tensor)]
    event: dict[str, Any] = {
        "Input Dims": dims,
        "Input type": types,
        "Input Strides": strides,
        "Concrete Inputs": concrete,
        "Output Dims": [list(each.shape) for each in made],
        "Output type": [_name_of(each.dtype) for each in made],
    }
    return event


def _type_of_list(tensors: Sequence[Tensor]) -> str:
    """A profile says "TensorList" alone, and its kernels' names the format; a recording has no kernels."""
    formats = {each.dtype for each in tensors}
    return f"TensorList<{_name_of(formats.pop())}>" if len(formats) == 1 else "TensorList"


def _in_order(schema: torch.FunctionSchema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    for at, argument in enumerate(schema.arguments):
        if at < len(args):
            yield args[at]
        elif argument.name in kwargs:
            yield kwargs[argument.name]
        elif argument.has_default_value():
            yield argument.default_value
        else:
            yield None


def _tensors_in(value: Any) -> list[Tensor] | None:
    """A list of tensors, some of which may be missing; None for anything else."""
    if not isinstance(value, (list, tuple)) or not value:
        return None
    found = [each for each in value if isinstance(each, (torch.Tensor, Tensor))]
    if not found or any(each is not None and not isinstance(each, (torch.Tensor, Tensor)) for each in value):
        return None
    return [each if isinstance(each, Tensor) else spec_of(each) for each in found]


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _flat(each)
    else:
        yield value


def _text_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, torch.dtype):
        return str(_CODES.get(value, value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text_of(each) for each in value) + "]"
    return str(value)
