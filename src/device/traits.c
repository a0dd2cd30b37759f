/* traits.c: what a GPU can do that is no figure.
 *
 * Kernels differ by what the hardware offers: matrix instructions from registers or from shared memory, copies past the
 * registers, a cache in two halves, a switch that adds. A spec states each of these as a trait, and nothing outside
 * this room asks which generation a GPU belongs to. So a GPU of a generation nobody heard of behaves as its traits say,
 * and a file that states none keeps working: its base has them, or the catalogue's relative of its generation.
 *
 * Leaves out: clusters of blocks, distributed shared memory, structured sparsity; no forecast asks for them. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "device/guesses_constants.h"
#include "device/spec.h"
#include "device/traits.h"

static const char *const issues[] = {"none", "mma", "wgmma", "tcgen05", "mfma", "xmx", NULL};
static const char *const copies[] = {"none", "cp_async", "tma", NULL};
_Static_assert(sizeof issues / sizeof *issues == FT_ISSUE_COUNT + 1, "a word for each");
_Static_assert(sizeof copies / sizeof *copies == FT_COPY_COUNT + 1, "a word for each");

static const struct {
    const char *key;
    const char *const *words;
} traits[FT_SPEC_TRAIT_COUNT] = {
#define X(id, key, words) [FT_TRAIT_##id] = {key, words},
    FT_SPEC_TRAITS(X)
#undef X
};

double ft__exp_per_clk(const ft_device *device)
{
    return device->exp_per_clk_per_sm > 0 ? device->exp_per_clk_per_sm : FT_K_GUESSES_EXP_PER_CLK;
}

const char *ft__matrix_issue_name(ft_matrix_issue issue)
{
    return (unsigned)issue < FT_ISSUE_COUNT ? issues[issue] : "none";
}

const char *ft__async_copy_name(ft_async_copy copy) { return (unsigned)copy < FT_COPY_COUNT ? copies[copy] : "none"; }

int ft__compute_major(const ft_device *device)
{
    int number = 0;
    return sscanf(device->compute_capability, "sm_%4d", &number) == 1 ? number / 10 : 0;
}

/* Without a cap a format's rate is fp16's by the width of an operand; integers and four bits have none on GeForce. */
double ft__matrix_cap(const ft_device *device, ft_dtype dtype)
{
    double fma = device->matrix_fma_per_clk_sm, uncapped = device->uncapped_fma_per_clk_sm;
    double half = device->peak_tflops[FT_FP16],
           peak = (unsigned)dtype < FT_DTYPE_COUNT ? device->peak_tflops[dtype] : 0;
    if (!(fma > 0) || !(uncapped > fma) || !(half > 0) || !(peak > 0)) return 1;
    double own = half * uncapped / fma * 2 / ft_dtype_bytes(dtype);
    return peak < own ? peak / own : 1;
}

/* -- reading ----------------------------------------------------------------------------------- */

static void take_number(ft_spec *s, ft_spec_number n, double value)
{
    if (!s->given[n]) s->number[n] = value;
    s->given[n] = true;
}

static ft_status read_word(const json_t *object, const char *key, const char *const *words, const char *where, int *out,
                           bool *given, ft_error *err)
{
    const char *word = NULL;
    FT_TRY(ft__json_string(object, key, FT_OPTIONAL, &word, where, err));
    if (!word) return FT_OK;
    size_t count = 0, length = 0;
    char all[96] = "", path[256], shown[64];
    for (; words[count]; count++) {
        if (!strcmp(words[count], word)) {
            *given = true;
            *out = (int)count;
            return FT_OK;
        }
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", count ? ", " : "", words[count]);
    }
    const char *nearest = ft__nearest(word, words, count);
    return ft__fail_at(err, FT_E_NAME, ft__spec_path(path, where, key), 0, 0, "\"%s\" is one of %s, not \"%s\"%s%s%s",
                       key, all, ft__spec_cut(shown, sizeof shown, word), nearest ? "; did you mean \"" : "",
                       nearest ? nearest : "", nearest ? "\"?" : "");
}

ft_status ft__spec_read_traits(const json_t *object, const char *where, bool link, ft_spec *out, ft_error *err)
{
    for (int t = link ? FT_TRAIT_LINK_SWITCHED : 0; t < (link ? FT_SPEC_TRAIT_COUNT : FT_TRAIT_LINK_SWITCHED); t++) {
        const char *key = traits[t].key + (link ? strlen("link.") : 0);
        if (traits[t].words) {
            FT_TRY(read_word(object, key, traits[t].words, where, &out->trait[t], &out->has[t], err));
        } else if (json_object_get(object, key)) {
            bool yes = false;
            FT_TRY(ft__json_bool(object, key, FT_REQUIRED, &yes, where, err));
            out->has[t] = true;
            out->trait[t] = yes;
        }
    }
    if (!link && out->has[FT_TRAIT_MATRIX_ISSUE] && out->trait[FT_TRAIT_MATRIX_ISSUE] == FT_ISSUE_NONE) {
        /* Without matrix units whatever its kin has: TU117 among the Turings. */
        take_number(out, FT_SPEC_MATRIX_FMA, 0);
        take_number(out, FT_SPEC_UNCAPPED_FMA, 0);
        take_number(out, FT_SPEC_MATRIX_PJ, 0);
    }
    return FT_OK;
}

/* -- what is not given ------------------------------------------------------------------------- */

static void take(ft_spec *s, ft_spec_trait t, int value)
{
    if (!s->has[t]) s->trait[t] = value;
    s->has[t] = true;
}

/* Eight GPUs and more are joined by a switch since NVLink 3 (DGX-1's V100s, with NVLink 2, are a cube mesh), and the
 * switches of NVLink 4 add (NVSwitch 3, "NVLink SHARP"). A link without a number is a new one. */
static void take_switch(ft_spec *s, const char *kind, double gpus, bool nvidia)
{
    static const char nvlink[] = "nvlink";
    const char *digits = !strncmp(kind, nvlink, strlen(nvlink)) ? kind + strlen(nvlink) : "";
    int number = *digits >= '1' && *digits <= '9' ? *digits - '0' : 99;
    bool switched = nvidia && gpus >= 8 && strncmp(kind, "pcie", 4) != 0 && number >= 3;
    take(s, FT_TRAIT_LINK_SWITCHED, switched);
    take(s, FT_TRAIT_LINK_REDUCES, s->trait[FT_TRAIT_LINK_SWITCHED] && number >= 4);
    take(s, FT_TRAIT_LINK_APART, false);
}

/* Gbit/s of the ports that servers had in a year: EDR, HDR from 2020, NDR from 2022, XDR from 2025. */
static double nic_of_year(double year) { return year >= 2025 ? 800 : year >= 2022 ? 400 : year >= 2020 ? 200 : 100; }

/* What belongs to the chip, from a GPU with the same one. */
static void take_chip(ft_spec *s, const ft_spec *from)
{
    static const ft_spec_number numbers[] = {FT_SPEC_ISSUE_LANES,      FT_SPEC_DIES,      FT_SPEC_L2_PARTITIONS,
                                             FT_SPEC_L2_BYTES_PER_CLK, FT_SPEC_MATRIX_PJ, FT_SPEC_EXP};
    bool matrix = !s->given[FT_SPEC_MATRIX_FMA] || s->number[FT_SPEC_MATRIX_FMA] > 0;
    if (!matrix) take_number(s, FT_SPEC_MATRIX_PJ, 0);
    take(s, FT_TRAIT_MATRIX_ISSUE, matrix ? from->trait[FT_TRAIT_MATRIX_ISSUE] : FT_ISSUE_NONE);
    take(s, FT_TRAIT_ASYNC_COPY, from->trait[FT_TRAIT_ASYNC_COPY]);
    take(s, FT_TRAIT_DUAL_ISSUE, from->trait[FT_TRAIT_DUAL_ISSUE]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) take_number(s, numbers[i], from->number[numbers[i]]);
    take_number(s, FT_SPEC_UNCAPPED_FMA, ft__spec_uncapped_fma(from));
}

void ft__spec_extend_traits(ft_spec *s, const ft_spec *base)
{
    const double *b = base->number;
    bool other_kind = *s->link_kind && strcmp(s->link_kind, base->link_kind) != 0;
    bool other_link = other_kind ||
                      (s->given[FT_SPEC_LINK_GPUS] && s->number[FT_SPEC_LINK_GPUS] != b[FT_SPEC_LINK_GPUS]);
    bool other_year = s->given[FT_SPEC_YEAR] && s->number[FT_SPEC_YEAR] != b[FT_SPEC_YEAR];
    bool hbm = !strncmp(s->memory_type, "hbm", 3); /* has its own bits for it */
    take_chip(s, base);
    take(s, FT_TRAIT_INLINE_ECC, !hbm && base->trait[FT_TRAIT_INLINE_ECC]);
    if (other_link) {
        double gpus = s->given[FT_SPEC_LINK_GPUS] ? s->number[FT_SPEC_LINK_GPUS] : b[FT_SPEC_LINK_GPUS];
        take_switch(s, *s->link_kind ? s->link_kind : base->link_kind, gpus, s->vendor == FT_VENDOR_NVIDIA);
    }
    take(s, FT_TRAIT_LINK_SWITCHED, base->trait[FT_TRAIT_LINK_SWITCHED]);
    take(s, FT_TRAIT_LINK_REDUCES, s->trait[FT_TRAIT_LINK_SWITCHED] && base->trait[FT_TRAIT_LINK_REDUCES]);
    take(s, FT_TRAIT_LINK_APART, base->trait[FT_TRAIT_LINK_APART]);
    take_number(s, FT_SPEC_NIC_GBIT, other_year ? nic_of_year(s->number[FT_SPEC_YEAR]) : b[FT_SPEC_NIC_GBIT]);
}

void ft__spec_lend_traits(ft_spec *s, const ft_spec *same_capability, ft_text *warnings)
{
    bool stated = s->has[FT_TRAIT_MATRIX_ISSUE] && s->has[FT_TRAIT_ASYNC_COPY];
    take_chip(s, same_capability);
    if (!stated) ft__warn(warnings, "traits that are not given: as %s, by compute_capability", same_capability->name);
}

static ft_matrix_issue issue_of(const ft_spec *s)
{
    if (!(s->number[FT_SPEC_MATRIX_FMA] > 0)) return FT_ISSUE_NONE;
    return s->vendor == FT_VENDOR_AMD ? FT_ISSUE_MFMA : s->vendor == FT_VENDOR_INTEL ? FT_ISSUE_XMX : FT_ISSUE_MMA;
}

/* The plainest hardware: what a kernel made for nothing in particular finds. */
static void guess_chip(ft_spec *s, ft_text *warnings)
{
    bool halves = s->vendor == FT_VENDOR_NVIDIA && !strncmp(s->memory_type, "hbm", 3) &&
                  s->number[FT_SPEC_YEAR] >= 2020;
    bool guessing = !s->has[FT_TRAIT_MATRIX_ISSUE] || !s->has[FT_TRAIT_ASYNC_COPY];
    take(s, FT_TRAIT_MATRIX_ISSUE, (int)issue_of(s));
    take(s, FT_TRAIT_ASYNC_COPY, FT_COPY_NONE);
    take(s, FT_TRAIT_DUAL_ISSUE, 0);
    take_number(s, FT_SPEC_ISSUE_LANES, 128);
    take_number(s, FT_SPEC_DIES, 1);
    take_number(s, FT_SPEC_L2_PARTITIONS, halves ? 2 : 1);
    take_number(s, FT_SPEC_MATRIX_PJ, 0);
    take_number(s, FT_SPEC_EXP, FT_K_GUESSES_EXP_PER_CLK);
    take_number(s, FT_SPEC_UNCAPPED_FMA, 0);
    take_number(s, FT_SPEC_L2_BYTES_PER_CLK, 0);
    if (guessing)
        ft__warn(warnings,
                 "matrix_issue %s, async_copy %s, dies %g, l2_partitions %g: guesses where they are not given",
                 issues[s->trait[FT_TRAIT_MATRIX_ISSUE]], copies[s->trait[FT_TRAIT_ASYNC_COPY]],
                 s->number[FT_SPEC_DIES], s->number[FT_SPEC_L2_PARTITIONS]);
}

void ft__spec_complete_traits(ft_spec *s, const ft_spec *kin, ft_text *warnings)
{
    if (kin)
        take_chip(s, kin);
    else
        guess_chip(s, warnings);
    take(s, FT_TRAIT_INLINE_ECC, 0);
    take_switch(s, s->link_kind, s->number[FT_SPEC_LINK_GPUS], s->vendor == FT_VENDOR_NVIDIA);
    bool same_year = kin && s->number[FT_SPEC_YEAR] == kin->number[FT_SPEC_YEAR];
    take_number(s, FT_SPEC_NIC_GBIT, same_year ? kin->number[FT_SPEC_NIC_GBIT] : nic_of_year(s->number[FT_SPEC_YEAR]));
}

bool ft__over_pcie(const ft_device *d) { return !strncmp(d->link_kind, "pcie", 4) || d->link_kind[0] == 0; }

bool ft__bridged(const ft_device *d) { return d->link_gpus == 2 && !ft__over_pcie(d); }
