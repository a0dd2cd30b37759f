/* The predictor is data: constants and trees, one versioned file, read in place from a mapping.
 *
 * It holds experts. An expert belongs to (family, variant, GPU): constants fitted to that GPU's rows, trees for what
 * the constants leave, and the spread of its held-out errors. The expert of GPU "*" is the world: one set of constants
 * for all GPUs. Forecasting on a GPU nobody measured walks up this ladder of kinship:
 *     the GPU's own expert -> a sibling's of its generation -> the world's, with the learned part turned down. */
#ifndef FT_KERNEL_PREDICTOR_H
#define FT_KERNEL_PREDICTOR_H
#include <stdint.h>

#include "base/error.h"
#include "kernel/family.h"
#include "kernel/forest.h"

enum { FT_PREDICTOR_VERSION = 2, FT_QUANTILES = 7 };
/* Shares of cases at which spreads are stored. */
extern const double ft__quantile_levels[FT_QUANTILES];

typedef enum ft_kinship { FT_KIN_SELF, FT_KIN_SIBLING, FT_KIN_WORLD, FT_KIN_LEVELS } ft_kinship;

/* Its low-precision GEMMs were measured on operands already quantised; otherwise quantising activations is inside. */
enum { FT_EXPERT_BARE_OPERANDS = 1 };
/* It has rows that are eager calls, the launch gap inside; rows that are device time. Neither, in older files: the
 * latter. */
enum { FT_EXPERT_EAGER = 2, FT_EXPERT_DEVICE = 4 };
/* In a calibration: its variant was not measured, only others of its family; it stands as close as the predictor's own
 * expert does, whose kinship the bits from FT_EXPERT_KIN_SHIFT on hold. */
enum { FT_EXPERT_INHERITED = 8, FT_EXPERT_KIN_SHIFT = 8 };
/* Its rows were taken with kernels that today's software no longer has: it answers for those. */
enum { FT_EXPERT_OLDER = 16 };

typedef struct ft_expert {
    char family[24], variant[24], gpu[48], generation[24];
    uint32_t rows;                     /* measurements it was fitted to */
    uint32_t flags;                    /* FT_EXPERT_* */
    uint32_t tree_count, tree_first;   /* correction, among the file's trees */
    uint32_t sigma_count, sigma_first; /* log of the local error scale */
    float sigma_base;                  /* log scale where the sigma trees add nothing */
    float weight[FT_KIN_LEVELS];       /* how much of the correction to apply, by kinship of the asker */
    float bias[FT_KIN_LEVELS];         /* log offset found in held-out errors */
    /* error / exp(sigma) at each quantile level below and above the forecast, by kinship */
    float spread_low[FT_KIN_LEVELS][FT_QUANTILES], spread_high[FT_KIN_LEVELS][FT_QUANTILES];
    float mape[FT_KIN_LEVELS]; /* held-out mean absolute error, as a fraction; <0: unknown */
    float balance;             /* the GPU's fp16 flops per byte of bandwidth: how alike siblings are */
    float feature_low[FT_MAX_FEATURES], feature_high[FT_MAX_FEATURES]; /* where its rows lay */
    double theta[FT_MAX_THETA];
} ft_expert;

/* How close an expert of a calibration stands to its GPU. */
static inline ft_kinship ft__expert_kinship(const ft_expert *e)
{
    uint32_t kin = e->flags >> FT_EXPERT_KIN_SHIFT;
    return !(e->flags & FT_EXPERT_INHERITED) ? FT_KIN_SELF : kin < FT_KIN_LEVELS ? (ft_kinship)kin : FT_KIN_WORLD;
}

typedef struct ft_predictor {
    enum { FT_PREDICT_LEARNED, FT_PREDICT_ROOFLINE, FT_PREDICT_LINEAR, FT_PREDICT_SCALING } mode;
    const ft_expert *experts;
    size_t expert_count;
    ft_forests trees;
    /* Where the experts of a cell stand, so that a forecast looks at a dozen records and not at all of them. */
    struct {
        uint32_t first, end;
    } cell[FT_MAX_FAMILIES][FT_MAX_VARIANTS];
    const char *meta; /* JSON: what it was fitted from, its errors */
    size_t meta_length;
    char scaling_from[64];                    /* FT_PREDICT_SCALING: the measured GPU */
    uint64_t identity;                        /* checksum of its file: what a calibration was made on */
    const struct ft_calibration *calibration; /* owned; NULL: none */
    const void *mapping;                      /* owned; NULL when embedded */
    size_t mapping_length;
} ft_predictor;

/* `which`: NULL for the one compiled in, a file, or "roofline", "linear", "scaling:GPU". */
ft_status ft__predictor_open(const char *which, ft_predictor **out, ft_error *err);
/* The same over the bytes of a predictor file in place of the one compiled in; `which` is then no file. The bytes
 * outlive the predictor and are aligned to 8. */
ft_status ft__predictor_open_bytes(const char *which, const void *data, size_t length, ft_predictor **out,
                                   ft_error *err);
void ft__predictor_close(ft_predictor *p);
/* Adds a calibration (kernel/calibration.h) from a file. It must have been made on this predictor, which owns it. */
ft_status ft__predictor_calibrate(ft_predictor *p, const char *path, ft_error *err);
/* From memory that outlives the predictor; checks magic, version, sizes, checksum and every index. */
ft_status ft__predictor_read(const void *data, size_t length, const char *where, ft_predictor *out, ft_error *err);
/* Fills `cell` from the experts; reading a file does it. */
void ft__predictor_index(ft_predictor *p);
/* The bytes of a predictor file; free(). */
ft_status ft__predictor_write(const ft_expert *experts, size_t expert_count, const ft_tree *trees, size_t tree_count,
                              const char *meta, void **out, size_t *length, ft_error *err);

/* The expert that answers for this device, and how close it stands; NULL when the predictor has none. */
const ft_expert *ft__predictor_expert(const ft_predictor *p, const ft_family *family, int variant,
                                      const ft_device *device, ft_kinship *kinship);
/* Constants of another variant that know this GPU better than this variant's own (ft_family.variant_lent); NULL: none.
 */
const double *ft__predictor_lent(const ft_predictor *p, const ft_family *family, int variant, const ft_device *device);

/* Peak fp16 rate over bandwidth, in flops per byte. */
double ft__device_balance(const ft_device *device);
/* How far beyond the rows an expert was fitted to, in widths of their range, summed over features; 0 inside. */
double ft__expert_stretch(const ft_expert *expert, const float *feature, int count);
#endif
