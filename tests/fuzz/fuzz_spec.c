/* Spec objects: whatever JSON comes, a device with figures that can be computed with, or an error that says where. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "device/balance.h"
#include "device/gpu.h"
#include "fuzz.h"

/* Text that reaches an answer must be valid UTF-8; Jansson makes a string of nothing else. */
static void check_text(const char *text)
{
    json_t *valid = json_string(text);
    FUZZ_CHECK(valid);
    json_decref(valid);
}

static bool positive(double x) { return isfinite(x) && x > 0; }
static bool not_negative(double x) { return isfinite(x) && x >= 0; }

static void check_device(const ft_device *d)
{
    check_text(d->name);
    check_text(d->title);
    FUZZ_CHECK(d->name[0] && d->title[0] && d->architecture[0] && d->generation[0] && d->link_kind[0]);
    FUZZ_CHECK(d->sms > 0 && d->lanes_per_sm > 0 && d->max_warps_per_sm > 0 && d->link_gpus > 0 && d->year > 0);
    FUZZ_CHECK(positive(d->boost_mhz) && positive(d->matrix_mhz) && positive(d->tdp_w) && positive(d->process_nm));
    FUZZ_CHECK(positive(d->memory_gib) && positive(d->memory_gbps) && positive(d->l2_mib));
    FUZZ_CHECK(positive(d->smem_kib_per_sm) && positive(d->regs_kib_per_sm));
    FUZZ_CHECK(positive(d->link_gbps_per_direction) && positive(d->pcie_gbps));
    FUZZ_CHECK(not_negative(d->base_mhz) && not_negative(d->sustained_mhz) && not_negative(d->price_usd_per_hour));
    FUZZ_CHECK(not_negative(d->matrix_fma_per_clk_sm) && d->l2_mib <= 1024 * d->memory_gib);
    double best = 0;
    for (int t = 0; t < FT_DTYPE_COUNT; t++) {
        FUZZ_CHECK(not_negative(d->peak_tflops[t]) && not_negative(d->vector_tflops[t]));
        FUZZ_CHECK(not_negative(ft__machine_balance(d, (ft_dtype)t)));
        best = fmax(best, d->peak_tflops[t]);
    }
    FUZZ_CHECK(best > 0);
    ft_memory_level levels[FT_MEMORY_LEVELS];
    ft__memory_levels(d, levels);
    for (int l = 0; l < FT_MEMORY_LEVELS; l++) FUZZ_CHECK(positive(levels[l].bytes) && not_negative(levels[l].gbps));
}

/* A base that is a path would open whatever file the bytes name. */
static bool leads_to_a_file(const json_t *spec)
{
    const char *base = json_string_value(json_object_get(spec, "base"));
    return base && (strchr(base, '/') || strstr(base, ".json"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *spec;
    if (ft__json_parse((const char *)data, size, "fuzz", &spec, NULL) != FT_OK) return 0;
    if (!leads_to_a_file(spec)) {
        ft_device device;
        ft_text warnings = {0};
        ft_error err = {0};
        ft_status status = ft__device_read(spec, "gpu", &device, &warnings, &err);
        FUZZ_CHECK(err.code == status);
        if (status == FT_OK) {
            check_device(&device);
            if (warnings.at) check_text(warnings.at);
        } else {
            FUZZ_CHECK(err.message[0] && err.where[0]);
            check_text(err.message);
            check_text(err.where);
        }
        ft__text_free(&warnings);
    }
    json_decref(spec);
    return 0;
}
