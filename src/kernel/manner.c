/* manner.c: what the manner of a kernel does to its time. All of it was measured on one GPU, beside the family's own
 * kernel of the same sizes (data/constants/kernel/manner.json), and is taken to be the same share on others. */
#include "kernel/manner.h"

#include <math.h>

#include "kernel/conv_layer.h"
#include "kernel/gemm_tiles.h"
#include "kernel/kernel.h"
#include "kernel/manner_constants.h"

/* Routing is uneven and every group's last tile of rows part empty. */
static double uneven(double each)
{
    return fmin(FT_K_MANNER_UNEVEN_MOST, FT_K_MANNER_UNEVEN_LEAST + FT_K_MANNER_UNEVEN_ROWS / each);
}

/* What a mask adds with so many keys: starts and ends of tiles, and the passes beside them, are as without. */
static double of_keys(double most, double half, const ft_op *op)
{
    double keys = (double)op->u.attention.kv_len;
    return 1 + (most - 1) * keys / (keys + half);
}

/* Heads wider than a tile of 128 leave less room for the mask's own tile. Rows of an odd number of keys begin at odd
 * addresses: cuDNN reads them one by one, others are given a copy with longer rows. */
static double of_mask(const ft_device *device, unsigned manner, const ft_op *op)
{
    enum { TILE = 128 };
    bool wide = op->u.attention.head_dim > TILE, keys = manner & FT_MANNER_MASK_OF_KEYS;
    bool forward = op->pass == FT_PASS_FWD, odd = op->u.attention.kv_len % 2 && device->vendor == FT_VENDOR_NVIDIA;
    unsigned added = FT_MANNER_MASK_ADDED | FT_MANNER_MASK_OF_KEYS;
    if (!(manner & (forward ? added : added | FT_MANNER_MASK))) return 1;
    if (op->u.attention.library == FT_LIBRARY_XFORMERS)
        return forward ? FT_K_MANNER_EFFICIENT_FORWARD : FT_K_MANNER_EFFICIENT_BACKWARD;
    if (!forward)
        return keys ? of_keys(FT_K_MANNER_KEYS_BACKWARD, FT_K_MANNER_BACK_HALF, op)
                    : of_keys(FT_K_MANNER_MASK_BACKWARD, FT_K_MANNER_BACK_HALF, op) *
                          (wide ? FT_K_MANNER_MASK_WIDE_BACKWARD : 1);
    double every = of_keys(FT_K_MANNER_MASK_FORWARD, FT_K_MANNER_FORWARD_HALF, op);
    double effort = keys ? FT_K_MANNER_KEYS_FORWARD : every * (wide ? FT_K_MANNER_MASK_WIDE_FORWARD : 1);
    return effort * (odd ? FT_K_MANNER_MASK_ODD : 1);
}

/* Dropout is drawn once more going back, beside more than twice as many products. */
static double of_attention(const ft_device *device, unsigned manner, const ft_op *op)
{
    double drawn = op->pass == FT_PASS_FWD ? FT_K_MANNER_DROPOUT_FORWARD : FT_K_MANNER_DROPOUT_BACKWARD;
    return of_mask(device, manner, op) * (manner & FT_MANNER_DROPOUT ? drawn : 1);
}

double ft__manner_effort(const ft_device *device, unsigned manner, double each, const ft_op *op)
{
    static const struct {
        ft_manner manner;
        double effort;
    } list[] = {
        {FT_MANNER_VECTOR, FT_K_MANNER_VECTOR},
        {FT_MANNER_VECTOR_ACROSS, FT_K_MANNER_VECTOR_ACROSS},
        {FT_MANNER_ODD_ROWS, FT_K_MANNER_ODD_ROWS},
        {FT_MANNER_SELECT, FT_K_MANNER_SELECT},
        {FT_MANNER_ACROSS, FT_K_MANNER_ACROSS},
        {FT_MANNER_ONE_OVER, FT_K_MANNER_ONE_OVER},
        {FT_MANNER_JOIN_UNLIKE, FT_K_MANNER_JOIN_UNLIKE},
        {FT_MANNER_JOIN_ODD, FT_K_MANNER_JOIN_ODD},
        {FT_MANNER_INDEX_ADD, FT_K_MANNER_INDEX_ADD},
        {FT_MANNER_STREAM, FT_K_MANNER_STREAM},
        {FT_MANNER_GATED, FT_K_MANNER_GATED},
    };
    if (!manner) return 1;
    if (op->kind == FT_OP_ATTENTION) return of_attention(device, manner, op);
    double effort = 1;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (manner & (unsigned)list[i].manner) effort *= list[i].effort;
    if (manner & FT_MANNER_UNEVEN) effort *= uneven(each);
    return effort;
}

bool ft__manner_joined(unsigned manner, double each, const ft_op *op, ft_op *out)
{
    if (!(manner & FT_MANNER_GROUPED) || op->kind != FT_OP_GEMM || op->u.gemm.b < 2) return false;
    *out = *op;
    out->u.gemm.b = 1;
    out->name = "linear";
    if ((double)op->u.gemm.k == each && (double)op->u.gemm.m != each) /* of weights' gradients the rows are summed */
        out->u.gemm.k *= op->u.gemm.b;
    else
        out->u.gemm.m *= op->u.gemm.b;
    return true;
}

/* A convolution that adds what stands beside its result reads as much as it writes. */
static void add_picture(const ft_device *device, const ft_op *op, ft_forecast *f)
{
    f->bytes += ft__conv_layer(op).y;
    const double moved = f->bytes / (FT_K_MANNER_ADDS_SHARE * device->memory_gbps * 1e6);
    const double ms = f->launch_ms + ft__smooth_max(f->ms - f->launch_ms, moved, FT_K_MANNER_ADDS_SMOOTH);
    f->roofline_ms = fmax(f->roofline_ms, f->bytes / (device->memory_gbps * 1e6));
    ft__forecast_scale(f, ms / f->ms);
}

void ft__manner_adds(const ft_device *device, unsigned manner, const ft_op *op, ft_forecast *f)
{
    if (!(manner & FT_MANNER_ADDS) || !(f->ms > f->launch_ms)) return;
    if (op->kind == FT_OP_CONV2D) add_picture(device, op, f);
    if (op->kind != FT_OP_GEMM) return;
    double result = (double)op->u.gemm.b * (double)op->u.gemm.m * (double)op->u.gemm.n * ft_dtype_bytes(op->dtype);
    double moved = 2 * result / (FT_K_MANNER_ADDS_SHARE * device->memory_gbps * 1e6);
    double ms = f->launch_ms + ft__smooth_max(f->ms - f->launch_ms, moved, FT_K_MANNER_ADDS_SMOOTH);
    f->bytes += result;
    f->roofline_ms = fmax(f->roofline_ms, f->bytes / (device->memory_gbps * 1e6));
    ft__forecast_scale(f, ms / f->ms);
}

double ft__manner_traffic(unsigned manner)
{
    return manner & FT_MANNER_MASK          ? FT_K_MANNER_MASK_TRAFFIC
           : manner & FT_MANNER_CAUSAL_CONV ? FT_K_MANNER_CAUSAL_CONV_TRAFFIC
                                            : 1;
}

double ft__manner_width(unsigned manner) { return manner & FT_MANNER_STREAM ? FT_K_MANNER_STREAM_WIDTH : 0; }
