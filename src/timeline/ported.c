/* ported.c: Transformer Engine as AMD first carried it over from NVIDIA's GPUs (a stack's ported_engine), on its units.
 *
 * Four things were below par, all read in the software of the time (data/constants/timeline/ported.json):
 *
 *   casts        NVIDIA's kernels that cast a matrix and write it once more, turned, reach a tenth of the bandwidth:
 *                the pace is one of lines of 128 bytes, by CUs and clock
 *   widths       32 threads read a row of a tile, up to 8 bytes each as far as that divides a row: tiles of narrower
 *                loads fill fewer of each line, and those that undo GELU on the way never load more than 4
 *   conversions  were instructions one by one on gfx942: the units' own were compiled for gfx940 alone
 *   gradients    products of the two 8-bit formats had next to no kernels in the library
 *
 * A forward operand comes cast from the norm or the activation before, and is turned alone; attention's result is cast
 * and turned at once, as gradients are, for both of their products, and weights with every pass. Conversions add to
 * casts, which wait for little else; in norms and activations they show as far as they outlast the bytes.
 *
 * Leaves out: what else norms and activations of the same origin lose, for which nobody published a figure; attention,
 * which is a library's (kernel/attention_library.c). */
#include "timeline/ported.h"

#include <math.h>
#include <string.h>

#include "device/traits.h"
#include "model/stack.h"
#include "timeline/ported_constants.h"

enum { LINE = 128, THREADS = 32 }; /* bytes of a line of the cache; threads along a tile's row */

static bool on_its_units(const ft_device *device, const ft_workload *work)
{
    return work->task == FT_TRAIN && device->matrix_issue == FT_ISSUE_MFMA && ft__stack(work)->ported_engine;
}

bool ft__ported(const ft_device *device, const ft_workload *work, const ft_node *n)
{
    return on_its_units(device, work) && n->op.kind == FT_OP_GEMM && ft_dtype_bytes(n->op.dtype) < 2 &&
           n->op.u.gemm.quantized == 0;
}

/* Elements of `size` bytes that a row of a tile has: as many as divide `width`, a thread loading `most` bytes. */
static double tile_row(double width, double size, double most)
{
    double load = most;
    while (load > size && fmod(width, THREADS * load / size) != 0) load /= 2;
    return THREADS * load / size;
}

/* Lines that an element takes where rows of a tile have so many of them, of `size` bytes each. */
static double of_line(double row, double size) { return size / fmin(LINE, row * size); }

/* ms of a matrix whose elements take so many lines each. */
static double lines_ms(const ft_device *device, double elements, double lines)
{
    return elements * lines * LINE / (FT_K_PORTED_CAST_BYTES * device->sms * ft__running_mhz(device) * 1e3);
}

/* A matrix of e bytes an element read and written turned: rows of the turned one are whole lines. */
static double turned_ms(const ft_device *device, double elements, double width, double e)
{
    return lines_ms(device, elements, of_line(tile_row(width, e, FT_K_PORTED_LOAD_BYTES), e) + e / LINE);
}

/* 16 bits read, `reads` times over, and e bytes written twice, once turned. */
static double cast_ms(const ft_device *device, double elements, double width, double e, int reads, double most)
{
    double row = tile_row(width, 2, most);
    return lines_ms(device, elements, reads * of_line(row, 2) + of_line(row, e) + e / LINE);
}

static double converted_ms(const ft_device *device, double elements)
{
    return elements * FT_K_PORTED_CAST_INSTRUCTIONS /
           ((double)device->issue_lanes_per_sm * device->sms * ft__running_mhz(device) * 1e3);
}

/* In a kernel that reads and writes two bytes an element beside. */
static double shown_ms(const ft_device *device, double elements)
{
    return fmax(converted_ms(device, elements) - 4 * elements / (device->memory_gbps * 1e6), 0);
}

void ft__apply_ported(const ft_device *device, const ft_node *n, ft_forecast *f)
{
    const bool back = n->phase == FT_BACKWARD, plain = n->at && n->at->site == FT_SITE_ATTN_O_PROJ;
    const double e = ft_dtype_bytes(n->op.dtype), width = (double)n->op.u.gemm.k;
    if (back) ft__forecast_scale(f, 1 / FT_K_PORTED_GRADIENT_SHARE);
    if (n->cast) return; /* by the product before, of the same gradient */
    double elements = (double)n->op.u.gemm.b * (double)n->op.u.gemm.m * width, bytes, ms;
    if (back || plain) {
        bytes = elements * (2 + 2 * e);
        ms = cast_ms(device, elements, width, e, 1, FT_K_PORTED_LOAD_BYTES) + converted_ms(device, elements);
    } else {
        bytes = elements * 2 * e;
        ms = turned_ms(device, elements, width, e) + shown_ms(device, elements);
    }
    if (!back) {
        double weights = (double)n->op.u.gemm.b * (double)n->op.u.gemm.n * width;
        bytes += weights * (2 + 2 * e);
        ms += cast_ms(device, weights, width, e, 1, FT_K_PORTED_LOAD_BYTES) + converted_ms(device, weights);
    }
    ft__forecast_add(f, bytes, ms);
}

bool ft__ported_undoes(const ft_device *device, const ft_workload *work, const ft_node *n)
{
    return on_its_units(device, work) && n->phase == FT_BACKWARD && ft_dtype_bytes(work->dtype) < 2 && n->at &&
           n->at->site == FT_SITE_MLP_ACT && n->op.kind == FT_OP_ELEMENTWISE &&
           strcmp(n->op.name, "gelu_backward") == 0;
}

/* One kernel undoes GELU, casts and turns; the cast that the product behind it counts is left to that. */
void ft__apply_ported_undoing(const ft_device *device, const ft_workload *work, const ft_node *n, int64_t width,
                              ft_forecast *f)
{
    double elements = (double)n->op.u.elementwise.numel, e = ft_dtype_bytes(work->dtype);
    double whole = cast_ms(device, elements, (double)width, e, 2, FT_K_PORTED_UNDOING_BYTES),
           cast = cast_ms(device, elements, (double)width, e, 1, FT_K_PORTED_LOAD_BYTES);
    if (f->ms > 0 && whole > cast) ft__forecast_scale(f, (f->launch_ms + whole - cast) / f->ms);
}

double ft__ported_sooner(const ft_workload *work)
{
    return !work->stack && ft__stack(work)->ported_engine ? FT_K_PORTED_SOONER : 0;
}
