/* model.c: reading the tasks of whole models: train, forward, prefill, decode, memory.
 *
 * Keys of the contract that mean nothing for a task (the cache of a training step) are read, checked and warned of
 * (effects.c), so that one request can be asked as several tasks; keys outside the contract are refused with the
 * nearest one.
 *
 * "memory" is the memory of a training step; with "cache" or "kv_dtype", which training has no use for, of decoding. */
#include "request/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/cluster.h"
#include "kernel/kernel.h"
#include "request/effects.h"
#include "request/formats.h"
#include "request/keys.h"
#include "request/lengths.h"
#include "request/lora.h"
#include "request/pictures.h"
#include "request/step_keys.h"
#include "request/taken_for.h"
#include "request/tasks.h"
#include "request/version.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* -- sizes ------------------------------------------------------------------------------------- */

/* Tokens to compute on where the user says nothing: the model's own length, at most 4096. Relative and sinusoidal
 * positions have no length; 512 is what T5 was trained on (Raffel et al. 2020). */
static int64_t default_seq(const ft_arch *arch)
{
    if (ft__counts_samples(arch) && arch->design != FT_CLIP) return 1; /* no sequence but the patches */
    if (arch->fixed_seq > 0) return arch->fixed_seq;
    if (arch->usual_seq > 0) return arch->usual_seq;
    int64_t longest = arch->max_position > 0 ? arch->max_position : arch->design == FT_ENCODER_DECODER ? 512 : 4096;
    if (arch->design == FT_SPEECH && arch->max_target > 0) longest = arch->max_target;
    return longest < 4096 ? longest : 4096;
}

static double largest_of(const double *values, size_t count)
{
    double largest = 1;
    for (size_t i = 0; i < count; i++)
        if (values[i] > largest) largest = values[i];
    return largest;
}

/* No tensor of the step may pass what ft__op_check allows an operator. */
static ft_status check_volume(const ft_model_request *r, ft_error *err)
{
    const ft_arch *a = r->arch;
    const ft_workload *w = &r->work;
    bool images = ft__counts_samples(a);
    const double area = (double)a->image * (double)ft__latents_across(a);
    double patches = a->patch > 0 ? area / ((double)a->patch * (double)a->patch) : 0;
    double tokens = images ? patches + 1 : (double)w->seq, heads = (double)a->heads;
    double head_dim = a->head_dim > 0 ? (double)a->head_dim : 1, topk = a->topk > 0 ? (double)a->topk : 1;
    double stem = a->stem_width > 0 ? (double)a->stem_width : 1;
    const double wide[] = {(double)a->vocab,
                           (double)a->ffn,
                           topk * (double)(a->moe_ffn > 0 ? a->moe_ffn : a->ffn),
                           4 * (double)a->hidden,
                           3 * heads * head_dim,
                           heads * tokens,
                           (double)a->kv_lora * heads,
                           (double)a->expand * (double)a->hidden * 4};
    double volume = (double)w->batch * tokens * largest_of(wide, COUNT(wide));
    double image = (double)w->batch * area * stem;
    if (images && image > volume) volume = image;
    if (volume <= FT_LARGEST_TENSOR) return FT_OK;
    bool short_one = (double)w->batch >= tokens;
    return ft__fail_at(err, FT_E_RANGE, short_one ? "batch" : "seq", 0, 0,
                       "batch %" PRId64 " with seq %" PRId64
                       " makes a tensor of %.3g elements; tensors of more than 1e15 are not forecast",
                       w->batch, w->seq, volume);
}

/* An ONNX file or a graph file may have been exported for one batch and one length alone. */
static ft_status check_fixed(const ft_arch *a, const ft_workload *w, ft_error *err)
{
    bool batch = a->fixed_batch > 0 && w->batch != a->fixed_batch, seq = a->fixed_seq > 0 && w->seq != a->fixed_seq;
    if (!batch && !seq) return FT_OK;
    return ft__fail_at(
        err, FT_E_RANGE, batch ? "batch" : "seq", 0, 0,
        "the file fixes %s at %" PRId64 ", not %" PRId64 ": export it with a dynamic axis, or leave it out",
        batch ? "the batch" : "the length", batch ? a->fixed_batch : a->fixed_seq, batch ? w->batch : w->seq);
}

static ft_status settle_sizes(const json_t *object, const ft_said *said, ft_model_request *out, ft_error *err)
{
    ft_workload *w = &out->work;
    const ft_arch *a = out->arch;
    w->batch = a->fixed_batch > 0 ? a->fixed_batch : a->usual_batch > 0 ? a->usual_batch : 1;
    w->seq = default_seq(a);
    w->accumulate = 1;
    if (ft__given(said, FT_KEY_ID_MICRO_BATCH)) w->batch = ft__whole_of(said, FT_KEY_ID_MICRO_BATCH);
    int64_t seq = 0, least = ft__counts_samples(a) ? 0 : 1; /* ignored for images, but for the captions of clip */
    FT_TRY(ft__json_whole(object, FT_KEY(SEQ), FT_OPTIONAL, least, FT_LARGEST_SIZE, &seq, "", err));
    if (seq > 0 && a->token_pixels > 0 && (out->pictures_of.height > 0 || out->pictures_of.frames > 0))
        return ft__fail_at(err, FT_E_RANGE, FT_KEY(SEQ), 0, 0,
                           "\"seq\" %" PRId64
                           " counts the tokens that \"image_size\" and \"frames\" already give: leave out one of them",
                           seq);
    if (seq > 0 && (least > 0 || a->design == FT_CLIP)) w->seq = seq;
    FT_TRY(check_fixed(a, w, err));
    w->lora_rank = ft__whole_of(said, FT_KEY_ID_LORA_RANK);
    FT_TRY(check_volume(out, err));

    int64_t global = ft__whole_of(said, FT_KEY_ID_GLOBAL_BATCH);
    int64_t once = w->batch * out->parallel.dp; /* sequences of one micro-batch on all data ranks */
    if (global && global % once) {
        int64_t below = global / once * once;
        if (below)
            return ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                               "\"global_batch\" %" PRId64 " is not a multiple of \"batch\" x \"dp\" %" PRId64
                               "; the nearest are %" PRId64 " and %" PRId64,
                               global, once, below, below + once);
        return ft__fail_at(err, FT_E_RANGE, "global_batch", 0, 0,
                           "\"global_batch\" %" PRId64 " is below one micro-batch of %" PRId64 " on every data rank",
                           global, once);
    }
    if (global) w->accumulate = global / once;
    out->global_batch = global;

    return FT_OK;
}

/* -- the request ------------------------------------------------------------------------------- */

/* Names of modules that Megatron-Core's selective recomputation runs again: where nothing is said of that they ask for
 * it, and beside another word they are left alone. */
static ft_status settle_modules(const ft_said *said, ft_workload *w, ft_error *err)
{
    bool asked = ft__given(said, FT_KEY_ID_RECOMPUTE);
    if (!ft__given(said, FT_KEY_ID_RECOMPUTE_MODULES)) return FT_OK;
    if (ft__stack(w)->selective != FT_SELECTIVE_CORE_ATTENTION && !asked)
        return ft__fail_at(err, FT_E_RANGE, "recompute_modules", 0, 0,
                           "\"recompute_modules\" are Megatron-Core's: \"execution\" must be \"fused\"");
    if (!asked) w->recompute = FT_RECOMPUTE_SELECTIVE;
    w->again = (unsigned)ft__whole_of(said, FT_KEY_ID_RECOMPUTE_MODULES);
    return FT_OK;
}

/* The software is a training run's, unless it decodes; serving engines run generation otherwise. */
static ft_status find_named_stack(const json_t *object, ft_stack_source find_stack, void *source, ft_model_request *out,
                                  ft_error *err)
{
    const json_t *named = ft__key_get(object, FT_KEY_ID_STACK);
    if (!named) return FT_OK;
    FT_TRY(find_stack(source, named, &out->work.stack, err));
    if (ft__generates_tokens(&out->work) && !out->work.stack->replays_tokens) out->work.stack = NULL;
    return FT_OK;
}

/* Keys left out are as the named stack has them. */
static void settle_stack(const ft_said *said, ft_model_request *out)
{
    ft_workload *w = &out->work;
    const ft_stack *stack = w->stack;
    if (!stack) return;
    if (!ft__given(said, FT_KEY_ID_ATTENTION)) w->attention = stack->attention;
    if (!ft__given(said, FT_KEY_ID_EXECUTION)) w->execution = stack->execution;
    if (!ft__given(said, FT_KEY_ID_COMPILE_SCOPE)) w->scope = stack->compile_scope;
    bool narrow = w->task == FT_TRAIN && !w->autocast && ft_dtype_bytes(w->dtype) <= 2;
    if (!ft__given(said, FT_KEY_ID_MASTER_WEIGHTS)) w->master_weights = narrow && stack->master_weights;
    /* An update within the backward pass has no norm of all gradients to clip by. */
    const bool at_once = ft__switch_of(said, FT_KEY_ID_IN_BACKWARD);
    if (!ft__given(said, FT_KEY_ID_CLIP_GRAD)) w->clip = w->task == FT_TRAIN && stack->clip_grad && !at_once;
}

/* "zero" 0 is what sources leave unsaid: where software that shards in any case is meant, the answer says so. */
static void take_for_sharded(const ft_said *said, ft_model_request *out)
{
    ft_parallel *p = &out->parallel;
    int zero = ft__zero_of(&out->work, p->zero, p->dp * p->cp);
    if (zero == p->zero) return;
    p->zero = zero;
    out->zero_raised = true;
    if (!ft__given(said, FT_KEY_ID_ZERO)) return;
    snprintf(out->remark, sizeof out->remark,
             "\"zero\" is taken as %d: the stack \"%s\", which follows from the rest, always shards optimizer "
             "states; name a stack to have \"zero\" 0",
             zero, ft__stack(&out->work)->name);
}

static void settle_layout(const ft_said *said, ft_model_request *out)
{
    const ft_stack *stack = out->work.stack;
    ft_parallel *p = &out->parallel;
    if (!stack || out->work.task != FT_TRAIN) return;
    if (p->dp * p->cp > 1 && !ft__given(said, FT_KEY_ID_ZERO)) p->zero = stack->zero;
    if (!ft__given(said, FT_KEY_ID_EXPERT_DISPATCH)) p->dispatch_once = stack->dispatch_once;
    if (ft__given(said, FT_KEY_ID_CP_KIND) || ft__given(said, FT_KEY_ID_ULYSSES)) return;
    for (int k = 0; k < FT_CONTEXT_COUNT; k++)
        if (!strcmp(stack->cp_kind, ft__context_name((ft_context_kind)k))) p->context = (ft_context_kind)k;
}

static ft_status settle_words(const ft_said *said, ft_model_request *out, ft_error *err)
{
    ft_workload *w = &out->work;
    w->attention = (ft_attention_kind)ft__word_of(said, FT_KEY_ID_ATTENTION);
    w->execution = (ft_execution)ft__word_of(said, FT_KEY_ID_EXECUTION);
    w->scope = (ft_compile_scope)ft__word_of(said, FT_KEY_ID_COMPILE_SCOPE);
    if (ft__given(said, FT_KEY_ID_FUSIONS))
        w->fusions = ft__word_of(said, FT_KEY_ID_FUSIONS) == 1 ? FT_FUSIONS_PLAIN : FT_FUSIONS_RECIPE;
    w->cache = (ft_cache_kind)ft__word_of(said, FT_KEY_ID_CACHE);
    w->optimizer = (ft_optimizer)ft__word_of(said, FT_KEY_ID_OPTIMIZER);
    w->recompute = (ft_recompute)ft__word_of(said, FT_KEY_ID_RECOMPUTE);
    w->nchw = ft__word_of(said, FT_KEY_ID_IMAGE_LAYOUT) == 1; /* of images; other models have no such thing */
    w->master_weights = ft__switch_of(said, FT_KEY_ID_MASTER_WEIGHTS);
    w->clip = ft__switch_of(said, FT_KEY_ID_CLIP_GRAD);
    settle_stack(said, out);
    FT_TRY(settle_modules(said, w, err));
    w->host_us_per_op = ft__real_of(said, FT_KEY_ID_HOST_US);
    if (ft__given(said, FT_KEY_ID_HOST_US) && w->host_us_per_op <= 0)
        w->host_us_per_op = 1e-6; /* said to be nothing; 0 means modelled */
    out->tokens = out->work.task == FT_TRAIN ? ft__real_of(said, FT_KEY_ID_TRAIN_TOKENS) : 0;
    out->detail = (ft_detail)ft__word_of(said, FT_KEY_ID_DETAIL);
    out->quantile = ft__given(said, FT_KEY_ID_QUANTILE) ? ft__real_of(said, FT_KEY_ID_QUANTILE) : 0;
    out->advice = ft__switch_of(said, FT_KEY_ID_ADVICE);
    out->techniques = ft__switch_of(said, FT_KEY_ID_TECHNIQUES);
    out->course = ft__switch_of(said, FT_KEY_ID_COURSE);
    out->pictures = ft__given(said, FT_KEY_ID_PICTURES) ? (unsigned)said->at[FT_KEY_ID_PICTURES].whole : 0;
    return FT_OK;
}

static void set_task(const ft_said *said, ft_model_request *out)
{
    static const ft_task tasks[] = {[FT_ASK_TRAIN] = FT_TRAIN,
                                    [FT_ASK_FORWARD] = FT_FORWARD_PASS,
                                    [FT_ASK_PREFILL] = FT_PREFILL,
                                    [FT_ASK_DECODE] = FT_DECODE};
    if (out->ask < COUNT(tasks))
        out->work.task = tasks[out->ask];
    else
        out->work.task = ft__given(said, FT_KEY_ID_CACHE) || ft__given(said, FT_KEY_ID_MODEL_KV_DTYPE) ? FT_DECODE
                                                                                                       : FT_TRAIN;
}

/* One GPU has no use for a cluster, but what is said of it must make sense. */
static ft_status check_cluster(const ft_model_request *r, ft_error *err)
{
    ft_cluster ignored;
    if (!r->cluster || !ft__parallel_alone(&r->parallel)) return FT_OK;
    return ft__cluster_read(r->cluster, r->device, 1, &ignored, err);
}

/* What a named stack cannot do is refused, also where advice would try it. */
static ft_status check_stack(const ft_model_request *r, ft_error *err)
{
    const ft_parallel *p = &r->parallel;
    bool cut = p->tp > 1 || p->pp > 1 || p->cp > 1 || p->ep > 1;
    return ft__stack_check(&r->work, p->zero, cut, p->sp && p->tp > 1, err);
}

/* "gpus": "all" are those of the cluster's nodes, which need the GPU's usual node where only their number is said. */
static ft_status count_gpus(const json_t *object, ft_device_source find_device, void *source, ft_said *said,
                            ft_error *err)
{
    const json_t *gpu = ft__key_get(object, FT_KEY_ID_GPU);
    const ft_device *device;
    ft_cluster cluster;
    if (!gpu || ft__whole_of(said, FT_KEY_ID_GPUS) >= 0) return FT_OK;
    FT_TRY(find_device(source, gpu, &device, err));
    FT_TRY(ft__cluster_read(ft__key_get(object, FT_KEY_ID_CLUSTER), device, 1, &cluster, err));
    said->at[FT_KEY_ID_GPUS].whole = cluster.gpus;
    return FT_OK;
}

/* Packed documents begin anew each. */
static void count_positions(ft_model_request *r)
{
    const ft_workload *w = &r->work;
    const bool packs = w->packed > 0 && w->packed < w->seq;
    const int64_t last = packs ? w->packed : w->seq + (w->task == FT_DECODE);
    ft__beyond_positions(r->arch, FT_BEYOND_SEQ, (double)last, r->beyond);
}

/* Decoding one token after another is what decoders do. */
static ft_status check_task(const ft_model_request *r, ft_error *err)
{
    bool generates = r->arch->design == FT_DECODER_ONLY || r->arch->design == FT_ENCODER_DECODER ||
                     r->arch->design == FT_SPEECH || r->arch->design == FT_STATE_SPACE ||
                     (r->arch->design == FT_ENCODER_ONLY && r->arch->causal); /* bert as a decoder: blip */
    if (generates || (r->work.task != FT_DECODE && r->work.task != FT_PREFILL)) return FT_OK;
    return ft__fail_at(err, FT_E_UNSUPPORTED, "task", 0, 0,
                       "\"%s\" generates no tokens: it has no prefill and no decode; ask for \"forward\"",
                       r->arch->model_type);
}

ft_status ft__model_request_said(const json_t *object, ft_said *out, ft_error *err)
{
    ft__said_init(out);
    FT_TRY(ft__said_read(object, FT_SECTION_COMMON, out, err));
    FT_TRY(ft__said_read(object, FT_SECTION_MODEL, out, err));
    FT_TRY(ft__parallel_read(object, out, err));
    FT_TRY(ft__loader_read(object, out, err));
    return ft__lora_read(object, out, err);
}

ft_status ft__model_request_read(const json_t *object, ft_device_source find_device, ft_model_source find_model,
                                 ft_stack_source find_stack, void *source, ft_model_request *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    FT_TRY(ft__request_task(object, &out->ask, err));
    FT_TRY(ft__task_keys_known(object, out->ask, err));
    ft_said said;
    FT_TRY(ft__model_request_said(object, &said, err));
    set_task(&said, out);
    FT_TRY(ft__settle_dtypes(&said, out, err));
    FT_TRY(find_named_stack(object, find_stack, source, out, err));
    FT_TRY(settle_words(&said, out, err));
    FT_TRY(count_gpus(object, find_device, source, &said, err));
    FT_TRY(ft__parallel_settle(&said, &out->parallel, err));
    ft__take_for_old(&said, out);
    ft__take_for_first_flash(&said, out);
    settle_layout(&said, out);
    out->loader = ft__loader_settle(&said);
    out->cluster = ft__key_get(object, FT_KEY_ID_CLUSTER);
    out->host = ft__key_get(object, FT_KEY_ID_HOST);
    const json_t *model = ft__key_get(object, FT_KEY_ID_MODEL), *gpu = ft__key_get(object, FT_KEY_ID_GPU);
    if (!model)
        return ft__fail_at(err, FT_E_MISSING, "model", 0, 0,
                           "\"model\" is missing: a name (llama-3-8b), the path of a config.json or its object");
    if (!gpu)
        return ft__fail_at(err, FT_E_MISSING, "gpu", 0, 0,
                           "\"gpu\" is missing: a name (h100_sxm), a file or a spec object");
    FT_TRY(ft__picture_size_read(&said, &out->pictures_of, err));
    FT_TRY(find_model(source, model, said.at[FT_KEY_ID_READ_AS].text, out->pictures_of, &out->arch, err));
    out->model = json_is_string(model) ? json_string_value(model) : out->arch->model_type;
    const bool again = out->arch->reversible || (out->arch->checkpointed && !ft__given(&said, FT_KEY_ID_RECOMPUTE));
    if (again && out->work.task == FT_TRAIN) out->work.recompute = FT_RECOMPUTE_FULL;
    FT_TRY(check_task(out, err));
    ft__take_for_written_out(&said, out);
    FT_TRY(settle_sizes(object, &said, out, err));
    ft__pictures_settle(&said, out);
    ft__settle_loaded(&said, out);
    FT_TRY(ft__lora_settle(object, &said, out, err));
    FT_TRY(ft__step_keys_settle(object, &said, out, err));
    FT_TRY(ft__lengths_settle(object, &said, out, err));
    json_t *capped = NULL;
    FT_TRY(find_device(source, gpu, &out->device, err));
    FT_TRY(ft__capped_gpu(gpu, out->device, &said, &capped, err));
    ft_status found = capped ? find_device(source, capped, &out->device, err) : FT_OK;
    json_decref(capped);
    FT_TRY(found);
    FT_TRY(ft__settle_pytorch(&said, out, err));
    ft__take_for_liger(out);
    ft__take_for_ported(out);
    ft__take_for_earlier(out);
    ft__take_for_causal(out);
    ft__take_for_packed(&said, out);
    ft__remark_library(&said, out);
    ft__remark_modules(&said, out);
    take_for_sharded(&said, out);
    ft__settle_kv(&said, out);
    ft__settle_quantized(&said, out);
    count_positions(out);
    FT_TRY(ft__split_settle(&said, out, err));
    FT_TRY(check_stack(out, err));
    FT_TRY(ft__parallel_fits_model(&out->parallel, out->arch, &out->work, err));
    FT_TRY(check_cluster(out, err));
    FT_TRY(ft__check_dtype(out, err));
    return ft__request_effects(&said, out, err);
}

/* What an operator calls its sizes means nothing to who asked for a model. */
ft_status ft__model_request_explain(const ft_model_request *r, ft_status status, ft_error *err)
{
    static const char *const sizes[] = {"numel", "rows",  "cols",   "m",      "n",    "k",
                                        "b",     "q_len", "kv_len", "tokens", "bytes"};
    if (status != FT_E_RANGE || !err || isnan(err->value)) return status;
    double value = err->value;
    if (!strcmp(err->where, "params"))
        return ft__fail_at(err, status, "model", 0, 0,
                           "the model has %.3g parameters; more than 2^40 on one GPU are not forecast", value);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        if (strcmp(err->where, sizes[i]) != 0) continue;
        char made[64];
        snprintf(made, sizeof made, "an operator over %.3g elements", value);
        if (i > 0) snprintf(made, sizeof made, "an operator with %s %.3g", sizes[i], value); /* numel comes first */
        return ft__fail_at(err, status, r->work.batch >= r->work.seq ? "batch" : "seq", 0, 0,
                           "batch %" PRId64 " with seq %" PRId64 " makes %s; sizes beyond 2^40 are not forecast",
                           r->work.batch, r->work.seq, made);
    }
    return status;
}

ft_status ft__model_request_check(const ft_model_request *r, ft_error *err)
{
    FT_TRY(check_fixed(r->arch, &r->work, err));
    FT_TRY(check_volume(r, err));
    FT_TRY(check_stack(r, err));
    FT_TRY(ft__parallel_fits_model(&r->parallel, r->arch, &r->work, err));
    return ft__check_dtype(r, err);
}
