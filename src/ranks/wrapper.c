/* wrapper.c: what keeping replicas together costs the host beyond the exchanges themselves. */
#include "ranks/wrapper.h"

#include <math.h>

#include "kernel/host.h"
#include "timeline/stream.h"

/* Parameter tensors of one iteration of a block. */
static double tensors_of(const ft_stage *s, int32_t block)
{
    double count = 0;
    for (int32_t i = 0; i < s->parameter_count; i++) count += s->g->tensors[s->parameters[i]].block == block;
    return count;
}

/* Whose hooks there are. */
typedef struct hooks {
    ft_wrapper wrapper;
    double between; /* how far they are from FSDP's to DeepSpeed's */
} hooks;

/* false: none. DeepSpeed's fetch what a module needs and let it go again, also where one rank has it all, and once more
 * when a layer runs again. */
static bool hooks_of(const ft_ranks *r, hooks *out)
{
    const ft_parallel *p = r->parallel;
    bool modules = p->zero >= 3 && ft__ranks_stack(p, r->work)->module_hooks;
    if (r->work->task != FT_TRAIN || (p->dp * p->cp < 2 && !modules)) return false;
    if (ft__ranks_by_parameter(p, r->work)) return false; /* its hooks are counted with its gathers */
    out->wrapper = modules ? FT_WRAPPER_MODULES : ft__ranks_fsdp(p, r->work) ? FT_WRAPPER_UNITS : FT_WRAPPER_COPIES;
    out->between = out->wrapper == FT_WRAPPER_UNITS && p->zero >= 3 ? ft__ranks_stack(p, r->work)->hooks_between : 0;
    return true;
}

static double hooks_us(const hooks *h, const ft_issuer *host, ft_phase phase, double tensors)
{
    double us = ft__host_wrapper_us(host, h->wrapper, phase, tensors);
    return us + h->between * (ft__host_wrapper_us(host, FT_WRAPPER_MODULES, phase, tensors) - us);
}

/* Parameters whose gradients one iteration of a block makes. */
static double gradients_of(const ft_ranks *r, const ft_stage *s, int32_t block)
{
    double count = 0;
    const int64_t experts = ft__ranks_model(r->arch, r->work).experts;
    const double each = r->parallel->ep > 0 ? fmax(1, (double)experts / (double)r->parallel->ep) : 1;
    const bool apart = ft__ranks_stack(r->parallel, r->work)->separate_experts;
    for (int32_t i = 0; i < s->parameter_count; i++) {
        const ft_tensor *t = &s->g->tensors[s->parameters[i]];
        if (t->block != block) continue;
        count += apart && t->expert == FT_EXPERT_WEIGHT ? each : 1;
    }
    return count;
}

/* Megatron's DistributedDataParallel: a hook in Python behind every parameter's gradient, which does nothing but look
 * until the last micro-batch. */
static ft_status gradient_hooks(const ft_ranks *r, ft_stage *s, ft_wrapped *out, const ft_issuer *host, ft_error *err)
{
    const ft_graph *g = s->g;
    if (r->work->task != FT_TRAIN || ft__graphed(r->work) & 1u << FT_GRAPHED_FULL_ITERATION) return FT_OK;
    double *entry = ft__arena_array(r->arena, (size_t)g->block_count + 1, sizeof *entry);
    if (!entry) return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        const bool back = block->mirror >= 0 && block->phase == FT_BACKWARD;
        const double ms =
            back ? ft__host_hooks_us(host, gradients_of(r, s, block->mirror)) * 1e-3 * s->step.pace->slowest : 0;
        entry[b] = s->step.pace->entry[b] + ms;
        s->step.host_ms += ms * (double)block->repeat;
    }
    out->entry = entry;
    return FT_OK;
}

ft_status ft__ranks_wrapped(const ft_ranks *r, ft_stage *s, ft_wrapped *out, ft_error *err)
{
    const ft_graph *g = s->g;
    const ft_pace *pace = s->step.pace;
    const ft_issuer host = ft__step_host(r->work, r->device);
    hooks h = {.wrapper = FT_WRAPPER_COPIES};
    out->entry = pace->entry;
    for (int i = 0; i < FT_PHASE_COUNT; i++) out->pass[i] = pace->pass[i];
    if (ft__ranks_stack(r->parallel, r->work)->gradient_hooks) return gradient_hooks(r, s, out, &host, err);
    if (!hooks_of(r, &h)) return FT_OK;
    /* DDP's copies are made with the last micro-batch (no_sync before it): each gets its share. */
    const bool copies = h.wrapper == FT_WRAPPER_COPIES;
    const double share = copies && r->work->accumulate > 1 ? 1 / (double)r->work->accumulate : 1;
    const bool again = r->work->recompute == FT_RECOMPUTE_FULL;
    double *entry = ft__arena_array(r->arena, (size_t)g->block_count + 1, sizeof *entry), all = 0;
    if (!entry) return ft__fail(err, FT_E_MEMORY, "out of memory for a stage's streams");
    for (int32_t b = 0; b < g->block_count; b++) {
        const ft_block *block = &g->blocks[b];
        bool back = block->mirror >= 0;
        double tensors = tensors_of(s, back ? block->mirror : b);
        double us = hooks_us(&h, &host, back ? FT_BACKWARD : FT_FORWARD, tensors);
        if (back && again) us += hooks_us(&h, &host, FT_RECOMPUTE, tensors);
        double ms = us * share * 1e-3 * pace->slowest;
        entry[b] = pace->entry[b] + ms;
        s->step.host_ms += ms * (double)block->repeat;
        if (!back) all += tensors * (double)block->repeat;
    }
    double update = hooks_us(&h, &host, FT_UPDATE, all) * 1e-3 * pace->slowest;
    out->entry = entry;
    out->pass[FT_UPDATE] += update;
    s->step.host_ms += update;
    s->step.update_pass_ms += update;
    return FT_OK;
}
