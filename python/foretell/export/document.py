"""Blocks of nodes as the dictionary of a graph file."""

from __future__ import annotations

from typing import Any

from .fold import Block
from .nodes import Lowering, Node
from .values import Program, Value

__all__ = ["document", "with_sizes"]

# what an operator makes by itself where nobody else uses it
_OWN = {
    "linear": ("weight", "bias"),
    "layernorm": ("weight", "bias"),
    "rmsnorm": ("weight",),
    "groupnorm": ("weight", "bias"),
    "batchnorm": ("weight", "bias"),
    "conv1d": ("weight", "bias"),
    "conv2d": ("weight", "bias"),
    "conv3d": ("weight", "bias"),
    "embedding": ("table",),
    "recurrence": ("weight", "bias", "weight_reverse", "bias_reverse"),
    "experts": ("up", "down", "up_bias", "down_bias"),
}


class _Writer:
    def __init__(self, low: Lowering, blocks: list[Block]) -> None:
        self.low, self.blocks, self.program = low, blocks, low.program
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.root = _root(blocks)
        self.users: dict[Value, list[tuple[int, Node, str]]] = {}
        self.local: dict[Value, int] = {}  # parameters of a repeated block's own -> the block
        self.covered: set[Value] = set()  # those of its other iterations
        self.placed: dict[int, list[Value]] = {i: [] for i in range(len(blocks))}

    # -- names

    def name(self, x: Value) -> str:
        if x not in self.names:
            base = x.target or x.name
            text, n = base, 1
            while text in self.taken:
                n += 1
                text = f"{base}.{n}"
            self.taken.add(text)
            self.names[x] = text
        return self.names[x]

    def follow_iterations(self) -> None:
        """Values of a block's last iteration are, after it, what its first iteration's names mean."""
        for block in self.blocks:
            if not block.others:
                continue
            for node, last in zip(block.nodes, block.others[-1], strict=True):
                for x, y in zip(node.outs, last.outs, strict=True):
                    self.names[y] = self.name(x)

    # -- parameters

    def survey(self) -> None:
        for i, block in enumerate(self.blocks):
            for k, node in enumerate(block.nodes):
                other = block.others[0][k] if block.others else None
                for key, p in node.parameters.items():
                    self._use(i, node, key, p, other.parameters[key] if other else None)
                for k2, x in enumerate(node.ins):
                    if x.role in ("parameter", "buffer", "constant"):
                        self._use(i, node, "", x, other.ins[k2] if other else None)
                for nodes in block.others:
                    self.covered.update(p for p in nodes[k].parameters.values())
                    self.covered.update(x for x in nodes[k].ins if x.role in ("parameter", "buffer", "constant"))

    def _use(self, block: int, node: Node, key: str, p: Value, other: Value | None) -> None:
        self.users.setdefault(p, []).append((block, node, key))
        if other is not None and other is not p:
            self.local[p] = block

    def own(self, node: Node, key: str, p: Value) -> bool:
        """Whether the operator makes this parameter by itself."""
        if key not in _OWN.get(node.op, ()) or p.role != "parameter" or not p.trained:
            return False
        if not self.low.is_main(p.dtype) or len(self.users.get(p, ())) != 1:
            return False
        if node.op == "experts" and len({self.plain(q) for q in node.parameters.values()}) > 1:
            return False
        block = self.users[p][0][0]
        return self.blocks[block].repeat == 1 or self.local.get(p) == block

    def plain(self, p: Value) -> bool:
        return p.trained and self.low.is_main(p.dtype) and len(self.users.get(p, ())) == 1

    def place(self) -> None:
        """Where parameters that need a node of their own get it."""
        for p, users in self.users.items():
            if len(users) == 1 and self.own(users[0][1], users[0][2], p):
                continue
            if p in self.local:
                self.placed[self.local[p]].append(p)
                continue
            blocks = {block for block, _, _ in users}
            first = blocks.pop() if len(blocks) == 1 else 0
            self.placed[0 if self.blocks[first].repeat > 1 else first].append(p)
        program: Program = self.program
        used = set(self.users) | self.covered
        own_statistics = {x for x in program.buffers if x.target.rsplit(".", 1)[-1].startswith("running_")}
        counters = {x for x in program.buffers if x.target.endswith("num_batches_tracked")}
        for x in [*program.parameters, *program.buffers]:
            if x not in used and x not in own_statistics and x not in counters and x.numel > 0:
                self.placed[0].append(x)

    def holder(self, x: Value, block: Block) -> dict[str, Any]:
        node: dict[str, Any] = {
            "op": "parameter" if x.role == "parameter" else "buffer",
            "out": self.name(x),
            "shape": list(x.shape) or [1],
        }
        if x.role == "parameter" and not x.trained:
            node["trained"] = False
        if not self.low.is_main(x.dtype):
            node["dtype"] = self.low.word(x.dtype)
        if block.repeat > 1 and x not in self.local and x.role == "parameter":
            node["shared"] = True
        return node

    # -- nodes

    def label(self, node: Node, block: Block) -> str:
        path = node.path
        if block.prefix and path[: len(block.prefix)] == block.prefix:
            path = path[len(block.prefix) :]
            if path and path[0].isdigit():
                path = path[1:]
            if not path:
                return {"add": "layer.residual", "dropout": "layer.dropout"}.get(node.op, "layer")
        elif path[: len(self.root)] == self.root:
            path = path[len(self.root) :]
        if not path:
            return "loss" if node.op in ("cross_entropy", "nll_loss", "mse_loss", "bce_with_logits") else "model"
        text = ".".join(path)
        if block.name == "head" and len(path) == 1 and node is block.nodes[0]:
            norm = node.op in ("layernorm", "rmsnorm") or "norm" in text.lower()
            return "norm" if norm else text
        if block.name == "head" and len(path) == 1 and "norm" in text.lower():
            return "norm"
        return text

    def node(self, node: Node, block: Block) -> dict[str, Any]:
        out: dict[str, Any] = {"op": node.op, "name": self.label(node, block)}
        if node.ins:
            out["in"] = self.name(node.ins[0]) if len(node.ins) == 1 else [self.name(x) for x in node.ins]
        if node.outs:
            several = node.op in ("split", "unbind", "topk", "sort")
            out["out"] = [self.name(x) for x in node.outs] if several else self.name(node.out)
        for key, value in node.keys.items():
            out[key] = self.name(value) if isinstance(value, Value) else value
        for key, p in node.parameters.items():
            if self.own(node, key, p):
                if key.startswith("bias") and node.op not in ("batchnorm", "groupnorm"):
                    out[key] = True
            elif not (node.op == "experts" and key.endswith("_bias")):
                out[key] = self.name(p)
        return out

    def modules(self, block: Block) -> int:
        depth = len(block.prefix)
        seen = {m for node in block.nodes for m in node.modules if not depth or m[:depth] == block.prefix and len(m) > depth}
        return len(seen)

    def block(self, i: int) -> dict[str, Any]:
        block = self.blocks[i]
        name = block.name
        root = ".".join(self.root)
        if root and name.startswith(root + "."):
            name = name[len(root) + 1 :]
        out: dict[str, Any] = {"name": name}
        if block.repeat > 1:
            out["repeat"] = block.repeat
        if block.carry is not None:
            out["in"] = self.name(block.carry)
        result = block.result
        nodes = [self.holder(x, block) for x in self.placed[i]]
        nodes += [self.node(node, block) for node in block.nodes]
        if result is not None:
            out["out"] = self.name(result)
        out["modules"] = self.modules(block)
        out["nodes"] = nodes
        return out


def _root(blocks: list[Block]) -> tuple[str, ...]:
    """The one module that holds everything but the head: "model", "transformer", "bert"."""
    firsts = {block.prefix[0] for block in blocks if block.prefix}
    if len(firsts) != 1 or any(len(block.prefix) < 2 for block in blocks if block.prefix):
        return ()
    return (firsts.pop(),)


def _input(low: Lowering, x: Value) -> dict[str, Any]:
    entry: dict[str, Any] = {"shape": list(x.shape) or [1]}
    if not low.is_main(x.dtype):
        entry["dtype"] = low.word(x.dtype)
    # an image of one pixel lies both ways: PyTorch takes it as NCHW (c10's is_channels_last_strides_2d)
    if len(x.shape) == 4 and x.stride[1] == 1 and x.shape[1] > 1 and x.shape[2] * x.shape[3] > 1:
        entry["layout"] = "nhwc"
    return entry


def _held_at_convolutions(low: Lowering, blocks: list[Block]) -> None:
    """Workspaces of convolutions come on top of what Python holds while they run: the most of all iterations."""
    held = low.program.held
    made = [node for node in low.nodes if node.op in ("conv1d", "conv2d", "conv3d")]
    if held is None or len(made) != len(held.convolutions):  # one that nobody reads is not in the file
        return
    here = {id(node): size for node, size in zip(made, held.convolutions, strict=True)}
    for block in blocks:
        for k, node in enumerate(block.nodes):
            if id(node) in here:
                most = max([here[id(node)], *(here[id(nodes[k])] for nodes in block.others)])
                if most > 0:
                    node.keys["held_bytes"] = most


def document(low: Lowering, blocks: list[Block], name: str, source: str) -> dict[str, Any]:
    """The graph file."""
    _held_at_convolutions(low, blocks)
    writer = _Writer(low, blocks)
    for x in low.program.inputs:
        writer.name(x)
    writer.follow_iterations()
    writer.survey()
    writer.place()
    return {
        "foretell_graph": 1,
        "name": name,
        "source": source,
        **({"held_bytes": low.program.held.peak} if low.program.held else {}),
        "inputs": {writer.name(x): _input(low, x) for x in low.program.inputs},
        "blocks": [writer.block(i) for i in range(len(blocks))],
    }


def with_sizes(
    made: dict[str, Any], batch: int | None, seq: int | None, recompute: str = "none", traced_masks: bool = False
) -> dict[str, Any]:
    """The file with the sizes it was made at: which axis is the batch is known here, and nowhere else. So is whether the
    model checkpoints its layers, and whether its code makes a mask when a compiler traces it.

    Where its shapes are numbers these are the only sizes it has; where they are formulas, those that a request without
    sizes means.
    """
    sizes: dict[str, Any] = {key: size for key, size in (("batch", batch), ("seq", seq)) if size}
    if recompute != "none":
        sizes["recompute"] = recompute
    if traced_masks:
        sizes["traced_masks"] = True
    head = {key: made[key] for key in ("foretell_graph", "name", "source")}
    return {**head, **sizes, **{key: value for key, value in made.items() if key not in head}}
