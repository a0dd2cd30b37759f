/* generation.c: what is common to the GPUs of one generation.
 *
 * A generation is kinship: GPUs whose kernels behave alike, because the multiprocessor is the same. It is finer than
 * the vendor's name where the multiprocessor differs (GA100 and GA102 are both Ampere; B200 and the GeForce 50 series
 * are both Blackwell) and coarser where it does not (GP104 and GP100 answer to different capabilities but are one
 * generation).
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "device/spec.h"

/* capability, generation, chips (as their names begin), and the catalogue entry that stands for the rest. */
static const struct kin {
    const char *capability, *generation, *chip, *name;
    ft_vendor vendor;
} kinship[] = {
    {"sm_60", "pascal", "gp100", "p100_pcie_16gb", FT_NVIDIA},
    {"sm_61", "pascal", "gp10", "p4", FT_NVIDIA},
    {"sm_70", "volta", "gv100", "v100_sxm_32gb", FT_NVIDIA},
    {"sm_75", "turing", "tu1", "t4", FT_NVIDIA},
    {"sm_80", "ampere", "ga100", "a100_sxm_80gb", FT_NVIDIA},
    {"sm_86", "ampere_rtx", "ga10", "rtx_a6000", FT_NVIDIA},
    {"sm_89", "ada", "ad10", "l40s", FT_NVIDIA},
    {"sm_90", "hopper", "gh100", "h100_sxm", FT_NVIDIA},
    {"sm_100", "blackwell", "gb100", "b200_sxm", FT_NVIDIA},
    {"sm_103", "blackwell", "gb110", "b300_sxm", FT_NVIDIA},
    {"sm_120", "blackwell_rtx", "gb20", "rtx_pro_6000", FT_NVIDIA},
    {"gfx908", "cdna1", "arcturus", "mi100", FT_AMD},
    {"gfx90a", "cdna2", "aldebaran", "mi250x", FT_AMD},
    {"gfx942", "cdna3", "aqua", "mi300x", FT_AMD},
    {"gfx950", "cdna4", "cdna4", "mi355x", FT_AMD},
    {"bmg_g21", "xe2", "bmg", "b60", FT_INTEL},
};
enum { KIN_COUNT = (int)(sizeof kinship / sizeof *kinship) };

/* A word of `text` that begins with `start`, upper or lower case. */
static bool has_word(const char *text, const char *start)
{
    size_t length = strlen(start);
    for (const char *at = text; *at; at++) {
        bool begins = at == text || strchr(" -_/(", at[-1]) != NULL;
        if (begins && !strncasecmp(at, start, length)) return true;
    }
    return false;
}

static const struct kin *by_capability(const char *capability)
{
    for (int i = 0; i < KIN_COUNT; i++)
        if (!strcasecmp(kinship[i].capability, capability)) return &kinship[i];
    return NULL;
}

static const struct kin *by_generation(const char *generation)
{
    for (int i = 0; i < KIN_COUNT; i++)
        if (!strcasecmp(kinship[i].generation, generation)) return &kinship[i];
    return NULL;
}

/* The chip's name says more than the family's: "Blackwell GB202" is not kin of B200. */
static const struct kin *by_architecture(const char *architecture)
{
    for (int i = 0; i < KIN_COUNT; i++)
        if (has_word(architecture, kinship[i].chip)) return &kinship[i];
    for (int i = 0; i < KIN_COUNT; i++)
        if (has_word(architecture, kinship[i].generation)) return &kinship[i];
    return NULL;
}

const char *ft__spec_kin(ft_spec *spec, ft_text *warnings)
{
    const struct kin *kin = NULL;
    if (*spec->generation) {
        kin = by_generation(spec->generation);
        const struct kin *exact = *spec->capability ? by_capability(spec->capability) : NULL;
        if (kin && exact && !strcmp(exact->generation, kin->generation)) kin = exact;
        if (!kin) {
            const char *names[KIN_COUNT];
            for (int i = 0; i < KIN_COUNT; i++) names[i] = kinship[i].generation;
            const char *nearest = ft__nearest(spec->generation, names, KIN_COUNT);
            ft__warn(warnings,
                     nearest ? "generation \"%s\" is new to the catalogue; did you mean \"%s\"?"
                             : "generation \"%s\" is new to the catalogue: forecasts rest on physics alone",
                     spec->generation, nearest);
        }
    } else {
        if (*spec->capability) kin = by_capability(spec->capability);
        if (!kin && *spec->architecture) kin = by_architecture(spec->architecture);
        if (kin) {
            snprintf(spec->generation, sizeof spec->generation, "%s", kin->generation);
            ft__warn(warnings, "generation not given: %s, by %s", kin->generation,
                     *spec->capability ? "compute_capability" : "architecture");
        } else {
            snprintf(spec->generation, sizeof spec->generation, "unknown");
            ft__warn(warnings,
                     "generation not given and neither compute_capability nor architecture tells it: forecasts "
                     "rest on physics alone");
        }
    }
    if (!kin) return NULL;
    if (!*spec->capability) snprintf(spec->capability, sizeof spec->capability, "%s", kin->capability);
    if (spec->vendor == FT_SPEC_VENDOR_UNKNOWN) spec->vendor = (int)kin->vendor;
    return kin->name;
}

const char *ft__capability_kin(const char *capability)
{
    const struct kin *kin = by_capability(capability);
    return kin ? kin->name : NULL;
}

/* Formats of half the width run twice as fast, with the exceptions that the vendors' tables show: CDNA1 halves bf16;
 * CDNA1 and 2 gain nothing from int8; Blackwell Ultra (sm_103) spends its area on fp4 (15 PF dense against 2.5 of
 * fp16) and nearly drops int8 and fp64, which therefore have no lower bound in check.c. */
double ft__matrix_factor(const ft_spec *spec, ft_dtype d)
{
    bool cdna1 = !strcmp(spec->generation, "cdna1"), cdna2 = !strcmp(spec->generation, "cdna2");
    switch (d) {
    case FT_TF32: return 0.5;
    case FT_FP16: return 1;
    case FT_BF16: return cdna1 ? 0.5 : 1;
    case FT_FP8: return 2;
    case FT_INT8: return cdna1 || cdna2 ? 1 : 2;
    case FT_FP4: return !strcmp(spec->capability, "sm_103") ? 6 : 4;
    default: return 0;
    }
}

/* Per GPU: links of a GPU times 20 (NVLink 1), 25 (2 to 4) or 50 GB/s (5), stas00/ml-engineering network/README.md;
 * PCIe x16 after its line code. */
double ft__link_rate(const char *kind)
{
    static const struct {
        const char *kind;
        double gbps;
    } rates[] = {
        {"pcie3", 15.75}, {"pcie4", 31.5},  {"pcie5", 63},    {"pcie6", 121},   {"nvlink1", 80},
        {"nvlink2", 150}, {"nvlink3", 300}, {"nvlink4", 450}, {"nvlink5", 900}, {"nvlink6", 1800},
    };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (!strcasecmp(rates[i].kind, kind)) return rates[i].gbps;
    return 0;
}
