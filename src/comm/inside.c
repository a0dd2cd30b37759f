/* inside.c: what joins the GPUs of one node: links of their own, bridges over pairs, slots. */
#include "comm/inside.h"

#include <stdio.h>
#include <string.h>

#include "comm/network_constants.h"
#include "comm/pcie_box.h"
#include "device/traits.h"
#include "graph/operator.h"

static void pcie_tier(const ft_device *device, int64_t gpus, ft_tier *out)
{
    double gbps = device->pcie_gbps > 0 ? device->pcie_gbps : FT_K_NETWORK_PCIE_USUAL_GBPS;
    *out = (ft_tier){.fabric = FT_PCIE, .gbps = gbps, .latency_us = FT_K_NETWORK_PCIE_US, .gpus = gpus};
    out->efficiency = FT_K_NETWORK_PCIE_EFFICIENCY;
    out->oversubscription = 1;
    snprintf(out->name, sizeof out->name, "pcie%d", gbps < 20 ? 3 : gbps < 40 ? 4 : gbps < 80 ? 5 : 6);
}

void ft__tier_inside(const ft_device *device, int64_t gpus, ft_tier *out)
{
    if (ft__over_pcie(device) || device->link_gbps_per_direction <= 0) {
        pcie_tier(device, gpus, out);
        return;
    }
    bool nvidia = device->vendor == FT_VENDOR_NVIDIA;
    *out = (ft_tier){.fabric = nvidia ? FT_NVLINK : FT_XGMI, .gbps = device->link_gbps_per_direction, .gpus = gpus};
    out->efficiency = nvidia ? FT_K_NETWORK_NVLINK_EFFICIENCY : FT_K_NETWORK_XGMI_EFFICIENCY;
    out->latency_us = FT_K_NETWORK_LINK_US;
    out->oversubscription = 1;
    out->switched = device->link_switched;
    out->reduces = device->link_reduces;
    snprintf(out->name, sizeof out->name, "%s", device->link_kind);
}

/* In a mesh every pair has wires of its own: a part of the GPUs has a part of the wires. Pairs alone use all. */
double ft__tier_share(const ft_tier *tier, int64_t ranks)
{
    bool mesh = !tier->switched && tier->fabric < FT_INFINIBAND && tier->fabric != FT_PCIE && tier->gpus > 2;
    return mesh && ranks < tier->gpus ? (double)(ranks > 1 ? ranks - 1 : 1) / (double)(tier->gpus - 1) : 1;
}

void ft__tier_op(const ft_tier *tier, ft_collective kind, double bytes, int64_t ranks, ft_op *out)
{
    ft__op_init(ft__collective_names[kind], out);
    out->u.collective.bytes = bytes;
    out->u.collective.ranks = ranks;
    out->u.collective.pcie = tier->fabric == FT_PCIE;
    out->u.collective.switched = tier->switched;
    out->u.collective.reduces = tier->reduces;
    out->u.collective.link_gbps = tier->gbps;
    out->u.collective.nccl = tier->nccl;
    out->u.collective.link_gbps *= ft__tier_share(tier, ranks);
}

static bool slots_alone(const ft_network *words)
{
    return words->p2p_off || (words->pcie_named && !words->nvlink_named && !words->xgmi_named);
}

/* A bridge that is sold apart is there when somebody says so. */
static bool bridge_unsaid(const ft_device *device, const ft_network *words)
{
    return device->link_apart && !words->nvlink_named;
}

/* `words` may say that nodes are joined by PCIe alone, though the GPU has links: cards without their bridges, virtual
 * machines without the switch, NCCL that was told to leave peers alone (NCCL_P2P_DISABLE=1 is for NVLink too). A slot
 * never makes a card faster than it is. */
void ft__inner_tiers(const ft_device *device, int64_t per_node, const ft_network *words, ft_cluster *c)
{
    bool pcie = slots_alone(words) || bridge_unsaid(device, words);
    int64_t domain = per_node;
    if (device->link_gpus > 8 && per_node < device->link_gpus && !ft__over_pcie(device) && !pcie)
        domain = device->link_gpus;
    c->tiers = 0;
    if (domain < 2) return;
    ft_device slot = *device;
    if (words->pcie_gbps > 0 && !(device->pcie_gbps > 0 && device->pcie_gbps < words->pcie_gbps))
        slot.pcie_gbps = words->pcie_gbps;
    if (!pcie && ft__bridged(device)) ft__tier_inside(device, 2, &c->tier[c->tiers++]);
    if (pcie || ft__over_pcie(device) || (ft__bridged(device) && domain > 2))
        pcie_tier(&slot, domain, &c->tier[c->tiers++]);
    else if (!ft__bridged(device))
        ft__tier_inside(device, domain, &c->tier[c->tiers++]);
    ft_tier *slots = &c->tier[c->tiers - 1];
    if (slots->fabric != FT_PCIE) return;
    slots->by_host = words->p2p_off;
    slots->xeon = words->p2p_off && words->xeon;
    slots->switched = words->pcie_switched && !words->p2p_off;
}

/* What was said about the inside of a node against what the GPU has, so that nobody takes the one for the other. */
void ft__inside_said(const ft_device *device, const ft_network *words, char *out, size_t room)
{
    bool links = !ft__over_pcie(device), nvidia = device->vendor == FT_VENDOR_NVIDIA;
    bool wrong_link = (words->nvlink_named && !(links && nvidia)) || (words->xgmi_named && !(links && !nvidia));
    if (wrong_link)
        snprintf(out, room, "; no %s: %.40s has none", words->nvlink_named ? "NVLink" : "xGMI", device->name);
    else if (slots_alone(words) && !words->p2p_off && links)
        snprintf(out, room, "; PCIe as said, not the GPU's own %.31s", device->link_kind);
    else if (bridge_unsaid(device, words) && !words->p2p_off)
        snprintf(out, room, "; slots: its bridge is sold apart (say \"NVLink\" where it is there)");
}

/* Nobody knows a box of slots by its GPU. */
void ft__slots_said(const ft_device *device, const ft_tier *t, char *out, size_t room)
{
    const char *said = "; slots behind a PCIe switch";
    if (t->fabric != FT_PCIE || (t->gpus <= 2 && !t->by_host)) return;
    if (t->by_host)
        said = t->xeon ? "; without P2P, through a Xeon's memory"
                       : "; without P2P, through the host's memory (say \"Xeon\" where it is one: faster)";
    else if (!t->switched && ft__pcie_box_measured(device))
        said = "; slots: an exchange by itself as measured without a switch, steps as in a box whose cards reach each "
               "other (the interval holds both)";
    else if (!t->switched && device->vendor == FT_VENDOR_NVIDIA && !ft__pcie_by_host(device))
        said = "; slots of cards that reach each other (a machine that keeps them apart is slower: the interval)";
    else if (!t->switched)
        said = "; slots between boxes with a PCIe switch and one without (say \"PCIe switch\" where there is one)";
    strncat(out, said, room - strlen(out) - 1);
}

/* What a NIC brings reaches a GPU through its own slot: no network is faster than that. */
void ft__within_slot(const ft_device *device, const ft_network *words, ft_tier *network, char *out, size_t room)
{
    double slot = device->pcie_gbps;
    char said[80];
    if (words->pcie_gbps > 0 && (slot <= 0 || words->pcie_gbps < slot)) slot = words->pcie_gbps;
    if (slot <= 0 || network->gbps <= slot) return;
    snprintf(said, sizeof said, "; the network's %.4g GB/s come through a slot of %.4g", network->gbps, slot);
    network->gbps = slot;
    strncat(out, said, room - strlen(out) - 1);
}
