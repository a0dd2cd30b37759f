/* Tiers given one by one: {"fabric": "nvlink", "gbps": 450, "gpus": 8}, {"interconnect": "ib_ndr400", "gpus": 1024}. */
#include "comm/cluster_file.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "comm/catalogue.h"
#include "comm/network_constants.h"

static const char *const kinds[] = {
    [FT_NVLINK] = "nvlink", [FT_XGMI] = "xgmi", [FT_PCIE] = "pcie",        [FT_INFINIBAND] = "infiniband",
    [FT_ROCE] = "roce",     [FT_EFA] = "efa",   [FT_ETHERNET] = "ethernet"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static ft_status read_tier(const json_t *object, const char *where, ft_tier *t, ft_error *err)
{
    static const char *const known[] = {"name",       "fabric",     "interconnect", "gbps",    "gpus",
                                        "efficiency", "latency_us", "switched",     "reduces", "oversubscription"};
    if (!json_is_object(object))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0,
                           "a tier is an object: {\"fabric\": \"nvlink\", \"gbps\": 450, "
                           "\"gpus\": 8}");
    FT_TRY(ft__json_known_keys(object, known, sizeof known / sizeof *known, where, err));
    const char *name = NULL, *kind = NULL, *fabric = NULL;
    FT_TRY(ft__json_string(object, "name", FT_OPTIONAL, &name, where, err));
    FT_TRY(ft__json_string(object, "fabric", FT_OPTIONAL, &kind, where, err));
    FT_TRY(ft__json_string(object, "interconnect", FT_OPTIONAL, &fabric, where, err));
    *t = (ft_tier){.fabric = FT_NVLINK, .switched = true, .oversubscription = 1};
    t->efficiency = FT_K_NETWORK_TIER_EFFICIENCY;
    t->latency_us = FT_K_NETWORK_TIER_US;
    const ft_fabric_entry *f = fabric ? ft__fabric_find(fabric) : NULL;
    if (fabric && !f) {
        const char *names[64];
        size_t n = 0;
        for (size_t i = 0; i < ft__fabric_count && n < 64; i++) names[n++] = ft__fabrics[i].name;
        const char *near = ft__nearest(fabric, names, n);
        return ft__fail_at(err, FT_E_NAME, where, 0, 0, "unknown interconnect \"%.60s\"%s%s", fabric,
                           near ? "; nearest is " : "", near ? near : "");
    }
    if (f) {
        t->fabric = f->fabric, t->gbps = f->gbit / 8, t->efficiency = f->efficiency, t->latency_us = f->latency_us;
        t->reduces = f->reduces;
    } else {
        int found = -1;
        for (int i = 0; kind && i < KINDS; i++)
            if (!strcmp(kinds[i], kind)) found = i;
        if (found < 0)
            return ft__fail_at(
                err, kind ? FT_E_NAME : FT_E_MISSING, where, 0, 0,
                "a tier's \"fabric\" is one of nvlink, xgmi, pcie, infiniband, roce, efa, ethernet%s%.40s",
                kind ? "; got " : "", kind ? kind : "");
        t->fabric = (ft_fabric)found;
        if (found >= FT_INFINIBAND) t->latency_us = FT_K_NETWORK_TIER_NETWORK_US;
    }
    FT_TRY(ft__json_number(object, "gbps", f ? FT_OPTIONAL : FT_REQUIRED, 1e-3, 1e5, &t->gbps, where, err));
    FT_TRY(ft__json_whole(object, "gpus", FT_REQUIRED, 1, FT_MOST_RANKS, &t->gpus, where, err));
    FT_TRY(ft__json_number(object, "efficiency", FT_OPTIONAL, 0.01, 1, &t->efficiency, where, err));
    FT_TRY(ft__json_number(object, "latency_us", FT_OPTIONAL, 0, 1e6, &t->latency_us, where, err));
    FT_TRY(ft__json_bool(object, "switched", FT_OPTIONAL, &t->switched, where, err));
    FT_TRY(ft__json_bool(object, "reduces", FT_OPTIONAL, &t->reduces, where, err));
    FT_TRY(ft__json_number(object, "oversubscription", FT_OPTIONAL, 1, 1000, &t->oversubscription, where, err));
    snprintf(t->name, sizeof t->name, "%s", name ? name : fabric ? fabric : kind);
    return FT_OK;
}

ft_status ft__cluster_tiers(const json_t *tiers, const char *where, int64_t ranks, ft_cluster *out, ft_error *err)
{
    size_t n = json_array_size(tiers);
    if (!json_is_array(tiers) || n < 1 || n > FT_MAX_TIERS)
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"tiers\" is a list of 1 to %d, from the inside out",
                           FT_MAX_TIERS);
    for (size_t i = 0; i < n; i++) {
        char at[300];
        snprintf(at, sizeof at, "%.200s[%zu]", where, i);
        FT_TRY(read_tier(json_array_get(tiers, i), at, &out->tier[i], err));
        const ft_tier *t = &out->tier[i], *below = i ? &out->tier[i - 1] : NULL;
        if (below && (t->gpus <= below->gpus || t->gpus % below->gpus))
            return ft__fail_at(err, FT_E_RANGE, at, 0, 0,
                               "a domain of %lld GPUs cannot be made of domains of %lld: whole ones, two or more",
                               (long long)t->gpus, (long long)below->gpus);
        if (below && t->fabric < FT_INFINIBAND && below->fabric >= FT_INFINIBAND)
            return ft__fail_at(err, FT_E_RANGE, at, 0, 0, "\"%s\" stands inside a node, but a network lies below it",
                               t->name);
    }
    out->tiers = (int)n;
    int64_t held = out->tier[n - 1].gpus;
    if (held < ranks)
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0,
                           "the tiers join %lld GPUs, %lld are needed: the others are not connected", (long long)held,
                           (long long)ranks);
    return FT_OK;
}
