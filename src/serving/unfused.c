/* unfused.c: attention of engines older than kernels that do all of it on matrix units.
 *
 * Prompts were two batched products with a softmax between them, and copies into and out of the heads' own layout. A
 * decoding query head walked the keys by itself on vector units (masked multi-head attention); heads of a group shared
 * them through L2 alone, but for one size of group that a kernel was compiled for. */
#include "device/traits.h"
#include "graph/operator.h"
#include "kernel/energy.h"
#include "serving/kernels.h"
#include "serving/step_constants.h"

static bool walks(const ft_served *m, const ft_op *op)
{
    double group = (double)op->u.attention.heads / (double)op->u.attention.kv_heads;
    bool tiled = group == m->engine->shared_group && op->u.attention.head_dim == FT_K_STEP_WALK_TILE;
    return m->engine->walks_heads && op->u.attention.q_len == 1 && !tiled;
}

/* Vector units take elements one by one; the cache comes once from memory, as a bare kernel reads it, and for the other
 * heads of the group from L2. The slower of the two decides. */
static ft_status walk(ft_pricer *p, ft_op *op, ft_priced *sum, ft_error *err)
{
    const ft_device *d = p->m->device;
    double elements = (double)(op->u.attention.batch * op->u.attention.heads) * (double)op->u.attention.kv_len *
                      (double)(op->u.attention.head_dim + op->u.attention.v_dim);
    double at_pace = elements / (FT_K_STEP_WALK_ELEMENTS * d->sms * ft__running_mhz(d) * 1e3), before = sum->ms;
    op->engine = FT_ENGINE_BARE;
    FT_TRY(ft__price_op(p, op, sum, err));
    double more = at_pace - (sum->ms - before);
    if (more <= 0) return FT_OK;
    sum->ms += more;
    sum->joules += ft__kernel_joules(d, op, 0, 0, more, 0);
    return FT_OK;
}

static ft_status product(ft_pricer *p, const ft_op *of, int64_t n, int64_t k, ft_priced *sum, ft_error *err)
{
    ft_op op;
    ft__op_init("bmm", &op);
    op.dtype = op.kv_dtype = of->dtype;
    op.u.gemm.b = of->u.attention.batch * of->u.attention.heads, op.u.gemm.m = of->u.attention.q_len;
    op.u.gemm.n = n, op.u.gemm.k = k;
    return ft__price_op(p, &op, sum, err);
}

/* Bytes: scores leave a product in fp32 (two bytes more than it counts), are read so and written in 16 bits; queries,
 * keys and values are turned, keys and values copied to the cache, and what the heads found is turned back. */
static ft_status write_out(ft_pricer *p, const ft_op *op, ft_priced *sum, ft_error *err)
{
    int64_t keys = op->u.attention.kv_len, dim = op->u.attention.head_dim;
    double heads = (double)(op->u.attention.batch * op->u.attention.heads),
           rows = heads * (double)op->u.attention.q_len;
    FT_TRY(product(p, op, keys, dim, sum, err));
    FT_TRY(product(p, op, dim, keys, sum, err));
    ft__price_pass(p, 1, 8 * rows * (double)keys, sum);
    ft__price_pass(p, 1, 12 * rows * (double)dim, sum);
    ft__price_pass(p, 1, 8 * rows * (double)dim, sum);
    ft__price_pass(p, 1, 4 * rows * (double)dim, sum);
    return FT_OK;
}

bool ft__narrows_attended(const ft_served *m)
{
    return m->engine->narrows_attended && !m->latent && ft_dtype_bytes(m->out_dtype) < 2;
}

ft_status ft__price_attention(ft_pricer *p, ft_op *op, ft_priced *sum, ft_error *err)
{
    if (walks(p->m, op)) return walk(p, op, sum, err);
    if (p->m->engine->writes_out && op->u.attention.q_len > 1) return write_out(p, op, sum, err);
    return ft__price_op(p, op, sum, err);
}

/* Latent attention's sums were measured with what its engines fuse into them. */
bool ft__sums_norm(const ft_served *m) { return m->tp > 1 && m->engine->fused_sums; }

double ft__head_norms(const ft_served *m)
{
    return !m->latent && m->arch->qk_norm != FT_NO_QK_NORM ? m->engine->head_norms : 0;
}
