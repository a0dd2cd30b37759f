"""From torch.export's graph to a list of ATen calls."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .compat import inlined, unwrap_subgraph
from .errors import ExportError
from .values import Call, Program, Value

__all__ = ["read_graph_of", "read_program"]


class _Reader:
    """Walks a graph module and its regions."""

    def __init__(self, program: Any, prefix: str) -> None:
        self.program, self.prefix = program, prefix
        self.result = Program()
        self.aliases: dict[str, str] = {}  # a tied parameter's other names -> its first

    def value(self, node: Any, meta: Any, **more: Any) -> Value:
        shape = tuple(int(s) for s in meta.shape)
        stride = tuple(int(s) for s in meta.stride()) if meta.layout == torch.strided else _row_major(meta.shape)
        dtype = meta.dtype
        if dtype.is_complex:  # two numbers each, side by side: the graph has no others
            shape = (*shape[:-1], 2 * shape[-1]) if shape else (2,)
            stride = (*(2 * step for step in stride[:-1]), 1)
            dtype = dtype.to_real()
        return Value(node.name, shape, dtype, stride, **more)

    def stack(self, node: Any) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
        """Paths of the modules a node runs in, without the wrapper's own."""
        paths: list[tuple[str, ...]] = []
        kind = ""
        for path, kind_ in (node.meta.get("nn_module_stack") or {}).values():
            path = str(path).split("@")[0]
            if self.prefix and not f"{path}.".startswith(self.prefix):
                continue
            path = path[len(self.prefix) :] if path else path
            kind = kind_ if isinstance(kind_, str) else getattr(kind_, "__qualname__", "")
            paths.append(tuple(path.split(".")) if path else ())
        return (paths[-1] if paths else ()), tuple(paths), kind

    def walk(self, module: Any, known: dict[Any, Any], frozen: bool, checkpoint: bool) -> Any:
        for node in module.graph.nodes:
            if node.op == "placeholder":
                if node not in known:
                    raise ExportError(f"the exported graph reads {node.name}, which nobody gives it", where="pt2")
            elif node.op == "get_attr":
                known[node] = self.constant(module, node)
            elif node.op == "output":
                return self.resolve(node.args[0], known)
            elif node.op == "call_function":
                self.call(module, node, known, frozen, checkpoint)
            else:
                raise ExportError(f"the exported graph has a {node.op} node, {node.name}", where="pt2")
        return None

    def constant(self, module: Any, node: Any) -> Any:
        thing = module
        for word in str(node.target).split("."):
            thing = getattr(thing, word)
        if not isinstance(thing, torch.Tensor):
            return thing
        value = self.value(node, thing, role="constant")
        self.result.buffers.append(value)
        return value

    def resolve(self, item: Any, known: dict[Any, Any]) -> Any:
        if isinstance(item, torch.fx.Node):
            return known[item]
        if isinstance(item, (list, tuple)):
            return [self.resolve(part, known) for part in item]
        if isinstance(item, dict):
            return {key: self.resolve(part, known) for key, part in item.items()}
        if isinstance(item, slice):
            return item
        if isinstance(item, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return _hint(item)
        return item

    def call(self, module: Any, node: Any, known: dict[Any, Any], frozen: bool, checkpoint: bool) -> None:
        target = node.target
        if target is operator.getitem:
            whole = self.resolve(node.args[0], known)
            known[node] = whole[node.args[1]] if isinstance(whole, (list, tuple)) else whole
            return
        region = unwrap_subgraph(target)
        if region is not None:
            self.region(node, known, region, frozen, checkpoint)
            return
        if isinstance(target, torch._ops.HigherOrderOperator):
            raise ExportError(
                f"control flow inside the graph ({inlined(target)}) cannot be forecast", code="control_flow", where=_line(node)
            )
        meta = node.meta.get("val")
        if not isinstance(target, torch._ops.OpOverload):
            known[node] = _hint(meta) if meta is not None else None  # arithmetic on sizes
            return
        path, paths, kind = self.stack(node)
        name = target._schema.name.split("::")
        call = Call(
            op=name[1],
            overload=target._overloadname,
            namespace=name[0],
            target=target,
            args=[self.resolve(a, known) for a in node.args],
            kwargs={k: self.resolve(v, known) for k, v in node.kwargs.items()},
            outs=[],
            path=path,
            modules=paths,
            module_type=kind,
            where=_line(node),
            frozen=frozen,
            checkpoint=checkpoint,
        )
        if isinstance(meta, torch.Tensor):
            call.outs = [self.value(node, meta)]
            known[node] = call.outs[0]
        elif isinstance(meta, (list, tuple)):
            outs: list[Any] = []
            for i, part in enumerate(meta):
                if isinstance(part, torch.Tensor):
                    value = self.value(node, part)
                    value.name = f"{node.name}.{i}"
                    outs.append(value)
                else:
                    outs.append(_hint(part) if part is not None else None)
            call.outs = [x for x in outs if isinstance(x, Value)]
            known[node] = outs
        else:
            known[node] = _hint(meta) if meta is not None else None
        self.result.calls.append(call)

    def region(self, node: Any, known: dict[Any, Any], region: tuple[int, int], frozen: bool, checkpoint: bool) -> None:
        where, first = region
        body = known[node.args[where]] if isinstance(node.args[where], torch.fx.Node) else node.args[where]
        name = inlined(node.target)
        if "set_grad" in name:
            frozen = frozen or node.args[0] is False
        if name == "wrap_with_autocast" and node.args[2] is not False and True in node.args[:4]:
            note = "a region of the model turns autocast on by itself; ask for dtype amp_bf16 or amp_fp16 instead"
            if note not in self.result.warnings:
                self.result.warnings.append(note)
        if "checkpoint" in name:
            checkpoint = self.result.checkpointed = True
        inner: dict[Any, Any] = {}
        holders = [n for n in body.graph.nodes if n.op == "placeholder"]
        for holder, argument in zip(holders, node.args[first:], strict=False):
            inner[holder] = self.resolve(argument, known)
        known[node] = self.walk(body, inner, frozen, checkpoint)


def _row_major(shape: Any) -> tuple[int, ...]:
    strides: list[int] = []
    n = 1
    for size in reversed([int(s) for s in shape]):
        strides.insert(0, n)
        n *= size
    return tuple(strides)


def _hint(item: Any) -> Any:
    """A number for a symbolic size."""
    if isinstance(item, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        node = item.node
        hint = getattr(node, "hint", None)
        if hint is None:
            raise ExportError("a size that depends on data is used as a number", code="data_dependent", where="model")
        return hint
    if isinstance(item, (list, tuple)):
        return [_hint(x) for x in item]
    return item


def _line(node: Any) -> str:
    """The user's line of a node, from the stack trace that tracing leaves on it."""
    trace = node.meta.get("stack_trace") or ""
    found = ""
    for line in trace.splitlines():
        line = line.strip()
        if line.startswith("File ") and "/torch/" not in line and "/foretell/export/" not in line:
            parts = line.split('"')
            number = line.split("line ")[-1].split(",")[0] if "line " in line else ""
            if len(parts) > 1:
                found = f"{parts[1]}:{number}"
    return found


def read_program(
    program: Any, module: torch.nn.Module | None = None, *, prefix: str = "", names: list[str] | None = None
) -> Program:
    """A torch.export program as calls. `module` tells which of its parameters are one and the same."""
    reader = _Reader(program, prefix)
    result = reader.result
    first: dict[int, str] = {}
    trained: dict[str, bool] = {}
    if module is not None:
        for name, p in module.named_parameters(remove_duplicate=False):
            reader.aliases[name] = first.setdefault(id(p), name)
            trained[name] = p.requires_grad
        for name, b in module.named_buffers(remove_duplicate=False):
            reader.aliases[name] = first.setdefault(id(b), name)
    else:
        state = getattr(program, "state_dict", {}) or {}
        for name, x in state.items():
            key = x.untyped_storage()._cdata if isinstance(x, torch.Tensor) and not x.is_meta else id(x)
            reader.aliases[name] = first.setdefault(key, name)
            trained[name] = bool(getattr(x, "requires_grad", True)) or isinstance(x, torch.nn.Parameter)
    known: dict[Any, Any] = {}
    by_name = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    users: list[Any] = []
    one_of: dict[str, Value] = {}
    for spec in program.graph_signature.input_specs:
        kind = spec.kind.name
        node = by_name.get(getattr(spec.arg, "name", ""))
        if node is None:
            continue
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor):
            known[node] = _hint(meta)
            continue
        if kind == "USER_INPUT":
            users.append((node, meta))
            continue
        target = str(spec.target)
        target = target[len(prefix) :] if prefix and target.startswith(prefix) else target
        target = reader.aliases.get(target, target)
        if target in one_of:
            known[node] = one_of[target]
            continue
        role = {"PARAMETER": "parameter", "BUFFER": "buffer"}.get(kind, "constant")
        value = reader.value(node, meta, role=role, target=target, trained=trained.get(target, role == "parameter"))
        if role == "parameter" and not meta.is_floating_point():
            value.trained = False
        one_of[target] = known[node] = value
        (result.parameters if role == "parameter" else result.buffers).append(value)
    for i, (node, meta) in enumerate(users):
        value = reader.value(node, meta, role="input")
        if names is not None and i < len(names):
            value.name = names[i]
        known[node] = value
        result.inputs.append(value)
    out = reader.walk(program.graph_module, known, False, False)
    result.outputs = [x for x in pytree.tree_leaves(out) if isinstance(x, Value)]
    # results that only change buffers (batch statistics) are not the model's
    result.outputs = [x for x in result.outputs if x.role == "made"] or result.outputs
    return result


def read_graph_of(call: Call) -> list[Call] | None:
    """The calls that one composite operator makes, on the same values."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    operands = call.tensors()

    def swap(item: Any, tensors: dict[Value, torch.Tensor]) -> Any:
        if isinstance(item, Value):
            return tensors[item]
        if isinstance(item, (list, tuple)):
            return [swap(x, tensors) for x in item]
        return item

    def run(*given: torch.Tensor) -> Any:
        tensors = dict(zip(operands, given, strict=True))
        args = [swap(a, tensors) for a in call.args]
        return call.target.decompose(*args, **{k: swap(v, tensors) for k, v in call.kwargs.items()})

    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            fakes = [torch.empty_strided(x.shape, x.stride, dtype=x.dtype, device="meta") for x in operands]
            traced = make_fx(run, tracing_mode="real")(*fakes)
    except Exception:  # noqa: BLE001 - then it is forecast as one unknown operator
        return None
    reader = _Reader(None, "")
    known = dict(zip([n for n in traced.graph.nodes if n.op == "placeholder"], operands, strict=True))
    out = reader.walk(traced, known, call.frozen, call.checkpoint)
    made = [x for x in pytree.tree_leaves(out) if isinstance(x, Value)]
    if len(made) != len(call.outs) or any(c.op == call.op for c in reader.result.calls):
        return None
    replace = dict(zip(made, call.outs, strict=True))

    def put(item: Any) -> Any:
        if isinstance(item, Value):
            return replace.get(item, item)
        if isinstance(item, list):
            return [put(x) for x in item]
        return item

    for inner in reader.result.calls:
        inner.args, inner.kwargs = [put(a) for a in inner.args], {k: put(v) for k, v in inner.kwargs.items()}
        inner.outs = [replace.get(x, x) for x in inner.outs]
        inner.path, inner.modules, inner.where = call.path, call.modules, call.where
    if any(x in operands for x in made):  # the result is an operand itself
        return None
    return reader.result.calls
