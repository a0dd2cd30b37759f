/* bound.c: what a kernel is bound by, in the words of the roofline that is shown beside it.
 *
 * The physics of a family knows two times inside a kernel's body and forecasts by the larger. That is not always what a
 * reader calls its bound: a tile of 64 rows with one row in it, or a path for odd alignments, makes "arithmetic" of a
 * product that does nothing but stream its weights, and in a kernel of a few microseconds both times may be waiting. So
 * the verdict is settled by the roofline's own two sides:
 *   - below the machine balance, and moving its bytes takes at least half of the time beyond the launch: memory. (For
 *     kernels on the vector units it need not be half: there is no path for products that could be the slower one.)
 *   - short, and neither side is half of it: latency, which is overhead;
 *   - else what the physics says.
 * Forecasts do not depend on it: what fusion and power do to a kernel follows the physics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/expert_constants.h"
#include "kernel/kernel.h"

typedef struct sides {
    double memory, arithmetic, body; /* ms */
} sides;

static sides sides_of(const ft_device *device, const ft_op *op, const ft_forecast *f)
{
    return (sides){.memory = f->bytes / (device->memory_gbps * 1e6),
                   .arithmetic = f->flops / (ft__arithmetic_tflops(device, op) * 1e9),
                   .body = fmax(f->ms - f->launch_ms, 1e-9)};
}

static bool multiplies(const ft_op *op)
{
    return op->kind == FT_OP_GEMM || op->kind == FT_OP_ATTENTION || op->kind == FT_OP_MLA || op->kind == FT_OP_CONV2D ||
           op->kind == FT_OP_MOE;
}

bool ft__memory_holds(const ft_device *device, const ft_op *op, const ft_forecast *f)
{
    sides s = sides_of(device, op, f);
    return s.memory > s.arithmetic && (!multiplies(op) || s.memory >= FT_K_EXPERT_MEMORY_HOLDS * s.body);
}

static bool waits(const ft_device *device, const ft_op *op, const ft_forecast *f)
{
    sides s = sides_of(device, op, f);
    double roof = fmax(s.memory, s.arithmetic);
    /* Above the balance a few tiles on a few SMs are arithmetic, if not much of it. */
    double least = s.memory > s.arithmetic ? FT_K_EXPERT_MEMORY_HOLDS : FT_K_EXPERT_SHORT_ARITHMETIC;
    return s.body < FT_K_EXPERT_SHORT_MS && roof < least * s.body;
}

void ft__settle_bound(const ft_device *device, const ft_op *op, ft_forecast *f)
{
    if (op->kind == FT_OP_COLLECTIVE) return;
    if (f->bound == FT_BOUND_COMPUTE || f->bound == FT_BOUND_MEMORY) {
        if (waits(device, op, f))
            f->bound = FT_BOUND_OVERHEAD;
        else if (ft__memory_holds(device, op, f))
            f->bound = FT_BOUND_MEMORY;
    }
    if (f->bytes <= f->ms * device->memory_gbps * 1e6) return;
    size_t said = strlen(f->note);
    snprintf(f->note + said, sizeof f->note - said, "%sfaster than device memory: partly from the L2 cache",
             said ? "; " : "");
}
