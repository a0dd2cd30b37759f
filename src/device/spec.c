/* spec.c: a spec object, as JSON, into figures.
 *
 * Reads only what the object itself says. What it leaves out is filled in extend.c, whether the whole can be true is
 * asked in check.c; here a key is known or not, a value has the right type, and a figure lies in a range that catches
 * a wrong unit (bytes for GiB, MB/s for GB/s).
 */
#include "device/spec.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

typedef enum reading { WHOLE, REAL, MAYBE } reading;

static const struct figure {
    const char *key, *unit;
    reading kind;
    double low, high;
} figures[FT_SPEC_NUMBER_COUNT] = {
#define X(id, key, unit, kind, low, high) [FT_SPEC_##id] = {key, unit, kind, low, high},
    FT_SPEC_NUMBERS(X)
#undef X
};

const char *ft__spec_key(ft_spec_number n) { return figures[n].key; }
const char *ft__spec_unit(ft_spec_number n) { return figures[n].unit; }

void ft__warn(ft_text *warnings, const char *format, ...)
{
    if (!warnings) return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    ft__text_add(warnings, line);
    ft__text_add(warnings, "\n");
}

const char *ft__spec_cut(char *out, size_t room, const char *text)
{
    size_t length = strlen(text);
    if (length >= room) {
        length = room - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    }
    memcpy(out, text, length);
    out[length] = '\0';
    return out;
}

const char *ft__spec_path(char path[256], const char *where, const char *key)
{
    if (!where || !*where) return key;
    char start[200], end[51];
    snprintf(path, 256, "%s%s%s", ft__spec_cut(start, sizeof start, where), ft__is_path(where) ? ": " : ".",
             ft__spec_cut(end, sizeof end, key));
    return path;
}

/* -- keys -------------------------------------------------------------------------------------- */

static const char *const top_keys[] = {
    "base",
    "name",
    "title",
    "aliases",
    "usual",
    "stands_for",
    "vendor",
    "architecture",
    "generation",
    "compute_capability",
    "year",
    "process_nm",
    "sms",
    "fp32_lanes_per_sm",
    "matrix_fma_per_clk_per_sm",
    "uncapped_fma_per_clk_per_sm",
    "base_mhz",
    "clock_mhz",
    "running_mhz",
    "matrix_mhz",
    "sustained_clock_mhz",
    "tdp_w",
    "power_cap_w",
    "memory_gib",
    "memory_gbps",
    "memory_type",
    "l2_mib",
    "l2_bytes_per_clk",
    "smem_kib_per_sm",
    "regs_per_sm",
    "max_warps_per_sm",
    "matrix_issue",
    "async_copy",
    "issue_lanes_per_sm",
    "dual_issue",
    "dies",
    "l2_partitions",
    "inline_ecc",
    "matrix_pj_per_flop",
    "exp_per_clk_per_sm",
    "peak_tflops",
    "vector_tflops",
    "fp16_accumulate_tflops",
    "link",
    "server_nic_gbit",
    "pcie_gbps",
    "price_usd_per_hour",
    "sources",
    "notes",
};
static const char *const link_keys[] = {"kind", "gbps_per_direction", "gpus", "switched", "reduces", "apart"};
static const char *const rate_keys[] = {
#define X(code, name, bytes) name,
    FT_DTYPE_LIST(X)
#undef X
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* -- values ------------------------------------------------------------------------------------ */

/* `label` is how messages call the figure ("link.gpus"), `key` its name inside `object`. */
static ft_status read_figure(const json_t *object, const char *key, const char *label, const char *where,
                             const struct figure *f, double *out, bool *given, ft_error *err)
{
    char path[256];
    const json_t *value = json_object_get(object, key);
    if (!value) return FT_OK;
    if (f->kind == MAYBE && json_is_null(value)) {
        *given = true;
        *out = 0;
        return FT_OK;
    }
    double number = 0;
    FT_TRY(ft__json_number(object, key, FT_REQUIRED, -INFINITY, INFINITY, &number, where, err));
    if (!(number > 0))
        return ft__fail_at(err, FT_E_RANGE, ft__spec_path(path, where, key), 0, 0,
                           "\"%s\" must be greater than 0, got %g%s", label, number,
                           f->kind == MAYBE ? "; null says that there is none" : "");
    if (f->kind == WHOLE && number != floor(number))
        return ft__fail_at(err, FT_E_RANGE, ft__spec_path(path, where, key), 0, 0,
                           "\"%s\" must be a whole number, got %.10g", label, number);
    if (number < f->low || number > f->high)
        return ft__fail_at(err, FT_E_SPEC, ft__spec_path(path, where, key), 0, 0,
                           "\"%s\" is %.6g%s; a GPU has between %g and %g%s: is the unit right?", label, number,
                           f->unit, f->low, f->high, f->unit);
    *given = true;
    *out = number;
    return FT_OK;
}

/* Names travel into answers and tables: short, and without control characters. */
static ft_status read_text(const json_t *object, const char *key, const char *where, char *out, size_t room,
                           ft_error *err)
{
    char path[256];
    const char *text = NULL;
    FT_TRY(ft__json_string(object, key, FT_OPTIONAL, &text, where, err));
    if (!text) return FT_OK;
    size_t length = strlen(text);
    if (length == 0 || length >= room)
        return ft__fail_at(err, FT_E_RANGE, ft__spec_path(path, where, key), 0, 0,
                           "\"%s\" must have 1 to %zu characters, got %zu", key, room - 1, length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
            return ft__fail_at(err, FT_E_RANGE, ft__spec_path(path, where, key), 0, 0,
                               "\"%s\" holds a control character at position %zu", key, i + 1);
    memcpy(out, text, length + 1);
    return FT_OK;
}

static ft_status read_rates(const json_t *object, const char *key, const char *where, ft_rates *out, ft_error *err)
{
    static const struct figure rate = {NULL, " TFLOP/s", MAYBE, 1e-4, 1e6};
    const json_t *rates = json_object_get(object, key);
    if (!rates) return FT_OK;
    char inside[256], path[256];
    snprintf(inside, sizeof inside, "%s", ft__spec_path(path, where, key));
    if (!json_is_object(rates))
        return ft__fail_at(err, FT_E_TYPE, inside, 0, 0,
                           "\"%s\" must be an object of dense TFLOP/s by number format, like {\"bf16\": 989.4}", key);
    FT_TRY(ft__json_known_keys(rates, rate_keys, COUNT(rate_keys), inside, err));
    for (int d = 0; d < FT_DTYPE_COUNT; d++) {
        char label[64];
        snprintf(label, sizeof label, "%s.%s", key, rate_keys[d]);
        FT_TRY(read_figure(rates, rate_keys[d], label, inside, &rate, &out->tflops[d], &out->given[d], err));
    }
    return FT_OK;
}

static ft_status read_vendor(const json_t *object, const char *where, int *out, ft_error *err)
{
    static const char *const names[] = {"nvidia", "amd", "intel", "other"};
    static const ft_vendor vendors[] = {FT_VENDOR_NVIDIA, FT_VENDOR_AMD, FT_VENDOR_INTEL, FT_VENDOR_OTHER};
    const char *name = NULL;
    FT_TRY(ft__json_string(object, "vendor", FT_OPTIONAL, &name, where, err));
    if (!name) return FT_OK;
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcasecmp(name, names[i])) {
            *out = (int)vendors[i];
            return FT_OK;
        }
    char path[256], shown[64];
    return ft__fail_at(err, FT_E_NAME, ft__spec_path(path, where, "vendor"), 0, 0,
                       "unknown vendor \"%s\"; nvidia, amd, intel and other are known",
                       ft__spec_cut(shown, sizeof shown, name));
}

/* "9.0" is what CUDA prints for sm_90. */
static void normalise_capability(char text[12])
{
    char digits[8];
    size_t length = 0;
    for (const char *c = text; *c; c++) {
        if ((*c != '.' && (*c < '0' || *c > '9')) || length > 3) return;
        if (*c != '.') digits[length++] = *c;
    }
    digits[length] = '\0';
    if (length > 1 && strchr(text, '.')) snprintf(text, 12, "sm_%.4s", digits);
}

static ft_status read_texts(const json_t *object, const char *where, ft_spec *out, ft_error *err)
{
    FT_TRY(read_text(object, "name", where, out->name, sizeof out->name, err));
    FT_TRY(read_text(object, "title", where, out->title, sizeof out->title, err));
    FT_TRY(read_text(object, "architecture", where, out->architecture, sizeof out->architecture, err));
    FT_TRY(read_text(object, "generation", where, out->generation, sizeof out->generation, err));
    FT_TRY(read_text(object, "compute_capability", where, out->capability, sizeof out->capability, err));
    FT_TRY(read_text(object, "memory_type", where, out->memory_type, sizeof out->memory_type, err));
    normalise_capability(out->capability);
    for (char *c = out->memory_type; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    return read_vendor(object, where, &out->vendor, err);
}

static ft_status read_link(const json_t *object, const char *where, ft_spec *out, ft_error *err)
{
    const json_t *link = json_object_get(object, "link");
    if (!link) return FT_OK;
    char inside[256], path[256];
    snprintf(inside, sizeof inside, "%s", ft__spec_path(path, where, "link"));
    FT_TRY(ft__json_known_keys(link, link_keys, COUNT(link_keys), inside, err));
    FT_TRY(read_text(link, "kind", inside, out->link_kind, sizeof out->link_kind, err));
    for (int n = FT_SPEC_LINK_GBPS; n <= FT_SPEC_LINK_GPUS; n++)
        FT_TRY(read_figure(link, figures[n].key + strlen("link."), figures[n].key, inside, &figures[n], &out->number[n],
                           &out->given[n], err));
    return ft__spec_read_traits(link, inside, true, out, err);
}

ft_status ft__spec_parse(const json_t *object, const char *where, ft_spec *out, const char **base, ft_error *err)
{
    *out = (ft_spec){.vendor = FT_SPEC_VENDOR_UNKNOWN};
    *base = NULL;
    FT_TRY(ft__json_known_keys(object, top_keys, COUNT(top_keys), where, err));
    FT_TRY(ft__json_string(object, "base", FT_OPTIONAL, base, where, err));
    FT_TRY(read_texts(object, where, out, err));
    for (int n = 0; n < FT_SPEC_LINK_GBPS; n++)
        FT_TRY(read_figure(object, figures[n].key, figures[n].key, where, &figures[n], &out->number[n], &out->given[n],
                           err));
    FT_TRY(ft__spec_read_traits(object, where, false, out, err));
    FT_TRY(read_link(object, where, out, err));
    FT_TRY(read_rates(object, "peak_tflops", where, &out->peak, err));
    FT_TRY(read_rates(object, "vector_tflops", where, &out->vector, err));
    return read_rates(object, "fp16_accumulate_tflops", where, &out->half_accumulate, err);
}

/* -- the device -------------------------------------------------------------------------------- */

double ft__spec_tflops(const ft_spec *s, double fma_per_clk_per_sm, double mhz)
{
    return 2 * s->number[FT_SPEC_SMS] * fma_per_clk_per_sm * mhz * 1e-6;
}

/* Stated, or what accumulating in fp16 gains: GeForce runs its matrix units at half rate with fp32. */
double ft__spec_uncapped_fma(const ft_spec *s)
{
    double fma = s->number[FT_SPEC_MATRIX_FMA], peak = s->peak.tflops[FT_FP16];
    double half = peak > 0 ? fma * s->half_accumulate.tflops[FT_FP16] / peak : 0;
    return fmax(fma, s->number[FT_SPEC_UNCAPPED_FMA] > 0 ? s->number[FT_SPEC_UNCAPPED_FMA] : half);
}

void ft__spec_to_device(const ft_spec *spec, ft_device *out)
{
    const double *n = spec->number;
    memset(out, 0, sizeof *out); /* padding too: equal specs give equal bytes */
    out->vendor = spec->vendor == FT_SPEC_VENDOR_UNKNOWN ? FT_VENDOR_OTHER : (ft_vendor)spec->vendor;
    out->year = (int)n[FT_SPEC_YEAR];
    out->sms = (int)n[FT_SPEC_SMS];
    out->lanes_per_sm = (int)n[FT_SPEC_LANES];
    out->matrix_fma_per_clk_sm = n[FT_SPEC_MATRIX_FMA];
    out->uncapped_fma_per_clk_sm = ft__spec_uncapped_fma(spec);
    out->base_mhz = n[FT_SPEC_BASE_MHZ];
    out->running_mhz = n[FT_SPEC_RUNNING_MHZ];
    out->boost_mhz = n[FT_SPEC_CLOCK_MHZ];
    out->matrix_mhz = n[FT_SPEC_MATRIX_MHZ] > 0 ? n[FT_SPEC_MATRIX_MHZ] : n[FT_SPEC_CLOCK_MHZ];
    out->sustained_mhz = n[FT_SPEC_SUSTAINED_MHZ];
    out->tdp_w = n[FT_SPEC_TDP_W];
    out->process_nm = n[FT_SPEC_PROCESS_NM];
    out->memory_gib = n[FT_SPEC_MEMORY_GIB];
    out->memory_gbps = n[FT_SPEC_MEMORY_GBPS];
    out->memory_is_hbm = strncmp(spec->memory_type, "hbm", 3) == 0;
    out->l2_mib = n[FT_SPEC_L2_MIB];
    out->l2_bytes_per_clk = n[FT_SPEC_L2_BYTES_PER_CLK];
    out->smem_kib_per_sm = n[FT_SPEC_SMEM_KIB];
    out->regs_kib_per_sm = n[FT_SPEC_REGS] * 4 / 1024;
    out->max_warps_per_sm = (int)n[FT_SPEC_WARPS];
    out->matrix_issue = (ft_matrix_issue)spec->trait[FT_TRAIT_MATRIX_ISSUE];
    out->async_copy = (ft_async_copy)spec->trait[FT_TRAIT_ASYNC_COPY];
    out->issue_lanes_per_sm = (int)n[FT_SPEC_ISSUE_LANES];
    out->dual_issue = spec->trait[FT_TRAIT_DUAL_ISSUE];
    out->dies = (int)n[FT_SPEC_DIES];
    out->l2_partitions = (int)n[FT_SPEC_L2_PARTITIONS];
    out->inline_ecc = spec->trait[FT_TRAIT_INLINE_ECC];
    out->matrix_pj_per_flop = n[FT_SPEC_MATRIX_PJ];
    out->link_switched = spec->trait[FT_TRAIT_LINK_SWITCHED];
    out->link_reduces = spec->trait[FT_TRAIT_LINK_REDUCES];
    out->link_apart = spec->trait[FT_TRAIT_LINK_APART];
    out->server_nic_gbit = n[FT_SPEC_NIC_GBIT];
    out->link_gbps_per_direction = n[FT_SPEC_LINK_GBPS];
    out->link_gpus = (int)n[FT_SPEC_LINK_GPUS];
    out->pcie_gbps = n[FT_SPEC_PCIE_GBPS];
    out->price_usd_per_hour = n[FT_SPEC_PRICE];
    out->exp_per_clk_per_sm = (int)n[FT_SPEC_EXP];
    out->power_cap_w = n[FT_SPEC_POWER_CAP_W];
    memcpy(out->name, spec->name, sizeof out->name);
    memcpy(out->title, spec->title, sizeof out->title);
    memcpy(out->architecture, spec->architecture, sizeof out->architecture);
    memcpy(out->generation, spec->generation, sizeof out->generation);
    memcpy(out->compute_capability, spec->capability, sizeof out->compute_capability);
    memcpy(out->link_kind, spec->link_kind, sizeof out->link_kind);
    memcpy(out->peak_tflops, spec->peak.tflops, sizeof spec->peak.tflops);
    out->vector_tflops[FT_FP64] = spec->vector.tflops[FT_FP64];
    out->vector_tflops[FT_FP32] = spec->vector.tflops[FT_FP32];
    /* Frameworks widen 16-bit operands and compute pointwise in fp32, so that is the rate they see. */
    for (int d = FT_FP16; d <= FT_BF16; d++) {
        if (!(spec->peak.tflops[d] > 0)) continue;
        out->vector_tflops[d] = spec->vector.given[d] ? spec->vector.tflops[d] : spec->vector.tflops[FT_FP32];
    }
}
