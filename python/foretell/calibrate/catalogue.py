"""Which GPU of Foretell's catalogue the driver means by its name."""

from __future__ import annotations

import re
from typing import Any

# As the driver names them, without "NVIDIA", "Tesla", "GeForce", "AMD", "Instinct". First match wins: longer first.
NAMES: tuple[tuple[str, str], ...] = (
    (r"GB300", "gb300"),
    (r"GB200", "gb200"),
    (r"GH200", "gh200"),
    (r"B300", "b300_sxm"),
    (r"B200", "b200_sxm"),
    (r"H200(?! NVL)", "h200_sxm"),
    (r"H100 NVL", "h100_nvl"),
    (r"H100 PCIe", "h100_pcie"),
    (r"H100", "h100_sxm"),
    (r"H800", "h800"),
    (r"H20\b", "h20"),
    (r"A100[- ]SXM4[- ]80GB", "a100_sxm_80gb"),
    (r"A100[- ]SXM4[- ]40GB", "a100_sxm_40gb"),
    (r"A100 80GB PCIe", "a100_pcie_80gb"),
    (r"A100[- ]PCIE[- ]40GB", "a100_pcie_40gb"),
    (r"A10\b", "a10"),
    (r"A30\b", "a30"),
    (r"RTX A6000", "rtx_a6000"),
    (r"A40\b", "a40"),
    (r"L40S", "l40s"),
    (r"L40\b", "l40"),
    (r"L4\b", "l4"),
    (r"RTX PRO 6000 Blackwell", "rtx_pro_6000"),
    (r"RTX 6000 Ada", "rtx_6000_ada"),
    (r"RTX 5090", "rtx_5090"),
    (r"RTX 4090(?! Laptop| D)", "rtx_4090"),
    (r"RTX 3090(?! Ti)", "rtx_3090"),
    (r"RTX 2080 Ti", "rtx_2080_ti"),
    (r"V100[- ]SXM2[- ]16GB", "v100_sxm_16gb"),
    (r"V100[- ]SXM[23][- ]32GB", "v100_sxm_32gb"),
    (r"V100[- ]PCIE[- ]16GB", "v100_pcie_16gb"),
    (r"V100[- ]PCIE[- ]32GB", "v100_pcie_32gb"),
    (r"T4\b", "t4"),
    (r"P100[- ]PCIE[- ]16GB", "p100_pcie_16gb"),
    (r"P4\b", "p4"),
    (r"MI355X", "mi355x"),
    (r"MI350X", "mi350x"),
    (r"MI325X", "mi325x"),
    (r"MI300X", "mi300x"),
    (r"MI250X", "mi250x"),
    (r"MI250", "mi250"),
    (r"MI210", "mi210"),
    (r"MI100", "mi100"),
)

# A GPU of the same architecture to start from where the name is not known.
BASES_NVIDIA = {
    (12, 0): "rtx_5090",
    (10, 3): "b300_sxm",
    (10, 0): "b200_sxm",
    (9, 0): "h100_sxm",
    (8, 9): "l40s",
    (8, 6): "rtx_3090",
    (8, 0): "a100_sxm_80gb",
    (7, 5): "t4",
    (7, 0): "v100_sxm_16gb",
    (6, 1): "p4",
    (6, 0): "p100_pcie_16gb",
}
BASES_AMD = {"gfx950": "mi355x", "gfx942": "mi300x", "gfx90a": "mi210", "gfx908": "mi100"}


def name_of(title: str) -> str | None:
    """`h200_sxm` for "NVIDIA H200"; None where the catalogue has no such GPU. A part of one (MIG) is another GPU."""
    if re.search(r"\bMIG\b", title):
        return None
    return next((name for pattern, name in NAMES if re.search(pattern, title)), None)


def spec_of(title: str, base: str | None, sms: int, memory_bytes: int) -> dict[str, Any] | None:
    """A spec of what the driver tells, over a GPU of the same architecture; None where there is no such GPU."""
    if base is None:
        return None
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:60] or "gpu"
    return {"base": base, "name": name, "sms": sms, "memory_gib": round(memory_bytes / 2**30, 1)}
