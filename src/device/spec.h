/* A spec on its way to becoming a device: the figures, and which of them its file gave.
 *
 *     JSON object --spec.c--> what it says --extend.c--> complete, over its base or its kin --check.c--> believable
 *
 * Private to this room. */
#ifndef FT_DEVICE_SPEC_H
#define FT_DEVICE_SPEC_H
#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "foretell.h"

/* Every figure that is one number: identifier, key, unit for messages, how it is read (WHOLE: an integer; REAL;
 * MAYBE: null says that there is none or that nobody knows, and 0 stands for it), and the plausible range. The ranges
 * leave room for a decade of progress; what they catch is a wrong unit. */
#define FT_SPEC_NUMBERS(X)                                               \
    X(YEAR, "year", "", WHOLE, 2006, 2100)                               \
    X(PROCESS_NM, "process_nm", " nm", REAL, 0.5, 250)                   \
    X(SMS, "sms", "", WHOLE, 1, 4096)                                    \
    X(LANES, "fp32_lanes_per_sm", "", WHOLE, 1, 4096)                    \
    X(MATRIX_FMA, "matrix_fma_per_clk_per_sm", "", MAYBE, 16, 65536)     \
    X(UNCAPPED_FMA, "uncapped_fma_per_clk_per_sm", "", MAYBE, 16, 65536) \
    X(BASE_MHZ, "base_mhz", " MHz", MAYBE, 50, 10000)                    \
    X(CLOCK_MHZ, "clock_mhz", " MHz", REAL, 50, 10000)                   \
    X(RUNNING_MHZ, "running_mhz", " MHz", MAYBE, 50, 10000)              \
    X(MATRIX_MHZ, "matrix_mhz", " MHz", MAYBE, 50, 10000)                \
    X(SUSTAINED_MHZ, "sustained_clock_mhz", " MHz", MAYBE, 50, 10000)    \
    X(TDP_W, "tdp_w", " W", REAL, 1, 20000)                              \
    X(POWER_CAP_W, "power_cap_w", " W", MAYBE, 1, 20000)                 \
    X(MEMORY_GIB, "memory_gib", " GiB", REAL, 0.25, 16384)               \
    X(MEMORY_GBPS, "memory_gbps", " GB/s", REAL, 1, 200000)              \
    X(L2_MIB, "l2_mib", " MiB", REAL, 0.03, 16384)                       \
    X(L2_BYTES_PER_CLK, "l2_bytes_per_clk", " B", MAYBE, 16, 1000000)    \
    X(SMEM_KIB, "smem_kib_per_sm", " KiB", REAL, 1, 65536)               \
    X(REGS, "regs_per_sm", " 32-bit registers", WHOLE, 1024, 16777216)   \
    X(WARPS, "max_warps_per_sm", "", WHOLE, 1, 1024)                     \
    X(ISSUE_LANES, "issue_lanes_per_sm", "", WHOLE, 1, 4096)             \
    X(DIES, "dies", "", WHOLE, 1, 64)                                    \
    X(L2_PARTITIONS, "l2_partitions", "", WHOLE, 1, 64)                  \
    X(MATRIX_PJ, "matrix_pj_per_flop", " pJ", MAYBE, 0.01, 100)          \
    X(EXP, "exp_per_clk_per_sm", "", WHOLE, 1, 1024)                     \
    X(NIC_GBIT, "server_nic_gbit", " Gbit/s", REAL, 1, 100000)           \
    X(PCIE_GBPS, "pcie_gbps", " GB/s", REAL, 0.1, 10000)                 \
    X(PRICE, "price_usd_per_hour", " USD per hour", MAYBE, 0.001, 10000) \
    X(LINK_GBPS, "link.gbps_per_direction", " GB/s", REAL, 0.1, 100000)  \
    X(LINK_GPUS, "link.gpus", "", WHOLE, 1, 1000000)

typedef enum ft_spec_number {
#define X(id, key, unit, kind, low, high) FT_SPEC_##id,
    FT_SPEC_NUMBERS(X)
#undef X
        FT_SPEC_NUMBER_COUNT
} ft_spec_number;

/* Traits that are words or yes and no: identifier, key, the words (NULL: true or false). Those of the link stand inside
 * it and come last. */
#define FT_SPEC_TRAITS(X)                   \
    X(MATRIX_ISSUE, "matrix_issue", issues) \
    X(ASYNC_COPY, "async_copy", copies)     \
    X(DUAL_ISSUE, "dual_issue", NULL)       \
    X(INLINE_ECC, "inline_ecc", NULL)       \
    X(LINK_SWITCHED, "link.switched", NULL) \
    X(LINK_REDUCES, "link.reduces", NULL)   \
    X(LINK_APART, "link.apart", NULL)

typedef enum ft_spec_trait {
#define X(id, key, words) FT_TRAIT_##id,
    FT_SPEC_TRAITS(X)
#undef X
        FT_SPEC_TRAIT_COUNT
} ft_spec_trait;

/* Rates by number format, in TFLOP/s. A null in the file is given and 0: the GPU lacks the format. */
typedef struct ft_rates {
    double tflops[FT_DTYPE_COUNT];
    bool given[FT_DTYPE_COUNT];
} ft_rates;

enum { FT_SPEC_VENDOR_UNKNOWN = -1 };

typedef struct ft_spec {
    double number[FT_SPEC_NUMBER_COUNT];
    bool given[FT_SPEC_NUMBER_COUNT];
    int trait[FT_SPEC_TRAIT_COUNT]; /* the word's place in its list, or 0 and 1 */
    bool has[FT_SPEC_TRAIT_COUNT];
    char name[64], title[64], architecture[32], generation[24], capability[12], memory_type[16], link_kind[24];
    int vendor;               /* ft_vendor or FT_SPEC_VENDOR_UNKNOWN */
    ft_rates peak;            /* matrix multiplication, accumulated in fp32 (int32 for int8) */
    ft_rates vector;          /* without matrix units */
    ft_rates half_accumulate; /* accumulated in fp16, where that is faster; for the checks and for people */
} ft_spec;

/* -- spec.c -- */

/* Reads what the object itself says; keys, types and ranges are checked. `*base` is its "base" or NULL. */
ft_status ft__spec_parse(const json_t *object, const char *where, ft_spec *out, const char **base, ft_error *err);
void ft__spec_to_device(const ft_spec *spec, ft_device *out);
/* What all SMs compute at that clock. */
double ft__spec_tflops(const ft_spec *spec, double fma_per_clk_per_sm, double mhz);
/* What an SM's matrix units multiply per clock where no cap holds them: as the file says or its rates imply. */
double ft__spec_uncapped_fma(const ft_spec *spec);
const char *ft__spec_key(ft_spec_number n);
const char *ft__spec_unit(ft_spec_number n);
/* "gpu.json: sms" or "gpu.sms", as the readers of base write it. */
const char *ft__spec_path(char path[256], const char *where, const char *key);

/* -- extend.c -- */

/* Fills what `spec` does not give from `base`, which it extends; what follows from another clock or SM count follows.
 */
void ft__spec_extend(ft_spec *spec, const ft_spec *base, ft_text *warnings);
/* The same for a spec without base, from the catalogue's closest relative of its generation; `kin` may be NULL when
 * the generation is unknown. Every figure filled in is named in `warnings`. */
ft_status ft__spec_complete(ft_spec *spec, const char *where, const ft_spec *kin, ft_text *warnings, ft_error *err);

/* -- traits.c -- */

/* Reads the traits of the object itself, or those of its link. */
ft_status ft__spec_read_traits(const json_t *object, const char *where, bool link, ft_spec *out, ft_error *err);
/* Over a base: its traits, unless what they stand on was given anew (another link, another year's servers). */
void ft__spec_extend_traits(ft_spec *spec, const ft_spec *base);
/* Without a base: those of the closest relative, which belong to the multiprocessor and say nothing that the generation
 * does not say already; without one (`kin` NULL) what the figures and the vendor tell, which is a guess and said. */
void ft__spec_complete_traits(ft_spec *spec, const ft_spec *kin, ft_text *warnings);
/* Of a generation nobody knows, but with a compute capability that somebody has: that one's chip. */
void ft__spec_lend_traits(ft_spec *spec, const ft_spec *same_capability, ft_text *warnings);

/* -- generation.c -- */

/* Fills generation, compute capability and vendor from one another and from the architecture's name. Returns the
 * catalogue name of the closest relative, NULL when the generation is unknown. */
const char *ft__spec_kin(ft_spec *spec, ft_text *warnings);
/* The catalogue name of the GPU that stands for a compute capability, NULL when it is unknown. */
const char *ft__capability_kin(const char *capability);
/* Rate of a format in the matrix units over that of fp16; 0 where nothing is known. */
double ft__matrix_factor(const ft_spec *spec, ft_dtype d);
/* GB/s per direction that a GPU has over a kind of link ("nvlink4", "pcie5"), 0 when unknown. */
double ft__link_rate(const char *kind);

/* -- check.c -- */

/* Figures that cannot be are errors; figures that contradict each other are warnings. */
ft_status ft__spec_check(const ft_spec *spec, const char *where, ft_text *warnings, ft_error *err);

/* -- catalogue.c -- */

ft_status ft__catalogue_spec(const char *name, ft_spec *out, ft_error *err);
bool ft__is_path(const char *name_or_path);

/* Copies what fits of a name that came from outside, never half a character: it may end up in an answer. */
const char *ft__spec_cut(char *out, size_t room, const char *text);

/* Adds a line to the warnings unless they are dropped. */
void ft__warn(ft_text *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));
#endif
