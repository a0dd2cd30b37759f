/* Clusters: a spec object, or else words about a network. Tiers one can compute with, or an error that says why. The
 * bytes decide which of a few GPUs it joins and which exchange is tried on it, one each: this is about reading. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "comm/collective.h"
#include "device/gpu.h"
#include "fuzz.h"

static void check_cluster(const ft_device *device, const ft_cluster *c, int64_t ranks, uint64_t choice)
{
    static const ft_predictor none = {.mode = FT_PREDICT_LEARNED};
    FUZZ_CHECK(c->tiers >= 1 && c->tiers <= FT_MAX_TIERS && c->gpus >= ranks && c->understood[0]);
    for (int i = 0; i < c->tiers; i++) {
        const ft_tier *t = &c->tier[i];
        FUZZ_CHECK(isfinite(t->gbps) && t->gbps > 0 && t->efficiency > 0 && t->efficiency <= 1);
        FUZZ_CHECK(isfinite(t->latency_us) && t->latency_us >= 0 && t->oversubscription >= 1 && t->gpus >= 1);
    }
    json_t *valid = json_string(c->understood); /* reaches an answer */
    FUZZ_CHECK(valid);
    json_decref(valid);
    ft_comm out;
    ft_group group = {.size = ranks, .stride = 1};
    ft_collective op = (ft_collective)(choice % FT_COLLECTIVE_COUNT);
    if (ft__collective_forecast(&none, device, c, op, 1e6, &group, 0.9, &out, NULL) == FT_OK)
        FUZZ_CHECK(isfinite(out.ms) && out.ms > 0 && out.low_ms <= out.ms && out.ms <= out.high_ms);
}

/* A name that is a path would open whatever file the bytes name. */
static bool leads_to_a_file(const json_t *spec)
{
    const char *name = json_string_value(json_object_get(spec, "interconnect"));
    return name && strstr(name, ".json");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"h100_sxm", "gb200", "a100_pcie_80gb", "l40s", "mi300x"};
    static ft_device devices[sizeof names / sizeof *names];
    json_t *spec = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !devices[i].name[0]; i++)
        FUZZ_CHECK(ft__catalogue_find(names[i], &devices[i], NULL) == FT_OK);
    if (ft__json_parse((const char *)data, size, "fuzz", &spec, NULL) != FT_OK)
        spec = json_pack("{s:o}", "interconnect", json_stringn((const char *)data, size));
    if (!spec) return 0; /* not UTF-8 */
    if (!leads_to_a_file(spec)) {
        ft_cluster c;
        ft_error err = {0};
        uint64_t choice = ft__hash(data, size, 1);
        const ft_device *device = &devices[choice % (sizeof names / sizeof *names)];
        if (ft__cluster_read(spec, device, 24, &c, &err) == FT_OK)
            check_cluster(device, &c, 24, choice >> 32);
        else
            FUZZ_CHECK(err.code != FT_OK && err.code != FT_E_BUG && err.message[0]);
    }
    json_decref(spec);
    return 0;
}
