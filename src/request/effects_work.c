/* effects_work.c: when keys about the model and what is done with it have no effect.
 *
 * A rule for every key of the request itself, of its data loader and of its adapters: what it asks of the task, of the
 * architecture or of another key. */
#include "request/effects.h"

#include "kernel/power.h"
#include "model/pytorch.h"
#include "request/effects_rules.h"

/* The section as a whole is warned of where nothing is trained. */
static const char *adapter_format(const ft_effect_case *c)
{
    bool wide = c->w->autocast || ft_dtype_bytes(c->w->dtype) > 2;
    return c->trains && wide ? "the model's format decides: its weights are fp32" : NULL;
}

const char *ft__timed_rule(const ft_effect_case *c)
{
    return c->r->ask == FT_ASK_MEMORY ? "\"memory\" has no times" : NULL;
}

static const char *held(const ft_effect_case *c)
{
    if (ft__timed_rule(c)) return ft__timed_rule(c);
    return ft__watts_limit(c->r->device) > ft__real_of(c->said, FT_KEY_ID_POWER_CAP) || c->r->device->power_cap_w > 0
               ? NULL
               : "it is not below the board's own limit";
}

/* What can be drawn of a request without times, or without a pipeline, is drawn. */
static const char *drawn(const ft_effect_case *c)
{
    const unsigned memory = 1u << FT_PICTURE_MEMORY, pipeline = 1u << FT_PICTURE_PIPELINE;
    if (c->r->ask == FT_ASK_MEMORY) return c->r->pictures & memory ? NULL : ft__timed_rule(c);
    return c->r->pictures == pipeline && c->p->pp < 2 ? "\"pp\" is 1" : NULL;
}

static const char *days(const ft_effect_case *c) { return ft__timed_rule(c) ? ft__timed_rule(c) : ft__training(c); }

static const char *clipping(const ft_effect_case *c)
{
    if (c->trains && c->w->optimizer == FT_NO_OPTIMIZER) return "\"optimizer\" is \"none\"";
    return c->trains ? ft__timed_rule(c) : ft__training(c);
}

static const char *updating(const ft_effect_case *c)
{
    return c->trains && c->w->optimizer == FT_NO_OPTIMIZER ? "\"optimizer\" is \"none\"" : ft__training(c);
}

static const char *moments(const ft_effect_case *c)
{
    bool has = ft__keeps_moments(c->w->optimizer);
    return updating(c) ? updating(c) : has ? NULL : "the optimizer keeps its states in a format of its own";
}

static const char *losing(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (c->a->design == FT_SOUND) return "the model's loss is CTC's";
    return c->a->lm_head || c->a->mlm_head ? NULL : "the model has no vocabulary to choose from";
}

static const char *positions(const ft_effect_case *c)
{
    if (losing(c)) return losing(c);
    return c->w->loss_positions < c->w->seq ? NULL : "a sequence has no more";
}

static const char undone[] = "the model's layers are reversible: the backward pass recomputes them in any case";

static const char *some_layers(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (c->a->reversible) return undone;
    if (c->w->recompute != FT_RECOMPUTE_FULL) return "\"recompute\" is not \"full\"";
    return c->a->design == FT_DECODER_ONLY ? NULL : "forecast for decoders";
}

static const char *policies(const ft_effect_case *c)
{
    const ft_design design = c->a->design;
    if (!c->trains) return ft__training(c);
    if (c->w->recompute != FT_RECOMPUTE_FULL) return "\"recompute\" is not \"full\"";
    if (!ft__given(c->said, FT_KEY_ID_RECOMPUTE)) return NULL; /* it asks for that */
    bool none = design == FT_RESNET || design == FT_CONVNEXT || design == FT_STATE_SPACE || design == FT_CUSTOM ||
                design == FT_UNET;
    return none ? "the model has no results of these names" : NULL;
}

static const char *offloading(const ft_effect_case *c)
{
    const unsigned always = 1u << FT_OFFLOAD_ACTIVATIONS | 1u << FT_OFFLOAD_PARAMETERS;
    if (!c->trains) return ft__training(c);
    if (c->w->offload & always) return NULL;
    if (c->w->optimizer == FT_NO_OPTIMIZER) return "\"optimizer\" is \"none\"";
    bool none = c->w->optimizer == FT_SGD && !c->w->master_weights;
    return none ? "\"sgd\" keeps no states" : NULL;
}

static const char *layers_away(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    return c->w->offload & 1u << FT_OFFLOAD_ACTIVATIONS ? NULL : "\"offload\" has no \"activations\"";
}

static const char *host_link(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (!c->w->offload) return "nothing is on the host: \"offload\" is empty";
    return offloading(c) ? offloading(c) : ft__timed_rule(c);
}

static const char *drives(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    return ft__offloads(c->w, FT_OFFLOAD_OPTIMIZER_NVME) ? ft__timed_rule(c) : "nothing is on drives";
}

static const char *accumulating(const ft_effect_case *c) { return c->trains || c->ranks > 1 ? NULL : ft__training(c); }

static const char *lengths(const ft_effect_case *c)
{
    int64_t seq = ft__whole_of(c->said, FT_KEY_ID_SEQ);
    bool own = seq == 0 || seq == c->w->seq, fixed = ft__counts_samples(c->a); /* 0: none */
    return fixed && c->a->design != FT_CLIP && !own ? "the model's inputs have one size" : NULL;
}

static const char *widening(const ft_effect_case *c)
{
    for (int i = 0; c->w->by_module && i < FT_OF_OTHER; i++) {
        const ft_weight_format *f = &c->w->formats.of[i];
        if (f->given && f->stored != FT_STORED_AS_COMPUTED && ft_dtype_bytes(f->math) == 2) return NULL;
    }
    return "no low-bit weights are dequantised";
}

static const char *caching(const ft_effect_case *c)
{
    return c->w->task == FT_PREFILL || c->w->task == FT_DECODE ? NULL : "nothing is cached";
}

static const char *cached(const ft_effect_case *c)
{
    if (caching(c)) return caching(c);
    return c->a->design == FT_STATE_SPACE ? "the model keeps a state, no keys and values" : NULL;
}

/* A page table and a preallocated tensor differ where a serving engine's kernels read them. */
static const char *cache_kind(const ft_effect_case *c)
{
    bool engine = c->w->execution == FT_RUN_FUSED || c->w->execution == FT_RUN_CUDA_GRAPH;
    if (caching(c)) return caching(c);
    if (c->r->ask == FT_ASK_MEMORY) return NULL; /* it asks for the memory of decoding */
    return c->w->cache == FT_CACHE_STATIC && !engine ? "eager kernels read it as they read a paged one" : NULL;
}

static const char *attending(const ft_effect_case *c)
{
    const bool windows = c->a->design == FT_VIT && c->a->tower_window > 0; /* SAM's, which sdpa takes in evaluation */
    if (!ft__attends(c->a)) return "the model has no attention";
    if (ft__own_scores(c->a)) return "the model's code writes its scores out in any case";
    if (c->a->says_attention) return "the model's graph says which attention it has";
    if (c->a->reversible) return "the model has its own attention in any case";
    return windows && c->trains ? "in training the model's windows are written out" : NULL;
}

static const char *compiled(const ft_effect_case *c)
{
    bool replayed = c->w->execution == FT_RUN_CUDA_GRAPH && !ft__by_engine(c->w);
    bool compiles = c->w->execution == FT_RUN_COMPILE || replayed;
    return compiles ? NULL : "nothing is compiled";
}

static const char *fused(const ft_effect_case *c)
{
    if (c->w->execution != FT_RUN_FUSED) return "\"execution\" is not \"fused\"";
    if (c->a->design != FT_DECODER_ONLY) return "only decoders have parts that are fused or not";
    return c->a->experts > 0 || c->a->kv_lora > 0 ? NULL : "the model has no experts and no latent attention";
}

/* Megatron's selective recomputation drops attention's scores, which flash attention never keeps. */
static const char *recomputing(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (c->a->reversible) return undone;
    bool scores = c->w->recompute == FT_RECOMPUTE_SELECTIVE && c->w->execution == FT_RUN_FUSED && !c->w->again;
    return scores && ft__flashes(c->w->attention) ? "fused flash attention keeps no scores to drop" : NULL;
}

unsigned ft__modules_of(const ft_arch *a, const ft_workload *w)
{
    unsigned here = 1u << FT_MODULE_LAYERNORM;
    if (!ft__flashes(w->attention)) here |= 1u << FT_MODULE_CORE_ATTN;
    if (a->experts > 0) here |= 1u << FT_MODULE_MOE | 1u << FT_MODULE_MOE_ACT;
    if (a->shared_experts > 0 || a->shared_ffn > 0) here |= 1u << FT_MODULE_SHARED_EXPERTS;
    if (a->kv_lora > 0) here |= 1u << FT_MODULE_MLA_UP_PROJ;
    if (a->experts < 1 || a->first_dense > 0 || a->moe_every > 1) here |= 1u << FT_MODULE_MLP;
    return here;
}

static const char none_of_them[] = "the model has none of these modules, or keeps nothing of them";

static const char *modules(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (!(c->w->again & ft__modules_of(c->a, c->w))) return none_of_them;
    if (c->w->recompute != FT_RECOMPUTE_SELECTIVE) return "\"recompute\" is not \"selective\"";
    return c->w->execution != FT_RUN_FUSED ? "\"execution\" is not \"fused\"" : NULL;
}

/* Modules that are captured in graphs and that the model has. */
static unsigned capturable(const ft_arch *a)
{
    const unsigned experts = 1u << FT_GRAPHED_MOE | 1u << FT_GRAPHED_MOE_ROUTER | 1u << FT_GRAPHED_MOE_PREPROCESS;
    unsigned here = ~(experts | 1u << FT_GRAPHED_MLP);
    if (a->experts > 0) here |= experts;
    if (a->experts < 1 || a->first_dense > 0 || a->moe_every > 1) here |= 1u << FT_GRAPHED_MLP;
    return here;
}

static const char *capturing(const ft_effect_case *c)
{
    if (!c->trains) return ft__training(c);
    if (c->w->execution != FT_RUN_FUSED) return "\"execution\" is not \"fused\"";
    if (!(c->w->graphed & capturable(c->a))) return "the model has none of these modules";
    if (ft__graphed(c->w)) return NULL;
    return c->w->recompute == FT_RECOMPUTE_FULL ? "recomputed layers are not captured one by one"
                                                : "layers whose activations are offloaded are not captured";
}

static const char *stacked(const ft_effect_case *c)
{
    if (caching(c) || (c->w->stack && c->w->execution == FT_RUN_COMPILE)) return NULL;
    return "a stack trains models, runs forward passes, or decodes compiled; serving engines run prefill and decode";
}

static const char *hosted(const ft_effect_case *c)
{
    if (ft__timed_rule(c)) return ft__timed_rule(c);
    return c->w->execution == FT_RUN_IDEAL ? "\"ideal\" execution has no host" : NULL;
}

static const char *dispatched(const ft_effect_case *c)
{
    if (hosted(c)) return hosted(c);
    return c->w->execution == FT_RUN_CUDA_GRAPH ? "a replayed graph dispatches no operators" : NULL;
}

static const char *images(const ft_effect_case *c)
{
    return c->a->design == FT_RESNET ? NULL : "only a ResNet's images can lie either way";
}

static const char *pictures(const ft_effect_case *c)
{
    return c->a->tower_layers > 0 ? NULL : "the model takes no images";
}

static const char *picture_size(const ft_effect_case *c)
{
    if (ft__takes_pictures(c->a)) return NULL;
    if (c->a->design == FT_CUSTOM) return "the model's graph has inputs of one size";
    if (pictures(c)) return pictures(c);
    if (c->w->images < 1) return "\"images\" is 0";
    return c->a->tower_size > 0 ? "the model's images have one size" : NULL;
}

static const char *frames(const ft_effect_case *c)
{
    return ft__takes_frames(c->a) ? NULL : "the model makes no video of a length that can be chosen";
}

static const char *beside(const ft_effect_case *c)
{
    const ft_arch *a = c->a;
    bool reads = a->design == FT_ENCODER_DECODER && a->decoder_layers > 0 && a->tower_layers == 0 && !a->tower_source;
    if (reads || a->protein.reader.layers > 0 || a->source_tokens > 0) return NULL;
    return "the model reads nothing beside its sequence";
}

static const char *predicting(const ft_effect_case *c)
{
    return c->a->design == FT_DECODER_ONLY && c->a->lm_head ? NULL : "forecast for decoders with a head";
}

static const char *read_as(const ft_effect_case *c) { return c->a->nearest ? NULL : "the model's type is known"; }

/* What a growing cache leaves behind is seen with plain segments alone. */
static const char *reserving(const ft_effect_case *c)
{
    const ft_pytorch *version = ft__pytorch(c->w);
    if (version && !version->expands_segments) return "that version of PyTorch has no such segments";
    return c->w->task == FT_DECODE ? "what decoding reserves is forecast for plain segments alone" : NULL;
}

/* -- every key of them ------------------------------------------------------------------------- */

const ft_rule ft__work_rules[FT_KEY_COUNT] = {
    [FT_KEY_ID_ID] = ft__acts,
    [FT_KEY_ID_TASK] = ft__acts,
    [FT_KEY_ID_GPU] = ft__acts,
    [FT_KEY_ID_QUANTILE] = ft__timed_rule,
    [FT_KEY_ID_MODEL] = ft__acts,
    [FT_KEY_ID_MICRO_BATCH] = ft__acts,
    [FT_KEY_ID_GLOBAL_BATCH] = accumulating,
    [FT_KEY_ID_SEQ] = lengths,
    [FT_KEY_ID_MODEL_DTYPE] = ft__acts,
    [FT_KEY_ID_WEIGHTS_DTYPE] = ft__acts,
    [FT_KEY_ID_WEIGHTS_BY] = widening,
    [FT_KEY_ID_MODEL_KV_DTYPE] = cached,
    [FT_KEY_ID_CACHE] = cache_kind,
    [FT_KEY_ID_ATTENTION] = attending,
    [FT_KEY_ID_EXECUTION] = ft__acts,
    [FT_KEY_ID_COMPILE_SCOPE] = compiled,
    [FT_KEY_ID_STACK] = stacked,
    [FT_KEY_ID_FUSIONS] = fused,
    [FT_KEY_ID_OPTIMIZER] = ft__training,
    [FT_KEY_ID_MASTER_WEIGHTS] = ft__training,
    [FT_KEY_ID_RECOMPUTE] = recomputing,
    [FT_KEY_ID_RECOMPUTE_MODULES] = modules,
    [FT_KEY_ID_LORA_RANK] = ft__training,
    [FT_KEY_ID_LORA] = ft__training,
    [FT_KEY_ID_CLIP_GRAD] = clipping,
    [FT_KEY_ID_LOSS] = losing,
    [FT_KEY_ID_LOSS_POSITIONS] = positions,
    [FT_KEY_ID_PACKING] = ft__packing_rule,
    [FT_KEY_ID_SAMPLE_LENGTHS] = ft__lengths_rule,
    [FT_KEY_ID_BATCHING] = ft__batching_rule,
    [FT_KEY_ID_LONGER] = ft__longer_rule,
    [FT_KEY_ID_PAD_MULTIPLE] = ft__filling_rule,
    [FT_KEY_ID_POWER_CAP] = held,
    [FT_KEY_ID_EMA] = updating,
    [FT_KEY_ID_MOMENTS] = moments,
    [FT_KEY_ID_IN_BACKWARD] = updating,
    [FT_KEY_ID_EXPANDABLE] = reserving,
    [FT_KEY_ID_PYTORCH] = ft__versioned,
    [FT_KEY_ID_RECOMPUTE_LAYERS] = some_layers,
    [FT_KEY_ID_GRAPHED] = capturing,
    [FT_KEY_ID_REMAT] = policies,
    [FT_KEY_ID_OFFLOAD] = offloading,
    [FT_KEY_ID_OFFLOAD_LAYERS] = layers_away,
    [FT_KEY_ID_GPU_LAYERS] = ft__split_rule,
    [FT_KEY_ID_CPU_EXPERTS] = ft__split_rule,
    [FT_KEY_ID_HOST_MEMORY] = ft__host_memory_rule,
    [FT_KEY_ID_HOST_GBPS] = host_link,
    [FT_KEY_ID_NVME_GBPS] = drives,
    [FT_KEY_ID_TRAINER] = ft__training,
    [FT_KEY_ID_REFERENCE] = ft__training,
    [FT_KEY_ID_ROLLOUT] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_LONGEST] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_SAMPLES] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_SEQUENCES] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_MEMORY] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_ENGINE] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_GRAPHS] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_TP] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_GPUS] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_ASYNC] = ft__ahead_rule,
    [FT_KEY_ID_ROLLOUT_AGE] = ft__age_rule,
    [FT_KEY_ID_ROLLOUT_UPDATES] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_PACK] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_PACK_LOGPROBS] = ft__filled_rule,
    [FT_KEY_ID_ROLLOUT_OFFLOAD] = ft__answers_rule,
    [FT_KEY_ID_ROLLOUT_REFIT] = ft__answers_rule,
    [FT_KEY_ID_OLD_LOGPROBS] = ft__own_pass_rule,
    [FT_KEY_ID_HOST] = hosted,
    [FT_KEY_ID_HOST_US] = dispatched,
    [FT_KEY_ID_IMAGE_LAYOUT] = images,
    [FT_KEY_ID_IMAGES] = pictures,
    [FT_KEY_ID_IMAGE_SIZE] = picture_size,
    [FT_KEY_ID_FRAMES] = frames,
    [FT_KEY_ID_SOURCE] = beside,
    [FT_KEY_ID_MTP] = predicting,
    [FT_KEY_ID_READ_AS] = read_as,
    [FT_KEY_ID_TRAIN_TOKENS] = days,
    [FT_KEY_ID_DETAIL] = ft__timed_rule,
    [FT_KEY_ID_ADVICE] = ft__timed_rule,
    [FT_KEY_ID_TECHNIQUES] = ft__timed_rule,
    [FT_KEY_ID_COURSE] = ft__timed_rule,
    [FT_KEY_ID_PICTURES] = drawn,
    [FT_KEY_ID_LOADER] = ft__timed_rule,
    [FT_KEY_ID_DISK_RATE] = ft__timed_rule,
    [FT_KEY_ID_DISK_GBPS] = ft__timed_rule,
    [FT_KEY_ID_SAMPLE_BYTES] = ft__timed_rule,
    [FT_KEY_ID_WORKERS] = ft__timed_rule,
    [FT_KEY_ID_WORKER_MS] = ft__timed_rule,
    [FT_KEY_ID_PINNED] = ft__timed_rule,
    [FT_KEY_ID_ADAPTER_RANK] = ft__acts,
    [FT_KEY_ID_ADAPTER_TARGETS] = ft__acts,
    [FT_KEY_ID_ADAPTER_DTYPE] = adapter_format,
    [FT_KEY_ID_ADAPTER_DROPOUT] = ft__acts,
    [FT_KEY_ID_ADAPTER_ALPHA] = ft__acts,
    [FT_KEY_ID_ADAPTER_EMBEDDINGS] = ft__acts,
    [FT_KEY_ID_ADAPTER_DORA] = ft__acts,
};
