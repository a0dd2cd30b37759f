#!/usr/bin/env python3
"""Requests of every task, one JSON object a line, the same ones on every run: requests.py [COUNT] [SEED]

What a page asks: kernels and their errors most often, steps with advice, techniques and layouts, exchanges, serving,
plans, sweeps, comparisons, GPUs and models that somebody made up, and lines that are no requests at all. Valid ones are
drawn from lists of names and sizes; every eighth then loses a key, gets a wrong value, or one nobody knows.
"""
import json
import random
import sys

GPUS = ["h100_sxm", "h200_sxm", "a100_sxm_80gb", "b200_sxm", "l40s", "mi300x", "rtx_4090", "t4", "l4", "a10", "v100_sxm2_32gb"]
SMALL = ["gpt2", "qwen3-0.6b", "bert-large", "resnet-50", "t5-base", "llama-3.2-1b", "gpt2-xl", "vit-l-16"]
LARGE = ["llama-3-8b", "mixtral-8x7b", "llama-3-70b", "deepseek-v3", "qwen3-8b", "qwen3-30b-a3b"]
LANGUAGE = ["gpt2", "qwen3-0.6b", "llama-3.2-1b", "llama-3-8b", "qwen3-8b", "mixtral-8x7b"]
OWN_GPU = {"base": "h100_sxm", "name": "mine", "memory_gib": 120, "memory_gbps": 4000}
OWN_MODEL = {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
             "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256}


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, values):
        return self.random.choice(values)

    def gpu(self):
        return OWN_GPU if self.random.random() < 0.05 else self.one(GPUS)

    def some(self, request: dict, share: float, **values) -> dict:
        for key, choice in values.items():
            if self.random.random() < share:
                request[key] = self.one(choice)
        return request

    def size(self, low: int, high: int) -> int:
        """Even on a logarithmic scale; a multiple of 8 as often as not."""
        value = int(low * (high / low) ** self.random.random())
        return max(8, value // 8 * 8) if self.random.random() < 0.5 else max(1, value)

    def kernel(self) -> dict:
        op = self.one(["gemm", "gemm", "bmm", "attention", "gelu", "softmax", "layernorm", "optimizer", "conv2d", "moe", "quantize"])
        request = {"task": "kernel", "op": op, "gpu": self.gpu()}
        if op in ("gemm", "bmm"):
            request.update(m=self.size(1, 16384), n=self.size(16, 32768), k=self.size(16, 32768))
            if op == "bmm":
                request["b"] = self.size(2, 64)
            self.some(request, 0.3, layout=["nn", "nt", "tn", "tt"])
        elif op == "attention":
            length = self.size(16, 16384)
            request.update(batch=self.size(1, 64), heads=self.one([8, 16, 32, 64]), q_len=self.one([1, length]), kv_len=length,
                           head_dim=self.one([64, 80, 128, 256]))
            self.some(request, 0.4, causal=[True, False], kv_heads=[1, 8])
        elif op == "gelu":
            request["numel"] = self.size(1000, 10**9)
        elif op in ("softmax", "layernorm", "quantize"):
            request.update(rows=self.size(1, 100000), cols=self.size(16, 65536))
        elif op == "optimizer":
            request.update(name=self.one(["adamw_fused", "adamw_foreach", "sgd"]), params=self.size(10**5, 10**10), tensors=self.size(1, 500))
        elif op == "conv2d":
            side = self.size(7, 256)
            request.update(n=self.size(1, 128), c=self.one([3, 64, 256]), h=side, w=side, k=self.one([64, 256]), r=3, s=3)
        else:
            request.update(tokens=self.size(1, 16384), hidden=4096, inter=self.one([1024, 14336]), experts=self.one([8, 64]), topk=self.one([1, 2, 8]))
        if op in ("gemm", "attention", "softmax", "layernorm", "conv2d"):
            self.some(request, 0.3, **{"pass": ["fwd", "bwd", "fwd_bwd"]})
        return self.some(request, 0.3, dtype=["bf16", "fp16", "fp32", "tf32", "fp8", "int8"], timing=["device", "op"], quantile=[0.5, 0.8, 0.99])

    def step(self) -> dict:
        task = self.one(["train", "train", "train", "forward", "prefill", "decode", "memory"])
        model = OWN_MODEL if self.random.random() < 0.05 else self.one(SMALL + LARGE if task in ("train", "memory") else LANGUAGE)
        request = {"task": task, "model": model, "gpu": self.gpu(), "batch": self.size(1, 32), "seq": self.size(64, 8192)}
        self.some(request, 0.2, dtype=["bf16", "fp16", "fp32", "amp_bf16", "fp8"], attention=["flash", "sdpa", "eager", "cudnn"],
                  execution=["eager", "compile", "fused", "cuda_graph", "ideal", "torchscript"], detail=["summary", "layers", "kernels"])
        if task == "train":
            self.some(request, 0.25, recompute=["none", "selective", "full"], optimizer=["adamw", "adamw_foreach", "sgd", "muon"],
                      advice=[True], techniques=[True], stack=["megatron", "torchtitan", "fsdp2", "deepspeed"], lora_rank=[8, 64],
                      clip_grad=[True], tokens=[1e9, 1e12], loss=["upcast", "chunked", "fused", "fused_linear"], power_cap_w=[300, 500])
            if self.random.random() < 0.35:
                layout = self.some({}, 0.5, tp=[2, 4, 8], dp=[2, 8, 64], pp=[2, 4], zero=[1, 2, 3], cp=[2], ep=[2, 8], sp=[True])
                request["parallel"] = layout
                if layout.get("pp"):
                    request["global_batch"] = request["batch"] * layout.get("dp", 1) * self.one([4, 8])
            if self.random.random() < 0.1:
                request["cluster"] = {"nodes": self.one([2, 8]), "gpus_per_node": 8, "interconnect": self.one(["ib_ndr400", "ib_hdr200", "roce_400"])}
        return request

    def collective(self) -> dict:
        request = {"task": "collective", "op": self.one(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"]),
                   "bytes": self.size(1, 10**10), "ranks": self.one([2, 4, 8, 16, 64, 512]), "gpu": self.gpu()}
        if request["op"] == "send_recv":
            request["ranks"] = 2
        return self.some(request, 0.2, dtype=["bf16", "fp32"])

    def infer(self) -> dict:
        request = {"task": "infer", "model": self.one(LANGUAGE), "gpu": self.gpu(), "batch": [1, self.size(2, 64)], "seq": [self.size(64, 8192)]}
        return self.some(request, 0.3, isl=[128, 1024], osl=[64, 256], engine=["vllm", "sglang", "trtllm"], weights_dtype=["fp8", "int4"])

    def serve(self) -> dict:
        request = {"task": "serve", "model": self.one(LANGUAGE), "gpu": self.one(["h100_sxm", "h200_sxm", "l40s"]), "isl": self.size(64, 2048),
                   "osl": self.size(16, 256), "requests": 60}
        request.update(self.one([{"concurrency": self.size(1, 32)}, {"rate": self.one([0.5, 2, 20])}]))
        return self.some(request, 0.3, engine=["vllm", "sglang", "trtllm"], per_request=[True], parallel=[{"tp": 2}])

    def plan(self) -> dict:
        request = {"task": "plan", "model": self.one(["gpt2-xl", "llama-3-8b"]), "gpu": self.one(["h100_sxm", "a100_sxm_80gb"]), "gpus": self.one([2, 4, 8]),
                   "global_batch": self.one([16, 64]), "seq": 1024, "top": self.one([1, 3])}
        return self.some(request, 0.5, framework=["megatron", "torchtitan", "fsdp", "deepspeed"], emit=[["torchrun"], ["megatron", "srun"]])

    def study(self) -> dict:
        kind = self.one(["largest", "scale", "sweep", "compare", "models", "gpus", "draw", "draw"])
        if kind == "largest":
            return {"task": kind, "gpu": self.gpu(), "gpus": self.one([1, 2, 8]), "family": self.one(["gpt", "llama"]), "use": self.one(["train", "infer"])}
        if kind == "scale":
            return {"task": kind, "model": self.one(["gpt2-xl", "llama-3-8b"]), "gpu": "h100_sxm", "gpus": self.one([16, 64]), "parallel": {"tp": self.one([1, 8])}}
        if kind == "sweep":
            return {"task": kind, "request": {"task": "train", "model": self.one(SMALL), "gpu": self.gpu(), "seq": 512}, "sweep": {"batch": [1, 2, 4]}}
        if kind == "compare":
            return {"task": kind, "requests": [{"task": "train", "model": "gpt2", "gpu": self.gpu(), "batch": self.size(1, 16), "seq": 512} for _ in range(2)]}
        if kind == "draw":
            width = {"width": self.size(160, 2000), "embed": self.one([True, False]), "plain": self.one([True, False])}
            if self.random.random() < 0.1:
                return {"task": kind, "of": self.serve(), "pictures": [{"what": self.one(["waits", "tokens", "queue", "cache"]), **width} for _ in range(2)]}
            if self.random.random() < 0.3:
                points = [self.size(1, 4096) for _ in range(12)]
                return {"task": kind, "pictures": [{"what": "curves", "x": "n", "y": "ms", **width, "log_x": self.one([True, False]),
                                                    "curves": [{"name": "a < b & c", "x": sorted(points), "y": points, "dots": True}]},
                                                   {"what": "bars", **width, "rows": [{"name": "\u00fc", "value": v, "text": str(v)} for v in points]}]}
            whats = ["timeline", "phases", "peak", "roofline", "memory", "layers", "classes", "intervals"]
            return {"task": kind, "of": {"task": self.one(["train", "forward"]), "model": self.one(SMALL), "gpu": self.gpu(), "seq": 512, "batch": self.size(1, 16)},
                    "pictures": [{"what": self.one(whats), **width} for _ in range(3)]}
        if kind == "models":
            return self.some({"task": kind}, 0.5, name=["llama-3-8b", "gpt2"])
        return self.some({"task": kind}, 0.5, name=["h100_sxm", "t4"])

    def spoil(self, request: dict) -> str:
        keys = [key for key in request if key != "id"]
        key = self.one(keys)
        kind = self.random.randrange(8)
        if kind == 0:
            request.pop(key)
        elif kind == 1:
            request[key] = self.one([-1, 0, 1e300, 0.5, "", "nonsense", None, [], {}, True, [1, "x"]])
        elif kind == 2:
            request[key + "s"] = request.pop(key)
        elif kind == 3:
            request["gpu"] = self.one(["h100", "H100 SXM", "rtx 4090", "no such gpu", {"base": "h100_sxm", "memory_gbps": -1}, {"sms": 4}])
        elif kind == 4:
            request["model"] = self.one(["lama-3-8b", "/no/such/config.json", {"model_type": "unknown"}, {"model_type": "llama"}, 7])
        elif kind == 5:
            return json.dumps(request)[: self.random.randrange(1, 40)]
        elif kind == 6:
            return self.one(["null", "[]", "{}", "\"text\"", "{\"task\":\"train\",}", "\u00e9\u4e2d", "{\"task\":\"kernel\",\"task\":\"train\"}", "[" * 300])
        else:
            request["id"] = self.one([None, 1.5, True, "\u00fc\"\\\n", "x" * 200])
        return json.dumps(request)

    def line(self, number: int) -> str:
        makers = [(self.kernel, 40), (self.step, 30), (self.collective, 10), (self.infer, 6), (self.serve, 4), (self.plan, 1), (self.study, 9)]
        make = self.random.choices([m for m, _ in makers], [w for _, w in makers])[0]
        request = {"id": number, **make()}
        return self.spoil(request) if self.random.random() < 0.125 else json.dumps(request)


def lines(count: int, seed: int) -> list:
    maker = Maker(seed)
    return [maker.line(number) for number in range(count)]


if __name__ == "__main__":
    sys.stdout.write("".join(line + "\n" for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 2000,
                                                          int(sys.argv[2]) if len(sys.argv) > 2 else 18)))
