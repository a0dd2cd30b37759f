/* generation.c: what is common to the GPUs of one generation.
 *
 * A generation is kinship: GPUs whose kernels behave alike, because the multiprocessor is the same. It is finer than
 * the vendor's name where the multiprocessor differs (GA100 and GA102 are both Ampere; B200 and the GeForce 50 series
 * are both Blackwell) and coarser where it does not (GP104 and GP100 answer to different capabilities but are one
 * generation).
 *
 * A sheet of the catalogue that says `stands_for` lends what a file without base leaves out: to its compute capability,
 * to the chips it names (as their names begin), and, the first of its generation, to that.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "device/embedded.h"
#include "device/spec.h"

enum { MOST_KIN = 64 };

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

static const struct ft__embedded_kin *by_capability(const char *capability)
{
    for (size_t i = 0; i < ft__embedded_kin_count; i++)
        if (!strcasecmp(ft__embedded_kin[i].capability, capability)) return &ft__embedded_kin[i];
    return NULL;
}

static const struct ft__embedded_kin *by_generation(const char *generation)
{
    for (size_t i = 0; i < ft__embedded_kin_count; i++)
        if (!strcasecmp(ft__embedded_kin[i].generation, generation)) return &ft__embedded_kin[i];
    return NULL;
}

/* The chip's name says more than the family's: "Blackwell GB202" is not kin of B200. */
static const struct ft__embedded_kin *by_architecture(const char *architecture)
{
    const struct ft__embedded_kin *chip = NULL; /* the longest: "gp100" before "gp10" */
    for (size_t i = 0; i < ft__embedded_kin_count; i++)
        if (has_word(architecture, ft__embedded_kin[i].chip) &&
            (!chip || strlen(ft__embedded_kin[i].chip) > strlen(chip->chip)))
            chip = &ft__embedded_kin[i];
    if (chip) return chip;
    for (size_t i = 0; i < ft__embedded_kin_count; i++)
        if (has_word(architecture, ft__embedded_kin[i].generation)) return &ft__embedded_kin[i];
    return NULL;
}

const char *ft__spec_kin(ft_spec *spec, ft_text *warnings)
{
    const struct ft__embedded_kin *kin = NULL;
    if (*spec->generation) {
        kin = by_generation(spec->generation);
        const struct ft__embedded_kin *exact = *spec->capability ? by_capability(spec->capability) : NULL;
        if (kin && exact && !strcmp(exact->generation, kin->generation)) kin = exact;
        if (!kin) {
            const char *names[MOST_KIN];
            size_t count = ft__embedded_kin_count < MOST_KIN ? ft__embedded_kin_count : MOST_KIN;
            for (size_t i = 0; i < count; i++) names[i] = ft__embedded_kin[i].generation;
            const char *nearest = ft__nearest(spec->generation, names, count);
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
    const struct ft__embedded_kin *kin = by_capability(capability);
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
