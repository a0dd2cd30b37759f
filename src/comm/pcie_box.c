/* pcie_box.c: exchanges over PCIe in a box that was not measured.
 *
 * Bus bandwidth of an all-reduce, as a share of one slot's rate and direction:
 *   8 L40S of the fit, no switch, two sockets   0.05 (four of them 0.18, two 0.65)
 *   4 and 8 L40S of NVIDIA's                    0.64 and 0.54 (TensorRT-LLM 0.8 and 0.9, docs/source/performance.md:
 *                                               what prompts of 2,048 tokens of Llama 2 70B take beyond their kernels)
 *   8 RTX PRO 6000 behind switches              0.63 to 0.65 (voipmonitor/rtx6kpro, hardware/pcie-bandwidth.md)
 *   the same on two EPYC Turin, no switch       0.35; 0.60 with channels set by hand (there)
 *   8 and 4 RTX 5090                            0.44 and 0.56 (NVIDIA/nccl issue 1639)
 *   4 and 8 of A4000, A4500, A5000, A5500       0.55 to 0.78 and 0.41 to 0.87 (lambdal/deeplearning-benchmark, what
 *                                               more GPUs add to a step of BERT)
 *   4 and 8 RTX 3070, 3090 there                0.04 to 0.36 and 0.02 to 0.13
 * What decides is whether GPUs reach each other without the memory of the host, and what the sockets' link bears. The
 * first is the driver's: workstations' and servers' cards do, GeForce cards do not. The second no spec sheet says. A
 * box of cards that reach each other, or behind a switch, is as fast as those; one of GeForce cards lies between them
 * and the measured one, and a pair of these has the rate of the host's memory. The interval holds both ends. An
 * exchange of the measured box that is asked for by itself is as measured; a step of its cards is in a box like the
 * others.
 *
 * Where P2P is off (NCCL_P2P_DISABLE=1, machines that keep peers apart) any card is as a GeForce is. What the host is
 * decides then: Intel's passes on half a slot's rate, whatever the generation, AMD's of 2019 to 2022 what pairs of
 * GeForce cards have (lambdal/deeplearning-benchmark, logs of October 2022 to February 2023, when its script turned P2P
 * off; docs/models/collective.md has the rates). */
#include "comm/pcie_box.h"

#include <math.h>
#include <string.h>

#include "comm/network_constants.h"

bool ft__pcie_box_measured(const ft_device *device)
{
    for (int i = 0; i < FT_K_NETWORK_PCIE_MEASURED_COUNT; i++)
        if (!strcmp(device->name, ft__k_network_pcie_measured[i].gpu)) return true;
    return false;
}

bool ft__pcie_by_host(const ft_device *device)
{
    for (int i = 0; i < FT_K_NETWORK_PCIE_BY_HOST_COUNT; i++)
        if (!strcmp(device->name, ft__k_network_pcie_by_host[i].gpu)) return true;
    return false;
}

static void pair_by_host(double gbps, ft_comm *out)
{
    double ms = out->latency_ms + out->wire_bytes / (gbps * 1e6);
    if (ms <= out->ms) return;
    out->high_ms = ms * out->high_ms / out->ms;
    out->ms = ms;
    out->source = FT_SOURCE_PHYSICS;
}

void ft__pcie_box(const ft_device *device, const ft_tier *tier, const ft_group *group, ft_comm *out)
{
    if (tier->fabric != FT_PCIE || !(tier->gbps > 0)) return;
    bool by_host = tier->by_host || ft__pcie_by_host(device);
    if (!tier->switched && !tier->by_host && ft__pcie_box_measured(device) && (!group->in_step || group->size <= 2))
        return;
    const double share = FT_K_NETWORK_PCIE_GOOD_SHARE * tier->gbps, rate = share * 1e6;
    if (group->size <= 2) {
        if (by_host) pair_by_host(tier->xeon ? share : FT_K_NETWORK_PCIE_HOST_GBPS, out);
        return;
    }
    bool reach = tier->switched || tier->xeon || (device->vendor == FT_VENDOR_NVIDIA && !by_host);
    double wire_ms = out->wire_bytes / rate, good = fmin(out->ms, out->latency_ms + wire_ms);
    double below = out->low_ms / out->ms, above = out->high_ms / out->ms, slow = out->high_ms;
    out->ms = reach ? good : sqrt(good * out->ms);
    out->low_ms = good * below;
    out->high_ms = tier->switched ? good * above : slow;
    out->source = FT_SOURCE_PHYSICS;
}
