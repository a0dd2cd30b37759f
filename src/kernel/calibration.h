/* A calibration: what measurements of one GPU change in a predictor.
 *
 * One versioned file beside the predictor that it was made on, read in place from a mapping. It holds experts of one
 * GPU, whole: constants, trees (those of the predictor that still serve among them), and a Gaussian process on what
 * both leave. A predictor that carries a calibration answers for that GPU from it, and for every other as before. */
#ifndef FT_KERNEL_CALIBRATION_H
#define FT_KERNEL_CALIBRATION_H
#include "kernel/predictor.h"

enum { FT_CALIBRATION_VERSION = 1, FT_PROCESS_WIDTH = FT_MAX_FEATURES, FT_PROCESS_POINTS = 512, FT_PROCESS_LANES = 8 };

/* A Gaussian process over features: the sum over its points of weight / (1 + d^2 / 2), d the distance in scaled
 * features. Points stand in blocks of FT_PROCESS_LANES: for every feature the coordinates of the block, then its
 * weights, so that a block is computed side by side. The last block is filled up with points of weight 0. */
typedef struct ft_process {
    uint32_t blocks, width, first, pad; /* first: in the file's values */
    uint8_t feature[FT_PROCESS_WIDTH];
    float center[FT_PROCESS_WIDTH], scale[FT_PROCESS_WIDTH];
} ft_process;

static inline size_t ft__process_values(const ft_process *p)
{
    return (size_t)p->blocks * FT_PROCESS_LANES * ((size_t)p->width + 1);
}
double ft__process_mean(const ft_process *process, const float *values, const float *feature);

typedef struct ft_calibrated {
    ft_expert expert; /* its trees are the calibration's; those of an inherited one, the predictor's */
    ft_process process;
} ft_calibrated;
static inline bool ft__inherited(const ft_calibrated *c) { return c->expert.flags & FT_EXPERT_INHERITED; }

/* What a file holds: written from there, read in place. */
typedef struct ft_calibration_records {
    uint64_t base; /* identity of the predictor it was made on */
    const ft_calibrated *experts;
    size_t expert_count;
    const ft_tree *trees;
    size_t tree_count;
    const float *values;
    size_t value_count;
    const char *meta; /* JSON: the machine, the points, errors before and after */
    size_t meta_length;
} ft_calibration_records;

typedef struct ft_calibration {
    ft_calibration_records file;
    char gpu[48];
    int16_t cell[FT_MAX_FAMILIES][FT_MAX_VARIANTS]; /* its expert, -1: none */
    const void *mapping;
    size_t mapping_length;
} ft_calibration;

/* Checks magic, version, sizes, checksum and every index. The memory outlives the calibration. */
ft_status ft__calibration_read(const void *data, size_t length, const char *where, ft_calibration *out, ft_error *err);

/* The bytes of a calibration file; free(). */
ft_status ft__calibration_write(const ft_calibration_records *r, void **out, size_t *length, ft_error *err);

void ft__calibration_close(const ft_calibration *c);

/* The calibrated record of a variant on this device, or NULL. */
const ft_calibrated *ft__calibrated(const ft_predictor *p, int family, int variant, const ft_device *device);
/* The record that `expert` is part of; NULL when it is the predictor's own. */
const ft_calibrated *ft__calibrated_of(const ft_predictor *p, const ft_expert *expert);
#endif
