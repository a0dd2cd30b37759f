"""From ATen calls to nodes of a graph file."""

from __future__ import annotations

import torch

from . import elsewhere, lower_attention, lower_dense, lower_memory, lower_pointwise, lower_rows, lower_views, scan, whole  # noqa: F401 - rules
from .errors import ExportError
from .nodes import Lowering, Node
from .program import read_graph_of
from .registry import RULES
from .values import Call, Program, Value

__all__ = ["lower"]

_DEEPEST = 4


def lower(program: Program, *, main: torch.dtype, training: bool) -> Lowering:
    """All calls of a program as nodes, in order."""
    low = Lowering(program, main=main, training=training)
    for call in program.calls:
        _lower(low, call, 0)
    low.call = None
    for name, where in low.unknown.items():
        low.warn(f"{name} has no rule: it is forecast as memory-bound, by the bytes of its operands and results ({where})")
    _simplify(low)
    return low


def _batched(x: torch.Tensor) -> bool:
    return bool(torch._C._functorch.is_batchedtensor(x))  # pyright: ignore[reportAttributeAccessIssue]


def _lower(low: Lowering, call: Call, depth: int) -> None:
    low.call = call
    if any(isinstance(x, torch.Tensor) and _batched(x) for x in call.args):
        raise ExportError(
            "torch.vmap inside the model hides its batch axis from the capture; written out, the operators can be read",
            code="operator",
            where=call.where,
        )
    if call.outs and all(out.numel == 0 for out in call.outs):
        return  # no element, no kernel: slices of shifted windows that are not shifted along every axis
    rule = RULES.get(call.op) if call.namespace in ("aten", "foretell", "transformers", "prims") else None
    if rule is not None:
        try:
            rule(low, call)
        except (IndexError, TypeError, KeyError, ValueError, AttributeError) as error:
            raise ExportError(
                f"{call.namespace}.{call.op}.{call.overload or 'default'} with these arguments is not understood "
                f"({type(error).__name__}: {error})",
                code="operator",
                where=call.where,
            ) from error
        return
    inner = _taken_apart(call) if depth < _DEEPEST else None
    if inner is not None:
        for part in inner:
            _lower(low, part, depth + 1)
        low.call = call
        return
    _unknown(low, call)


def _taken_apart(call: Call) -> list[Call] | None:
    """A composite operator (einsum, diff, multi-head attention) as the operators it calls; None where it has no parts."""
    target = call.target
    if not isinstance(target, torch._ops.OpOverload) or not call.outs:
        return None
    try:
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), "CompositeImplicitAutograd")
    except RuntimeError:
        return None
    return read_graph_of(call) if composite else None


def _unknown(low: Lowering, call: Call) -> None:
    tensors = [low.now(x) for x in call.tensors()]
    if not call.outs:
        return
    name = f"{call.namespace}.{call.op}"
    low.unknown.setdefault(name, call.where or ".".join(call.path) or "model")
    moved = sum(x.bytes for x in tensors) + sum(x.bytes for x in call.outs)
    if not tensors:
        for out in call.outs:
            low.emit("fill", [], out, {"shape": list(out.shape) or [1]})
        return
    first = call.outs[0]
    op = call.op if call.namespace in ("aten", "prims", "torchvision") else f"{call.namespace}_{call.op}"  # another's "mul" is not ours
    low.emit(op, tensors[:8], first, {"bytes": max(1, moved), "shape": list(first.shape) or [1]})
    for other in call.outs[1:]:
        low.emit(op, tensors[:1], other, {"bytes": max(1, other.bytes), "shape": list(other.shape) or [1]})


# -- views -------------------------------------------------------------------------------------------

_FREE = ("view", "transpose")


def _readers(nodes: list[Node], outputs: list[Value]) -> dict[Value, int]:
    count: dict[Value, int] = {}
    for node in nodes:
        for x in node.ins:
            count[x] = count.get(x, 0) + 1
        like = node.keys.get("like")
        if isinstance(like, Value):
            count[like] = count.get(like, 0) + 1
    for x in outputs:
        count[x] = count.get(x, 0) + 1
    return count


def _simplify(low: Lowering) -> None:
    """Views that nobody reads go; a view of a view that nobody else reads is one."""
    outputs = [low.now(x) for x in low.program.outputs]
    while True:
        count = _readers(low.nodes, outputs)
        maker = {out: node for node in low.nodes for out in node.outs}
        gone: set[int] = set()
        for node in low.nodes:
            idle = node.op in ("view", "transpose", "slice", "expand", "split", "unbind", "detach", "empty")
            if idle and not any(count.get(out, 0) for out in node.outs):
                gone.add(id(node))
                continue
            if node.op not in _FREE:
                continue
            before = maker.get(node.ins[0])
            if before is None or before.op not in _FREE or id(before) in gone or _tells_more(before, node):
                continue
            if count.get(before.out, 0) == 1:
                _join(before, node)
                gone.add(id(before))
        if not gone:
            break
        low.nodes = [node for node in low.nodes if id(node) not in gone]
    low.program.outputs = _drop_identities(low, outputs)


def _tells_more(before: Node, node: Node) -> bool:
    """Pictures as rows of tokens, ``x.flatten(2).transpose(1, 2)``: as one view the new order would be lost, and with it
    the copy that every norm makes of a stream that stays so. Tokens as images, ``x.transpose(1, 2).view(b, c, h, w)``:
    their channels lie last, which convolutions like; so do those of ``x.unflatten(1, (h, w)).permute(0, 3, 1, 2)``."""
    if before.op == "transpose" and node.op == "view" and len(before.out.shape) in (3, 4) and _channels_last(node.out):
        node.keys.pop("strided", None)  # by x's strides: the reader has them
        return True
    plain = before.op == "view" and before.ins[0].contiguous and before.out.contiguous
    turned = node.op == "transpose" and not node.out.contiguous
    return plain and turned and (len(node.out.shape) == 3 or _channels_last(node.out))


def _channels_last(x: Value) -> bool:
    """Pictures whose channels lie innermost, with or without gaps between images (tokens behind a class token)."""
    if len(x.shape) != 4 or x.shape[1] <= 1 or x.stride[1] != 1:
        return False
    _, c, _, w = x.shape
    return x.dense or (x.stride[3] == c and x.stride[2] == w * c)


def _join(before: Node, node: Node) -> None:
    """`node` alone for both views; two changes of order are one, anything else is told by its result."""
    if before.op == node.op == "transpose":
        node.keys = {"axes": [before.keys["axes"][a] for a in node.keys["axes"]]}
    else:
        node.op = "view"
        node.keys = {"shape": list(node.out.shape), "strided": not node.out.contiguous}
    node.ins = [before.ins[0]]


def _drop_identities(low: Lowering, outputs: list[Value]) -> list[Value]:
    """Views that came back to where they started."""
    same: dict[Value, Value] = {}
    kept: list[Node] = []
    for node in low.nodes:
        node.ins = [same.get(x, x) for x in node.ins]
        like = node.keys.get("like")
        if isinstance(like, Value):
            node.keys["like"] = same.get(like, like)
        if node.op in _FREE:
            x, out = node.ins[0], node.out
            if x.shape == out.shape and (x.stride == out.stride or (x.contiguous and out.contiguous)):
                same[out] = x
                continue
        kept.append(node)
    low.nodes = kept
    return [same.get(x, x) for x in outputs]
