"""What kernels lose while another kernel holds some of the SMs, as NCCL's do: beside.py OUT

A kernel of B blocks that only spins takes its SMs whole (640 threads with 96 registers each, as many as NCCL's kernels have, and
64 KiB of shared memory, so that no product's block fits beside one of them), on a stream of its own. Meanwhile products, attention
and elementwise kernels run on another. A row: the kernel, B, its time alone and beside, both the median of what CUDA events saw.
"""
from __future__ import annotations

import json
import pathlib
import statistics
import sys
import typing

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
extern "C" __global__ void __launch_bounds__(640, 1) hold(long long nanoseconds, float *sink)
{
    extern __shared__ float room[];
    float kept[48];
    long long begun, now;
    for (int i = 0; i < 48; i++) kept[i] = threadIdx.x * 0.5f + i;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begun));
    do {
        for (int i = 0; i < 48; i++) kept[i] = kept[i] * 1.0001f + 0.5f;
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begun < nanoseconds);
    float sum = 0;
    for (int i = 0; i < 48; i++) sum += kept[i];
    room[threadIdx.x] = sum;
    if (sum == 0.125f) sink[threadIdx.x] = room[threadIdx.x ^ 1];
}
void start(int64_t blocks, double ms, torch::Tensor sink)
{
    cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
    hold<<<blocks, 640, 65536, c10::cuda::getCurrentCUDAStream()>>>((long long)(ms * 1e6), sink.data_ptr<float>());
}
"""
BLOCKS = (0, 1, 2, 4, 8, 16, 24, 32)


def product(m: int, n: int, k: int) -> typing.Callable[[], object]:
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16).t()
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    return lambda: torch.mm(a, b, out=out)


def gradient(m: int, n: int, k: int) -> typing.Callable[[], object]:
    """Of the weights: both operands lie across."""
    a = torch.randn(k, m, device="cuda", dtype=torch.bfloat16).t()
    b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
    return lambda: torch.mm(a, b)


def scaled(m: int, n: int, k: int) -> typing.Callable[[], object]:
    a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def attention(backend: torch.nn.attention.SDPBackend, back: bool) -> typing.Callable[[], object]:
    q, k, v = (torch.randn(2, 32, 4096, 128, device="cuda", dtype=torch.bfloat16, requires_grad=back) for _ in range(3))

    def forward() -> torch.Tensor:
        with torch.nn.attention.sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    if not back:
        return forward
    y = forward()
    g = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, (q, k, v), g, retain_graph=True)


def cases() -> typing.Iterator[tuple[str, typing.Callable[[], object]]]:
    shapes = [(4096, 4096, 4096), (8192, 8192, 8192), (4096, 14336, 4096), (4096, 4096, 14336), (8192, 1280, 8192), (8192, 8192, 1024),
              (8192, 7168, 8192), (8192, 8192, 3584), (16384, 13312, 16384), (2048, 2048, 2048), (1024, 4096, 4096), (16384, 6144, 6144)]  # fmt: skip
    for m, n, k in shapes:
        yield f"bf16 {m} {n} {k}", product(m, n, k)
    for m, n, k in shapes[:8]:
        yield f"bf16 gradient {m} {n} {k}", gradient(m, n, k)
    for m, n, k in shapes[:10]:
        yield f"fp8 {m} {n} {k}", scaled(m, n, k)
    for name, backend in (("flash", torch.nn.attention.SDPBackend.FLASH_ATTENTION), ("cudnn", torch.nn.attention.SDPBackend.CUDNN_ATTENTION)):
        yield f"{name} forward", attention(backend, False)
        yield f"{name} backward", attention(backend, True)
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    w = torch.ones(8192, device="cuda", dtype=torch.bfloat16)
    yield "gelu", lambda: torch.nn.functional.gelu(x)
    yield "add", lambda: torch.add(x, x, out=y)
    yield "layer_norm", lambda: torch.nn.functional.layer_norm(x, (8192,), w, w)
    yield "softmax", lambda: torch.softmax(x, -1)


def timed(run: typing.Callable[[], object], times: int) -> float:
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
    torch.cuda._sleep(2_000_000)  # the host is ahead
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    marks[-1].synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:], strict=False))


def main() -> None:
    held = load_inline("held", cpp_sources="void start(int64_t, double, torch::Tensor);", cuda_sources=CUDA, functions=["start"])
    side = torch.cuda.Stream()
    sink = torch.zeros(1024, device="cuda")
    with pathlib.Path(sys.argv[1]).open("a") as out:
        for name, run in cases():
            for _ in range(3):
                run()
            alone = timed(run, 20)
            for blocks in BLOCKS:
                torch.cuda.synchronize()
                if blocks:  # longer than twenty runs at a third of their speed
                    with torch.cuda.stream(side):
                        held.start(blocks, 5 + 60 * alone, sink)
                beside = timed(run, 20)
                outlasted = blocks == 0 or not side.query()
                torch.cuda.synchronize()
                if not outlasted:
                    continue
                out.write(json.dumps({"kernel": name, "blocks": blocks, "alone_ms": alone, "beside_ms": beside}) + "\n")
            out.flush()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
