"""Blocks: repeated layers are written once.

Layers are children of a container, numbered: ``model.layers.0``, ``model.layers.1``. Two neighbours are one block that
repeats when they run the same operators with the same sizes on corresponding operands: values of their own, parameters of
the same local names, values made before both of them, and one value that the first hands to the second. Patterns of
several layers (a window in every other one) repeat as a whole. What differs stays a block of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .nodes import Node
from .values import Value

__all__ = ["Block", "fold"]

_LONGEST_PATTERN = 16

Key = tuple[tuple[str, ...], str]


@dataclass
class Block:
    """Nodes of one iteration."""

    name: str
    nodes: list[Node]
    repeat: int = 1
    carry: Value | None = None  # what the first iteration reads, where it repeats or is a layer
    result: Value | None = None
    prefix: tuple[str, ...] = ()  # of the module names in it
    others: list[list[Node]] = field(default_factory=list)  # the same nodes of the other iterations


@dataclass
class _Unit:
    container: tuple[str, ...]
    index: str
    nodes: list[Node]

    @property
    def path(self) -> tuple[str, ...]:
        return (*self.container, self.index)


# -- cutting into layers -----------------------------------------------------------------------------


def _key(node: Node, depth: int) -> Key | None:
    for i in range(depth, len(node.path)):
        if node.path[i].isdigit():
            return node.path[:i], node.path[i]
    return None


def _cut(nodes: list[Node], depth: int) -> list[_Unit | list[Node]]:
    """Runs of one layer's nodes, and what stands between them."""
    runs: list[tuple[Key | None, list[Node]]] = []
    for node in nodes:
        key = _key(node, depth)
        if runs and runs[-1][0] == key:
            runs[-1][1].append(node)
        else:
            runs.append((key, [node]))
    items: list[_Unit | list[Node]] = []
    for i, (key, run) in enumerate(runs):
        if key is None:
            after = runs[i + 1][0] if i + 1 < len(runs) else None
            before = runs[i - 1][0] if i > 0 else None
            between = after is not None and before is not None and after[0] == before[0]
            if between:  # the container's own code between two of its layers goes with the second
                runs[i + 1] = (after, run + runs[i + 1][1])
            else:
                items.append(run)
        else:
            items.append(_Unit(key[0], key[1], run))
    return items


# -- comparing layers --------------------------------------------------------------------------------


def _made(nodes: Iterable[Node]) -> dict[Value, int]:
    order: dict[Value, int] = {}
    for node in nodes:
        for out in node.outs:
            order[out] = len(order)
    return order


def _local(target: str, paths: list[tuple[str, ...]]) -> str:
    """A parameter's name inside its layer: the layer's number, or which of the pattern's layers it is, left out."""
    for i, path in enumerate(paths):
        prefix = ".".join(path) + "."
        if target.startswith(prefix):
            return f"{i}:{target[len(prefix):]}"
    return target


class _Pair:
    """Whether the layers B run what the layers A, just before them, run."""

    def __init__(self, a: list[_Unit], b: list[_Unit], learned: frozenset[Value]) -> None:
        self.learned = learned
        self.a_nodes = [n for u in a for n in u.nodes]
        self.b_nodes = [n for u in b for n in u.nodes]
        self.a_paths, self.b_paths = [u.path for u in a], [u.path for u in b]
        self.made_a, self.made_b = _made(self.a_nodes), _made(self.b_nodes)
        self.carry_in: Value | None = None  # of A
        self.carry: Value | None = None  # from A to B

    def equal(self) -> bool:
        if len(self.a_nodes) != len(self.b_nodes):
            return False
        return all(self._node(x, y) for x, y in zip(self.a_nodes, self.b_nodes, strict=True)) and self.carry is not None

    def _node(self, x: Node, y: Node) -> bool:
        if x.op != y.op or len(x.ins) != len(y.ins) or len(x.outs) != len(y.outs):
            return False
        if self._place(x, self.a_paths) != self._place(y, self.b_paths):
            return False
        if x.keys.keys() != y.keys.keys() or x.parameters.keys() != y.parameters.keys():
            return False
        for name, value in x.keys.items():
            other = y.keys[name]
            if isinstance(value, Value) and isinstance(other, Value):
                if not self._operand(value, other):
                    return False
            elif value != other:
                return False
        for name, p in x.parameters.items():
            if not self._parameter(p, y.parameters[name]):
                return False
        for out, other in zip(x.outs, y.outs, strict=True):
            if out.shape != other.shape or out.dtype != other.dtype:
                return False
        return all(self._operand(p, q) for p, q in zip(x.ins, y.ins, strict=True))

    @staticmethod
    def _place(node: Node, paths: list[tuple[str, ...]]) -> tuple[int, tuple[str, ...]]:
        for i, path in enumerate(paths):
            if node.path[: len(path)] == path:
                return i, node.path[len(path) :]
        return -1, ()  # the container's own code

    def _parameter(self, p: Value, q: Value) -> bool:
        if p is q:
            return True
        same = p.shape == q.shape and p.dtype == q.dtype and p.trained == q.trained and p.role == q.role
        if same and p.role == "constant":  # a list of numbers in the code
            return True
        return same and _local(p.target, self.a_paths) == _local(q.target, self.b_paths)

    def _operand(self, p: Value, q: Value) -> bool:
        if p in self.made_a and q in self.made_b:
            return self.made_a[p] == self.made_b[q]
        if p is q:
            return q not in self.made_a
        if p.role in ("parameter", "buffer", "constant") or q.role in ("parameter", "buffer", "constant"):
            return self._parameter(p, q)
        if q in self.made_a and p not in self.made_a:
            if self.carry not in (None, q) or self.carry_in not in (None, p):
                return False
            # adapters beside frozen weights: what the first layer is given has no gradient, and the layer keeps less
            if p.shape != q.shape or p.dtype != q.dtype or (p in self.learned) != (q in self.learned):
                return False
            self.carry, self.carry_in = q, p
            return True
        return False


class _Folder:
    def __init__(self, nodes: list[Node], outputs: list[Value], learned: Iterable[Value] = ()) -> None:
        self.learned = frozenset(learned)
        self.reads: dict[Value, list[int]] = {}  # who reads a value, by number of the node
        self.number = {id(node): i for i, node in enumerate(nodes)}
        for i, node in enumerate(nodes):
            for x in [*node.ins, *(v for v in node.keys.values() if isinstance(v, Value))]:
                self.reads.setdefault(x, []).append(i)
        for x in outputs:
            self.reads.setdefault(x, []).append(len(nodes))

    def run(self, units: list[_Unit], start: int, period: int) -> tuple[int, Value | None, Value | None]:
        """How often the pattern of `period` layers from `start` on repeats; the first carry in, the last carry out."""
        chunks: list[list[_Unit]] = [units[start : start + period]]
        first: Value | None = None
        place = -1
        carry: Value | None = None
        while True:
            at = start + period * len(chunks)
            following = units[at : at + period]
            if len(following) < period:
                break
            pair = _Pair(chunks[-1], following, self.learned)
            if not pair.equal() or pair.carry is None:
                break
            here = pair.made_a[pair.carry]
            if place not in (-1, here) or (carry is not None and pair.carry_in is not carry):
                break
            if not self._closed(pair, pair.carry):
                break
            first = first if first is not None else pair.carry_in
            place, carry = here, pair.carry
            chunks.append(following)
        if len(chunks) < 2:
            return 1, None, None
        last = _made([n for u in chunks[-1] for n in u.nodes])
        result = next(v for v, i in last.items() if i == place)
        return len(chunks), first, result

    def _closed(self, pair: _Pair, carry: Value) -> bool:
        """Nothing but the carry leaves A, and only for B."""
        inside = {self.number[id(n)] for n in pair.a_nodes}
        beside = inside | {self.number[id(n)] for n in pair.b_nodes}
        for value in pair.made_a:
            allowed = beside if value is carry else inside
            if any(i not in allowed for i in self.reads.get(value, ())):
                return False
        return True

    def blocks(self, nodes: list[Node], depth: int) -> list[Block]:
        out: list[Block] = []
        items = _cut(nodes, depth)
        i = 0
        while i < len(items):
            item = items[i]
            if isinstance(item, list):
                out.append(Block("", item))
                i += 1
                continue
            group: list[_Unit] = []
            while i < len(items):
                unit = items[i]
                if not isinstance(unit, _Unit) or unit.container != item.container:
                    break
                group.append(unit)
                i += 1
            made = self._group(group, len(item.container) + 1)
            # a handful of different steps in a list (nn.Sequential) are no layers
            steps = all(block.repeat == 1 for block in made) and sum(len(u.nodes) for u in group) < 6 * len(group)
            out += [Block("", block.nodes) for block in made] if steps else made
        return out

    def _group(self, units: list[_Unit], depth: int) -> list[Block]:
        out: list[Block] = []
        i = 0
        while i < len(units):
            best: tuple[int, int, Value | None, Value | None] = (1, 1, None, None)
            for period in range(1, min(_LONGEST_PATTERN, (len(units) - i) // 2) + 1):
                times, first, result = self.run(units, i, period)
                if times > 1 and times * period > best[0] * best[1]:
                    best = (times, period, first, result)
                if best[0] * best[1] == len(units) - i:
                    break
            times, period, first, result = best
            unit = units[i]
            if times == 1:
                out += self._single(unit, depth)
                i += 1
                continue
            chunks = [units[i + k * period : i + (k + 1) * period] for k in range(times)]
            nodes = [n for u in chunks[0] for n in u.nodes]
            others = [[n for u in chunk for n in u.nodes] for chunk in chunks[1:]]
            block = Block(".".join(unit.container), nodes, times, first, result, unit.container, others)
            out.append(block)
            i += times * period
        return out

    def _single(self, unit: _Unit, depth: int) -> list[Block]:
        inner = self.blocks(unit.nodes, depth)
        if any(block.repeat > 1 for block in inner):
            for block in inner:
                block.name = block.name or ".".join(unit.path)
                block.prefix = block.prefix or unit.path
            return inner
        return [Block(".".join(unit.container), unit.nodes, prefix=unit.container)]


def fold(nodes: list[Node], outputs: list[Value], learned: Iterable[Value] = ()) -> list[Block]:
    """Blocks in the order in which they run."""
    folder = _Folder(nodes, outputs, learned)
    blocks = [block for block in folder.blocks(nodes, 0) if block.nodes]
    return _named(_run_again_apart(blocks), folder)


def _weights(nodes: list[Node]) -> list[Value]:
    return [x for n in nodes for x in (*n.parameters.values(), *n.ins) if x.role in ("parameter", "buffer")]


def _run_again_apart(blocks: list[Block]) -> list[Block]:
    """Layers with weights of their own that run again elsewhere are written out: a repeated block's weights are nobody else's."""
    users = Counter(x for block in blocks for x in {*_weights(block.nodes), *(w for ns in block.others for w in _weights(ns))})
    out = []
    for block in blocks:
        pairs = [pair for other in block.others for pair in zip(_weights(block.nodes), _weights(other), strict=False)]
        mine = {x for first, again in pairs if first is not again for x in (first, again)}
        if any(users[x] > 1 for x in mine):
            out.append(Block("", [n for nodes in (block.nodes, *block.others) for n in nodes]))
        else:
            out.append(block)
    return out


def _named(blocks: list[Block], folder: _Folder) -> list[Block]:
    """Neighbours that repeat nothing and are no layers are one block; what is before and after layers has a name."""
    merged: list[Block] = []
    for block in blocks:
        if merged and not block.name and not merged[-1].name and block.repeat == merged[-1].repeat == 1:
            merged[-1].nodes = merged[-1].nodes + block.nodes
        else:
            merged.append(block)
    layers = [i for i, block in enumerate(merged) if block.name]
    for i, block in enumerate(merged):
        if block.name:
            continue
        if not layers:
            block.name = "model"
        elif i < layers[0]:
            block.name = "embed"
        elif i > layers[-1]:
            block.name = "head"
        else:
            block.name = "middle"
    _hand_over(merged, folder)
    return merged


def _hand_over(blocks: list[Block], folder: _Folder) -> None:
    """What each block leaves to the next, and which of its operands walks in."""
    last = max(folder.number.values(), default=0) + 1
    for i, block in enumerate(blocks):
        if block.result is not None:
            continue
        following = blocks[i + 1] if i + 1 < len(blocks) else None
        made = _made(block.nodes)
        if following is not None and following.carry is not None and following.carry in made:
            block.result = following.carry
            continue
        inside = {folder.number[id(n)] for n in block.nodes}
        candidates = [v for v in made if any(r not in inside for r in folder.reads.get(v, ()))]
        if following is None:
            candidates = [v for v in made if last in folder.reads.get(v, ())] or candidates
        elif len(candidates) > 1:  # what the next block reads, the largest of it
            after = {folder.number[id(n)] for n in following.nodes}
            near = [v for v in candidates if any(r in after for r in folder.reads.get(v, ()))]
            candidates = near or candidates
        floats = [v for v in candidates if v.dtype.is_floating_point] or candidates
        block.result = max(floats, key=lambda v: v.numel) if floats else block.nodes[-1].outs[0] if block.nodes[-1].outs else None
    for i, block in enumerate(blocks):
        if block.carry is None and i > 0 and block.name != "embed":
            before = blocks[i - 1].result
            reads = {x for node in block.nodes for x in node.ins}
            if before in reads:
                block.carry = before
