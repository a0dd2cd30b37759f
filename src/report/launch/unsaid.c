/* unsaid.c: what a request says and a launch file has no word for.
 *
 * A plan is forecast with everything that the request says: its optimizer, its loss, how gradients travel. A file that
 * left some of it out in silence would start another run than the one that was forecast. So every key that changes a
 * step's time or memory has a row here with the files that have a setting for it. Where a file has none, it says so
 * in its first line, where it can have remarks, and the answer warns of it. The names of settings stand in the writers,
 * with the sources that they were read in. */
#include "report/launch/unsaid.h"

#include <string.h>

#include "ranks/ranks.h"
#include "request/keys.h"

enum {
    MEGATRON = 1 << 0,
    BRIDGE = 1 << 1,
    NEMO = 1 << 2,
    TITAN = 1 << 3,
    DEEPSPEED = 1 << 4,
    ACCELERATE = 1 << 5,
    CORE = MEGATRON | BRIDGE | NEMO /* Megatron-Core's settings by three names */
};
static const struct {
    const char *name;
    unsigned bit;
} files[] = {{"megatron", MEGATRON}, {"bridge", BRIDGE},       {"nemo", NEMO},
             {"torchtitan", TITAN},  {"deepspeed", DEEPSPEED}, {"accelerate", ACCELERATE}};

static const ft_workload *work(const ft_launch *l) { return &l->search->request.work; }

/* -- what depends on the value ------------------------------------------------------------------- */

static unsigned optimizers(const ft_launch *l)
{
    switch (work(l)->optimizer) {
    case FT_ADAMW: return CORE | TITAN;
    case FT_ADAMW_FOREACH:
    case FT_ADAMW_LOOP: return TITAN;
    case FT_SGD:
    case FT_SGD_MOMENTUM: return CORE;
    case FT_MUON: return MEGATRON;
    case FT_ADAMW_8BIT:
    case FT_ADAFACTOR:
    case FT_LAMB:
    case FT_BERT_ADAM:
    case FT_NO_OPTIMIZER:
    case FT_OPTIMIZER_COUNT: break;
    }
    return 0;
}

static unsigned losses(const ft_launch *l) { return work(l)->loss == FT_ENTROPY_FUSED ? CORE : 0; }

static unsigned formats(const ft_launch *l)
{
    const bool amp = work(l)->autocast;
    switch (work(l)->dtype) {
    case FT_BF16: return CORE | TITAN | DEEPSPEED | ACCELERATE;
    case FT_FP16: return CORE | DEEPSPEED | ACCELERATE;
    case FT_FP8: return CORE | TITAN | ACCELERATE;
    case FT_FP4: return MEGATRON | BRIDGE;
    case FT_FP32:
    case FT_TF32: return CORE | TITAN | DEEPSPEED | ACCELERATE;
    default: return amp ? ACCELERATE : 0;
    }
}

static unsigned kernels(const ft_launch *l)
{
    switch (work(l)->attention) {
    case FT_FLASH:
    case FT_FLASH1:
    case FT_FLASH2:
    case FT_FLASH3:
    case FT_CUDNN:
    case FT_EAGER: return MEGATRON;
    case FT_SDPA: return TITAN | DEEPSPEED | ACCELERATE; /* what a program of PyTorch calls by itself */
    case FT_XFORMERS:
    case FT_TRITON:
    case FT_ATTENTION_KINDS: break;
    }
    return 0;
}

static unsigned executions(const ft_launch *l)
{
    const ft_execution how = work(l)->execution;
    if (how == FT_RUN_FUSED) return CORE;
    if (how == FT_RUN_COMPILE) return TITAN;
    return how == FT_RUN_EAGER ? TITAN | DEEPSPEED | ACCELERATE : 0;
}

static unsigned offloads(const ft_launch *l)
{
    static const unsigned by[FT_OFFLOAD_COUNT] = {
        [FT_OFFLOAD_OPTIMIZER] = CORE | DEEPSPEED,
        [FT_OFFLOAD_OPTIMIZER_NVME] = DEEPSPEED,
        [FT_OFFLOAD_ACTIVATIONS] = CORE,
        [FT_OFFLOAD_PARAMETERS] = TITAN | DEEPSPEED | ACCELERATE,
    };
    unsigned all = ~0u;
    for (int i = 0; i < FT_OFFLOAD_COUNT; i++)
        if (l->plan->layout.offload & 1u << i) all &= by[i];
    return all;
}

static unsigned contexts(const ft_launch *l)
{
    const ft_parallel *p = &l->plan->layout.parallel;
    return p->cp < 2 ? ~0u : p->context == FT_CONTEXT_PYTORCH ? TITAN : CORE;
}

static unsigned wires(const ft_launch *l)
{
    const double bytes = l->plan->layout.parallel.reduce_bytes;
    return bytes == 4 ? CORE | TITAN | DEEPSPEED : bytes == 2 ? MEGATRON | NEMO | DEEPSPEED : 0;
}

static unsigned targets(const ft_launch *l)
{
    ft_text ignored = {0};
    const bool named = ft__launch_targets(&ignored, l, "");
    ft__text_free(&ignored);
    return named ? BRIDGE | NEMO : 0;
}

static unsigned with_experts(const ft_launch *l) { return l->plan->layout.parallel.ep > 1 ? 0 : ~0u; }
static unsigned dispatches(const ft_launch *l) { return CORE | with_experts(l); }
static unsigned expert_overlaps(const ft_launch *l) { return MEGATRON | with_experts(l); }
static unsigned tensor_overlaps(const ft_launch *l)
{
    return MEGATRON | TITAN | (l->plan->layout.parallel.tp > 1 ? 0 : ~0u);
}
static unsigned sends(const ft_launch *l) { return MEGATRON | (l->plan->layout.parallel.vpp > 1 ? 0 : ~0u); }
static unsigned deals(const ft_launch *l) { return CORE | (l->plan->layout.parallel.pp > 1 ? 0 : ~0u); }
static unsigned shards(const ft_launch *l)
{
    return TITAN | ACCELERATE | (l->plan->layout.parallel.shard > 0 ? 0 : ~0u);
}
static unsigned overlaps(const ft_launch *l)
{
    const ft_parallel *p = &l->plan->layout.parallel;
    return p->no_overlap && p->dp * p->cp > 1 ? CORE | DEEPSPEED : ~0u;
}

/* -- every key ----------------------------------------------------------------------------------- */

static const struct {
    ft_key_id key;
    unsigned by;                              /* files that have a setting for it, whatever its value */
    unsigned (*of_value)(const ft_launch *l); /* those of this value; NULL: all alike */
    const char *what;
} rows[] = {
    {FT_KEY_ID_MODEL_DTYPE, 0, formats, "its number format"},
    {FT_KEY_ID_WEIGHTS_DTYPE, 0, NULL, "weights of fewer bits"},
    {FT_KEY_ID_ATTENTION, 0, kernels, "its attention kernel"},
    {FT_KEY_ID_EXECUTION, 0, executions, "how it is executed"},
    {FT_KEY_ID_COMPILE_SCOPE, 0, NULL, "what is compiled together"},
    {FT_KEY_ID_OPTIMIZER, 0, optimizers, "its optimizer"},
    {FT_KEY_ID_MOMENTS, MEGATRON | NEMO, NULL, "the format of its moments"},
    {FT_KEY_ID_CLIP_GRAD, CORE | TITAN | DEEPSPEED, NULL, "clipping of gradients"},
    {FT_KEY_ID_EMA, 0, NULL, "a moving average of the weights"},
    {FT_KEY_ID_IN_BACKWARD, TITAN, NULL, "updates within the backward pass"},
    {FT_KEY_ID_PACKING, 0, NULL, "lengths of the documents in a sequence"},
    {FT_KEY_ID_LOSS_POSITIONS, 0, NULL, "positions that the loss leaves out"},
    {FT_KEY_ID_LOSS, 0, losses, "its loss"},
    {FT_KEY_ID_RECOMPUTE_MODULES, CORE, NULL, "which modules run again"},
    {FT_KEY_ID_RECOMPUTE_LAYERS, CORE, NULL, "how many layers run again"},
    {FT_KEY_ID_REMAT, 0, NULL, "what a remat policy keeps"},
    {FT_KEY_ID_GRAPHED, CORE, NULL, "what is replayed from CUDA graphs"},
    {FT_KEY_ID_OFFLOAD, 0, offloads, "what is offloaded to the host"},
    {FT_KEY_ID_OFFLOAD_LAYERS, CORE, NULL, "how many layers' activations are offloaded"},
    {FT_KEY_ID_MTP, CORE, NULL, "modules that predict further tokens"},
    {FT_KEY_ID_LORA_RANK, BRIDGE | NEMO, NULL, "adapters"},
    {FT_KEY_ID_ADAPTER_RANK, BRIDGE | NEMO, NULL, "adapters"},
    {FT_KEY_ID_ADAPTER_TARGETS, 0, targets, "which layers have adapters"},
    {FT_KEY_ID_ADAPTER_DTYPE, 0, NULL, "the adapters' number format"},
    {FT_KEY_ID_ADAPTER_DROPOUT, BRIDGE | NEMO, NULL, "dropout in adapters"},
    {FT_KEY_ID_ADAPTER_EMBEDDINGS, 0, NULL, "embeddings that are trained with the adapters"},
    {FT_KEY_ID_ADAPTER_DORA, 0, NULL, "DoRA"},
    {FT_KEY_ID_TRAINER, 0, NULL, "what is trained towards"},
    {FT_KEY_ID_REFERENCE, 0, NULL, "a frozen copy of the model"},
    {FT_KEY_ID_OVERLAP, 0, overlaps, "gradients that are exchanged after the backward pass"},
    {FT_KEY_ID_TP_OVERLAP, 0, tensor_overlaps, "overlap of tensor-parallel exchanges with GEMMs"},
    {FT_KEY_ID_DEAL, 0, deals, "how layers are divided among stages"},
    {FT_KEY_ID_CP_KIND, 0, contexts, "how context ranks exchange keys"},
    {FT_KEY_ID_ULYSSES, 0, contexts, "how context ranks exchange keys"},
    {FT_KEY_ID_SHARD, 0, shards, "hybrid sharding"},
    {FT_KEY_ID_RESHARD, TITAN | ACCELERATE, NULL, "parameters that stay gathered"},
    {FT_KEY_ID_GATHER, 0, NULL, "gathers tensor by tensor"},
    {FT_KEY_ID_GATHER_OVERLAP, CORE, NULL, "gathers during the next forward pass"},
    {FT_KEY_ID_OVERLAP_P2P, 0, sends, "whether stages send beside their work"},
    {FT_KEY_ID_EXPERT_DISPATCH, 0, dispatches, "how tokens are sent to experts"},
    {FT_KEY_ID_EXPERT_OVERLAP, 0, expert_overlaps, "overlap of expert exchanges with another micro-batch"},
    {FT_KEY_ID_EXPERT_CAPACITY, CORE, NULL, "a capacity of experts"},
    {FT_KEY_ID_BUCKET, MEGATRON | DEEPSPEED, NULL, "the size of buckets"},
    {FT_KEY_ID_REDUCE_DTYPE, 0, wires, "the format of gradients on the wire"},
    {FT_KEY_ID_GATHER_DTYPE, 0, NULL, "the format of parameters on the wire"},
    {FT_KEY_ID_POWER_CAP, 0, NULL, "the boards' power limit (nvidia-smi -pl, or its like, does it)"},
    {FT_KEY_ID_EXPANDABLE, 0, NULL, "expandable segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True does it)"},
};
enum { ROWS = sizeof rows / sizeof *rows };

const json_t *ft__launch_said(const ft_launch *l, ft_key_id key)
{
    const char *section = ft__section_name(ft__keys[key].section);
    const json_t *base = l->search->asked->base, *home = *section ? json_object_get(base, section) : base;
    return ft__key_get(home, key);
}

/* Said, and not what would be so without a word; "overlap" is on by itself, and its row looks at the layout. */
static bool asks(const ft_launch *l, ft_key_id key)
{
    const json_t *said = ft__launch_said(l, key);
    const ft_key_row *k = &ft__keys[key];
    if (!said || json_is_null(said)) return false;
    if (key == FT_KEY_ID_OVERLAP || key == FT_KEY_ID_RESHARD) return json_is_false(said);
    if (k->type == FT_KEY_SWITCH) return json_is_true(said);
    if (k->type == FT_KEY_WORD && k->standard == 0 && key != FT_KEY_ID_OPTIMIZER)
        return !json_is_string(said) || strcmp(json_string_value(said), k->words[0]) != 0;
    return !json_is_number(said) || json_number_value(said) != 0;
}

bool ft__launch_targets(ft_text *out, const ft_launch *l, const char *quote)
{
    static const char core[] = "linear_"; /* linear_qkv, linear_proj, linear_fc1, linear_fc2 */
    const json_t *said = ft__launch_said(l, FT_KEY_ID_ADAPTER_TARGETS);
    size_t i;
    json_t *one;
    if (!json_is_array(said)) return false;
    json_array_foreach ((json_t *)(uintptr_t)said, i, one) {
        const char *name = json_string_value(one);
        if (!name || strncmp(name, core, sizeof core - 1) != 0) return false;
        ft__text_addf(out, "%s%s%s%s", i ? "," : "", quote, name, quote);
    }
    return true;
}

static bool listed(const ft_idle_list *idle, ft_key_id key)
{
    for (size_t i = 0; idle && i < idle->count; i++)
        if (idle->at[i].key == key) return true;
    return false;
}

/* `idle`: keys that the answer tells of as having no effect; NULL: of none. */
static void list(ft_text *out, const ft_launch *l, const char *file, const ft_idle_list *idle)
{
    unsigned bit = 0;
    const char *last = "";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(files[i].name, file)) bit = files[i].bit;
    for (size_t i = 0; i < ROWS && bit; i++) {
        if (!asks(l, rows[i].key) || rows[i].by & bit || listed(idle, rows[i].key)) continue;
        if (rows[i].of_value && rows[i].of_value(l) & bit) continue;
        if (!strcmp(rows[i].what, last)) continue; /* one thing by two names */
        last = rows[i].what;
        ft__text_addf(out, "%s%s", out->length ? "; " : "", last);
    }
}

void ft__launch_unsaid(ft_text *out, const ft_launch *l, const char *file) { list(out, l, file, NULL); }

void ft__launch_remark(ft_text *out, const ft_launch *l, const char *file, const char *who)
{
    ft_text lacks = {0};
    ft__launch_unsaid(&lacks, l, file);
    if (lacks.length) ft__text_addf(out, "# %s has no setting for: %s\n", who, lacks.at);
    ft__text_drop(&lacks, out);
}

void ft__launch_warnings(ft_text *lines, const ft_plan *p)
{
    const ft_launcher *by[FT_PLAN_MOST_EMITTED];
    const size_t count = p->plan_count ? ft__launch_files(p, by) : 0;
    for (size_t i = 0; i < count; i++) {
        const ft_launch best = ft__launch_of(p, &p->plans[0]);
        ft_text lacks = {0};
        list(&lacks, &best, by[i]->name, &p->idle);
        if (lacks.length)
            ft__text_addf(lines, "%s\"%s\" has no setting for: %s%s", lines->length ? "\n" : "", by[i]->name, lacks.at,
                          p->search.framework->own_program ? ". Your program has to do it" : "");
        ft__text_drop(&lacks, lines);
    }
}
