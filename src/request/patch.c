/* patch.c: a changed step as keys of its request, written by the table of keys. */
#include "request/patch.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/stack.h"
#include "request/keys.h"
#include "request/words.h"

typedef struct patch {
    json_t *out;
    bool failed;
} patch;

static void put(patch *p, ft_key_id id, json_t *value) { p->failed = !ft__key_put(p->out, id, value) || p->failed; }

static void whole(patch *p, ft_key_id id, int64_t from, int64_t to)
{
    if (from != to) put(p, id, json_integer(to));
}

static void flag(patch *p, ft_key_id id, bool changed, bool to)
{
    if (changed) put(p, id, json_boolean(to));
}

static void word(patch *p, ft_key_id id, bool changed, const char *to)
{
    if (changed) put(p, id, json_string(to));
}

/* In six digits, as answers say their figures. */
static void number(patch *p, ft_key_id id, bool changed, double to)
{
    char text[32];
    if (!changed) return;
    snprintf(text, sizeof text, "%.6g", to);
    double shown = strtod(text, NULL);
    bool even = shown > -1e15 && shown < 1e15 && shown == (double)(int64_t)shown;
    put(p, id, even ? json_integer((int64_t)shown) : json_real(shown));
}

const char *ft__change_dtype(const ft_workload *w)
{
    if (w->autocast) return w->dtype == FT_FP16 ? "amp_fp16" : "amp_bf16";
    return ft_dtype_name(w->dtype);
}

static void add_layout(patch *p, const ft_parallel *a, const ft_parallel *b)
{
    whole(p, FT_KEY_ID_DP, a->dp, b->dp);
    whole(p, FT_KEY_ID_TP, a->tp, b->tp);
    whole(p, FT_KEY_ID_PP, a->pp, b->pp);
    whole(p, FT_KEY_ID_CP, a->cp, b->cp);
    whole(p, FT_KEY_ID_VPP, a->vpp, b->vpp);
    whole(p, FT_KEY_ID_EP, a->ep, b->ep);
    whole(p, FT_KEY_ID_ETP, a->etp, b->etp);
    word(p, FT_KEY_ID_EXPERT_DISPATCH, a->dispatch_once != b->dispatch_once, ft__dispatch_words[b->dispatch_once]);
    flag(p, FT_KEY_ID_EXPERT_OVERLAP, a->expert_overlap != b->expert_overlap, b->expert_overlap > 0);
    whole(p, FT_KEY_ID_ZERO, a->zero, b->zero);
    flag(p, FT_KEY_ID_SP, a->sp != b->sp, b->sp);
    flag(p, FT_KEY_ID_OVERLAP, a->overlap != b->overlap || a->no_overlap != b->no_overlap, b->overlap);
    flag(p, FT_KEY_ID_TP_OVERLAP, a->in_pieces != b->in_pieces, b->in_pieces > 0);
    word(p, FT_KEY_ID_GATHER, a->gather != b->gather, ft__gather_words[b->gather != FT_GATHER_LAYER]);
    word(p, FT_KEY_ID_SCHEDULE, a->schedule != b->schedule, ft__schedule_name(b->schedule));
    number(p, FT_KEY_ID_BUCKET, a->bucket_bytes != b->bucket_bytes, b->bucket_bytes / 1048576);
    word(p, FT_KEY_ID_REDUCE_DTYPE, a->reduce_bytes != b->reduce_bytes, b->reduce_bytes == 2 ? "bf16" : "fp32");
}

/* Of the model's config, whose keys are not a request's. */
static void add_model(patch *p, const ft_arch *a, const ft_arch *b)
{
    const struct {
        const char *key;
        int64_t from, to;
    } sizes[] = {{"vocab_size", a->vocab, b->vocab},
                 {"intermediate_size", a->ffn, b->ffn},
                 {"hidden_size", a->hidden, b->hidden}};
    json_t *model = json_object();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].from != sizes[i].to && json_object_set_new(model, sizes[i].key, json_integer(sizes[i].to)))
            p->failed = true;
    if (json_object_size(model))
        put(p, FT_KEY_ID_MODEL, model);
    else
        json_decref(model);
}

json_t *ft__change_patch(const ft_change *now, const ft_change *after)
{
    patch p = {.out = json_object()};
    const ft_workload *a = &now->work, *b = &after->work;
    ft_dtype kv = a->kv_dtype; /* without the key */
    if (!now->kv_given) kv = ft__usual_kv_dtype(b->dtype, after->device->peak_tflops[FT_BF16] > 0);
    whole(&p, FT_KEY_ID_MICRO_BATCH, a->batch, b->batch);
    whole(&p, FT_KEY_ID_GLOBAL_BATCH, now->global_batch, ft__change_global(after));
    word(&p, FT_KEY_ID_MODEL_DTYPE, a->dtype != b->dtype || a->autocast != b->autocast, ft__change_dtype(b));
    word(&p, FT_KEY_ID_ATTENTION, a->attention != b->attention, ft__attention_words[b->attention]);
    word(&p, FT_KEY_ID_EXECUTION, a->execution != b->execution, ft__execution_words[b->execution]);
    word(&p, FT_KEY_ID_LOSS, a->loss != b->loss, ft__entropy_words[b->loss]);
    word(&p, FT_KEY_ID_STACK, a->stack && a->stack != b->stack, b->stack ? b->stack->name : "");
    word(&p, FT_KEY_ID_OPTIMIZER, a->optimizer != b->optimizer, ft__optimizer_words[b->optimizer]);
    word(&p, FT_KEY_ID_RECOMPUTE, a->recompute != b->recompute, ft__recompute_words[b->recompute]);
    word(&p, FT_KEY_ID_IMAGE_LAYOUT, a->nchw != b->nchw, ft__image_words[b->nchw]);
    word(&p, FT_KEY_ID_CACHE, a->cache != b->cache, ft__cache_words[b->cache]);
    word(&p, FT_KEY_ID_MODEL_KV_DTYPE, kv != b->kv_dtype && b->task != FT_TRAIN, ft_dtype_name(b->kv_dtype));
    word(&p, FT_KEY_ID_WEIGHTS_DTYPE, a->weight_bits != b->weight_bits, b->weight_bits == 8 ? "int8" : "int4");
    whole(&p, FT_KEY_ID_LORA_RANK, a->lora_rank, b->lora_rank);
    whole(&p, FT_KEY_ID_PACKING, a->packed, b->packed);
    word(&p, FT_KEY_ID_GPU, now->device != after->device, after->device->name);
    add_layout(&p, &now->parallel, &after->parallel);
    whole(&p, FT_KEY_ID_WORKERS, now->loader.workers, after->loader.workers);
    flag(&p, FT_KEY_ID_PINNED, now->loader.pageable != after->loader.pageable, !after->loader.pageable);
    number(&p, FT_KEY_ID_DISK_RATE, now->loader.samples_per_s_disk != after->loader.samples_per_s_disk,
           after->loader.samples_per_s_disk);
    add_model(&p, now->arch, after->arch);
    if (!p.failed) return p.out;
    json_decref(p.out);
    return NULL;
}
