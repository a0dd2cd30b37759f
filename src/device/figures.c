/* figures.c: a device that a program filled in by itself.
 *
 * Specs are checked when they are read (spec.c, check.c). A struct may hold anything: texts that do not end, formats
 * of NaN TFLOP/s, no SMs at all. What the physics divides by must be there; the rest may be zero, which means that
 * nobody knows. */
#include <string.h>

#include "device/fields.h"
#include "device/gpu.h"

static ft_status text_ok(const char *name, const char *text, size_t room, ft_error *err)
{
    if (memchr(text, 0, room)) return FT_OK;
    return ft__fail_at(err, FT_E_SPEC, name, 0, 0, "a device's \"%s\" must end within %zu bytes", name, room);
}

/* Counts are multiplied by counts: none is larger than any GPU will have. What is divided by is no vanishing figure. */
static const double largest_count = 65536, largest_figure = 1e9, least_figure = 1e-3;

static ft_status refuse(const char *name, bool positive, double most, double value, ft_error *err)
{
    return ft__fail_at(err, FT_E_SPEC, name, 0, 0, "a device's \"%s\" must be %sfrom %g to %g, got %g", name,
                       positive ? "" : "0 or ", least_figure, most, value);
}

static ft_status number_ok(const char *name, double value, double most, ft_error *err)
{
    if (value == 0 || (value >= least_figure && value <= most)) return FT_OK;
    return refuse(name, false, most, value, err);
}

/* What the physics divides by. */
static ft_status needed_ok(const ft_device *d, ft_error *err)
{
    const struct {
        const char *name;
        double value;
    } needed[] = {{"sms", d->sms},
                  {"lanes_per_sm", d->lanes_per_sm},
                  {"issue_lanes_per_sm", d->issue_lanes_per_sm},
                  {"boost_mhz", d->boost_mhz},
                  {"matrix_mhz", d->matrix_mhz},
                  {"tdp_w", d->tdp_w},
                  {"process_nm", d->process_nm},
                  {"memory_gib", d->memory_gib},
                  {"memory_gbps", d->memory_gbps},
                  {"l2_mib", d->l2_mib},
                  {"smem_kib_per_sm", d->smem_kib_per_sm},
                  {"pcie_gbps", d->pcie_gbps},
                  {"peak_tflops", d->peak_tflops[FT_FP32]}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(needed[i].value > 0)) return refuse(needed[i].name, true, largest_figure, needed[i].value, err);
    return FT_OK;
}

static ft_status rates_ok(const char *name, const double *rates, ft_error *err)
{
    for (int i = 0; i < FT_DTYPE_COUNT; i++) FT_TRY(number_ok(name, rates[i], largest_figure, err));
    return FT_OK;
}

ft_status ft__device_figures(const ft_device *d, ft_error *err)
{
#define TEXT(field) FT_TRY(text_ok(#field, d->field, sizeof d->field, err));
#define WHOLE(field) FT_TRY(number_ok(#field, (double)d->field, largest_count, err));
#define FIGURE(field) FT_TRY(number_ok(#field, d->field, largest_figure, err));
#define RATES(field) FT_TRY(rates_ok(#field, d->field, err));
    FT_DEVICE_FIELDS(TEXT, WHOLE, FIGURE, RATES)
    return needed_ok(d, err);
}
