/* effects.c: which keys of a request have no effect, and why.
 *
 * One rule for all of them: what changes nothing is answered with a warning that says so. A key that repeats its
 * default says nothing and is left in peace. Every key has a row in `rules`; a rule looks at the settled request and
 * answers with the reason, or NULL where the key has its effect. tests/unit/request_effects.c gives every key to
 * requests of many kinds and holds the rules against what the answers do.
 *
 * Left out: values that only happen to give the same forecast (fused on a model that nobody fuses by hand); a rule is
 * about what the key is for.
 *
 * Over 400 lines: a rule for every key, and the table that names them. */
#include "request/effects.h"

#include <math.h>
#include <string.h>

#include "comm/cluster.h"
#include "ranks/ranks.h"

typedef struct ft_effect_case {
    const ft_said *said;
    const ft_model_request *r;
    const ft_parallel *p;
    const ft_workload *w;
    const ft_arch *a;
    int64_t ranks;
    bool trains, shares; /* shares: several ranks exchange gradients */
} ft_effect_case;

typedef const char *(*ft_rule)(const ft_effect_case *c);

static const char *acts(const ft_effect_case *c) { return c ? NULL : ""; }

/* -- what is done with the model --------------------------------------------------------------- */

static const char *training(const ft_effect_case *c) { return c->trains ? NULL : "nothing is trained"; }

/* The section as a whole is warned of where nothing is trained. */
static const char *adapter_format(const ft_effect_case *c)
{
    bool wide = c->w->autocast || ft_dtype_bytes(c->w->dtype) > 2;
    return c->trains && wide ? "the model's format decides: its weights are fp32" : NULL;
}

static const char *timed(const ft_effect_case *c)
{
    return c->r->ask == FT_ASK_MEMORY ? "\"memory\" has no times" : NULL;
}

static const char *days(const ft_effect_case *c) { return timed(c) ? timed(c) : training(c); }

static const char *clipping(const ft_effect_case *c)
{
    if (c->trains && c->w->optimizer == FT_NO_OPTIMIZER) return "\"optimizer\" is \"none\"";
    return c->trains ? timed(c) : training(c);
}

static const char *updating(const ft_effect_case *c)
{
    return c->trains && c->w->optimizer == FT_NO_OPTIMIZER ? "\"optimizer\" is \"none\"" : training(c);
}

static const char *moments(const ft_effect_case *c)
{
    bool has = c->w->optimizer == FT_ADAMW || c->w->optimizer == FT_ADAMW_FOREACH || c->w->optimizer == FT_LAMB;
    return updating(c) ? updating(c) : has ? NULL : "the optimizer keeps its states in a format of its own";
}

static const char *losing(const ft_effect_case *c)
{
    if (!c->trains) return training(c);
    return c->a->lm_head || c->a->mlm_head ? NULL : "the model has no vocabulary to choose from";
}

static const char *packing(const ft_effect_case *c)
{
    bool fused = ft__flashes(c->w->attention) || (c->w->attention == FT_SDPA && c->w->execution == FT_RUN_FUSED);
    if (!c->trains) return training(c);
    if (c->a->design != FT_DECODER_ONLY || c->a->kv_lora > 0) return "forecast for decoders without latent attention";
    if (!fused) return "attention goes over whole sequences, masked or not";
    if (timed(c)) return timed(c);
    return c->w->packed < c->w->seq ? NULL : "documents are as long as sequences";
}

static const char *some_layers(const ft_effect_case *c)
{
    if (!c->trains) return training(c);
    if (c->w->recompute != FT_RECOMPUTE_FULL) return "\"recompute\" is not \"full\"";
    return c->a->design == FT_DECODER_ONLY ? NULL : "forecast for decoders";
}

static const char *policies(const ft_effect_case *c)
{
    const ft_design design = c->a->design;
    if (!c->trains) return training(c);
    if (c->w->recompute != FT_RECOMPUTE_FULL) return "\"recompute\" is not \"full\"";
    if (!ft__given(c->said, FT_KEY_ID_RECOMPUTE)) return NULL; /* it asks for that */
    bool none = design == FT_RESNET || design == FT_CONVNEXT || design == FT_STATE_SPACE || design == FT_CUSTOM;
    return none ? "the model has no results of these names" : NULL;
}

static const char *offloading(const ft_effect_case *c)
{
    const unsigned always = 1u << FT_OFFLOAD_ACTIVATIONS | 1u << FT_OFFLOAD_PARAMETERS;
    if (!c->trains) return training(c);
    if (c->w->offload & always) return NULL;
    if (c->w->optimizer == FT_NO_OPTIMIZER) return "\"optimizer\" is \"none\"";
    bool none = c->w->optimizer == FT_SGD && !c->w->master_weights;
    return none ? "\"sgd\" keeps no states" : NULL;
}

static const char *host_link(const ft_effect_case *c)
{
    if (!c->trains) return training(c);
    if (!c->w->offload) return "nothing lies on the host: \"offload\" names nothing";
    return offloading(c) ? offloading(c) : timed(c);
}

static const char *drives(const ft_effect_case *c)
{
    if (!c->trains) return training(c);
    return ft__offloads(c->w, FT_OFFLOAD_OPTIMIZER_NVME) ? timed(c) : "nothing lies on drives";
}

static const char *generating(const ft_effect_case *c)
{
    if (!c->trains) return training(c);
    return c->w->trainer == FT_TRAINER_GRPO ? timed(c) : "\"trainer\" is not \"grpo\": nothing is generated";
}

static const char *accumulating(const ft_effect_case *c) { return c->trains || c->ranks > 1 ? NULL : training(c); }

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
    return "no weights of few bits are widened";
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
    bool none = c->a->design == FT_RESNET || c->a->design == FT_CONVNEXT || c->a->design == FT_STATE_SPACE;
    return none ? "the model has no attention" : NULL;
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
    return c->a->experts > 0 || c->a->kv_lora > 0 ? NULL : "the model has no experts and no latent attention";
}

/* Megatron's selective recomputation drops attention's scores, which flash attention never keeps. */
static const char *recomputing(const ft_effect_case *c)
{
    if (!c->trains) return training(c);
    bool scores = c->w->recompute == FT_RECOMPUTE_SELECTIVE && c->w->execution == FT_RUN_FUSED && !c->w->again;
    return scores && ft__flashes(c->w->attention) ? "fused flash attention keeps no scores to drop" : NULL;
}

static const char *modules(const ft_effect_case *c)
{
    const ft_arch *a = c->a;
    unsigned here = 1u << FT_MODULE_LAYERNORM;
    if (!c->trains) return training(c);
    if (c->w->recompute != FT_RECOMPUTE_SELECTIVE) return "\"recompute\" is not \"selective\"";
    if (c->w->execution != FT_RUN_FUSED) return "\"execution\" is not \"fused\"";
    if (!ft__flashes(c->w->attention)) here |= 1u << FT_MODULE_CORE_ATTN;
    if (a->experts > 0) here |= 1u << FT_MODULE_MOE | 1u << FT_MODULE_MOE_ACT;
    if (a->shared_experts > 0 || a->shared_ffn > 0) here |= 1u << FT_MODULE_SHARED_EXPERTS;
    if (a->kv_lora > 0) here |= 1u << FT_MODULE_MLA_UP_PROJ;
    if (a->experts < 1 || a->first_dense > 0 || a->moe_every > 1) here |= 1u << FT_MODULE_MLP;
    return c->w->again & here ? NULL : "the model has none of these modules, or keeps nothing of them";
}

static const char *stacked(const ft_effect_case *c)
{
    return caching(c) ? NULL : "a stack trains models; serving engines run prefill and decode";
}

static const char *hosted(const ft_effect_case *c)
{
    if (timed(c)) return timed(c);
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

static const char *pictures(const ft_effect_case *c) { return c->a->tower_layers > 0 ? NULL : "the model has no eyes"; }

static const char *picture_size(const ft_effect_case *c)
{
    if (pictures(c)) return pictures(c);
    if (c->w->images < 1) return "\"images\" is 0";
    return c->a->tower_size > 0 ? "the model's pictures have one size" : NULL;
}

static const char *read_as(const ft_effect_case *c) { return c->a->nearest ? NULL : "the model's type is known"; }

/* -- several GPUs ------------------------------------------------------------------------------ */

static const char *tensor(const ft_effect_case *c) { return c->p->tp > 1 ? NULL : "\"tp\" is 1"; }

static const char *pieces(const ft_effect_case *c)
{
    return tensor(c) ? tensor(c) : c->p->sp ? NULL : "\"sp\" is false";
}

static const char *staged(const ft_effect_case *c) { return c->p->pp > 1 ? NULL : "\"pp\" is 1"; }

static const char *sending(const ft_effect_case *c)
{
    bool waits = c->p->schedule == FT_1F1B || c->p->schedule == FT_GPIPE;
    return staged(c) ? staged(c) : waits ? "stages of this schedule wait for what they send" : NULL;
}

static const char *dealing(const ft_effect_case *c)
{
    int64_t layers = ft__ranks_model(c->a, c->w).layers, places = c->p->pp * ft__parallel_chunks(c->p);
    if (staged(c)) return staged(c);
    return ft__layout_deal(layers, places, true) == FT_DEAL_REST ? NULL : "no layers are left over";
}

static const char *context(const ft_effect_case *c) { return c->p->cp > 1 ? NULL : "\"cp\" is 1"; }

static const char *sharing(const ft_effect_case *c)
{
    return !c->trains ? training(c) : c->shares ? NULL : "\"dp\" and \"cp\" are 1";
}

/* Megatron also sums gradients of norms over tensor ranks that split them, and of a tied table over two stages. */
static const char *reducing(const ft_effect_case *c)
{
    bool norms = c->p->tp > 1 && c->p->sp, tied = c->p->pp > 1 && c->a->tied;
    return c->trains && c->w->execution == FT_RUN_FUSED && (norms || tied) ? NULL : sharing(c);
}

static const char *sharded(const ft_effect_case *c)
{
    return sharing(c) ? sharing(c) : c->p->zero > 0 ? NULL : "\"zero\" is 0";
}

static const char *wholly_sharded(const ft_effect_case *c)
{
    return sharing(c) ? sharing(c) : c->p->zero == 3 ? NULL : "\"zero\" is not 3";
}

static const char *gathered_after(const ft_effect_case *c)
{
    bool after = c->p->zero == 1 || c->p->zero == 2;
    return sharing(c) ? sharing(c) : after ? NULL : "\"zero\" is not 1 or 2";
}

static const char *experts(const ft_effect_case *c)
{
    if (c->a->experts < 1) return "the model has no experts";
    return c->p->ep > 1 ? NULL : "\"ep\" is 1";
}

static const char *capacity(const ft_effect_case *c)
{
    double skew = ft__real_of(c->said, FT_KEY_ID_EXPERT_SKEW);
    if (experts(c)) return experts(c);
    return skew > ft__real_of(c->said, FT_KEY_ID_EXPERT_CAPACITY) ? NULL : "no expert gets more than that";
}

/* False is what happens anyway but in a dualpipe; true is refused where there is nothing to hide. */
static const char *expert_overlap(const ft_effect_case *c)
{
    if (!c->trains) return training(c);
    return c->p->expert_overlap != 0 || c->p->schedule == FT_DUALPIPE ? experts(c) : NULL;
}

static const char *expert_tensor(const ft_effect_case *c)
{
    return c->a->experts < 1 ? "the model has no experts" : tensor(c);
}

/* -- what joins them --------------------------------------------------------------------------- */

static const char *joined(const ft_effect_case *c)
{
    bool apart = !c->trains && c->p->tp < 2 && c->p->ep < 2;
    return c->ranks < 2 ? "one GPU" : apart ? "the ranks exchange nothing" : NULL;
}

static bool same_links(const ft_tier *a, const ft_tier *b)
{
    return a->fabric == b->fabric && a->gbps == b->gbps && a->efficiency == b->efficiency &&
           a->latency_us == b->latency_us && a->switched == b->switched && a->reduces == b->reduces;
}

/* The cluster as it would be without the key: where all ranks sit in one node of both, only its own links matter. */
static const char *network(const ft_effect_case *c, const char *key)
{
    if (joined(c)) return joined(c);
    const char *why = NULL;
    ft_cluster with, without;
    json_t *rest = json_copy((json_t *)(uintptr_t)c->r->cluster); /* of its keys: the values are shared */
    if (!rest || json_object_del(rest, key) != 0 ||
        ft__cluster_read(c->r->cluster, c->r->device, c->ranks, &with, NULL) != FT_OK ||
        ft__cluster_read(rest, c->r->device, c->ranks, &without, NULL) != FT_OK) {
        json_decref(rest); /* that something is wrong with it others say */
        return NULL;
    }
    bool one_node = c->ranks <= with.gpus_per_node && c->ranks <= without.gpus_per_node;
    bool usual = !strcmp(key, "gpus_per_node") && with.gpus_per_node == without.gpus_per_node; /* the default, said */
    if (one_node && !usual && same_links(&with.tier[0], &without.tier[0])) why = "all ranks are in one node";
    json_decref(rest);
    return why;
}

static const char *per_node(const ft_effect_case *c) { return network(c, "gpus_per_node"); }
static const char *interconnect(const ft_effect_case *c) { return network(c, "interconnect"); }
static const char *switches(const ft_effect_case *c)
{
    const char *how = json_string_value(json_object_get(c->r->cluster, "network"));
    bool simulated = how && !strcmp(how, "simgrid");
    if (joined(c)) return joined(c);
    return simulated ? NULL : "a step's exchanges are formulas that know no switches; \"network\": \"simgrid\" does";
}
static const char *simulated(const ft_effect_case *c) { return network(c, "network"); }

/* Nodes say how many there are; ranks fill the first of them. As many as are needed is the default. */
static const char *nodes(const ft_effect_case *c)
{
    ft_cluster cluster;
    json_int_t given = json_integer_value(json_object_get(c->r->cluster, "nodes"));
    if (ft__cluster_read(c->r->cluster, c->r->device, c->ranks, &cluster, NULL) != FT_OK) return NULL;
    return given > (c->ranks + cluster.gpus_per_node - 1) / cluster.gpus_per_node ? "the ranks fill fewer nodes" : NULL;
}

/* -- every key --------------------------------------------------------------------------------- */

static const ft_rule rules[FT_KEY_COUNT] = {
    [FT_KEY_ID_ID] = acts,
    [FT_KEY_ID_TASK] = acts,
    [FT_KEY_ID_GPU] = acts,
    [FT_KEY_ID_QUANTILE] = timed,
    [FT_KEY_ID_MODEL] = acts,
    [FT_KEY_ID_MICRO_BATCH] = acts,
    [FT_KEY_ID_GLOBAL_BATCH] = accumulating,
    [FT_KEY_ID_SEQ] = lengths,
    [FT_KEY_ID_MODEL_DTYPE] = acts,
    [FT_KEY_ID_WEIGHTS_DTYPE] = acts,
    [FT_KEY_ID_WEIGHTS_BY] = widening,
    [FT_KEY_ID_MODEL_KV_DTYPE] = cached,
    [FT_KEY_ID_CACHE] = cache_kind,
    [FT_KEY_ID_ATTENTION] = attending,
    [FT_KEY_ID_EXECUTION] = acts,
    [FT_KEY_ID_COMPILE_SCOPE] = compiled,
    [FT_KEY_ID_STACK] = stacked,
    [FT_KEY_ID_FUSIONS] = fused,
    [FT_KEY_ID_OPTIMIZER] = training,
    [FT_KEY_ID_MASTER_WEIGHTS] = training,
    [FT_KEY_ID_RECOMPUTE] = recomputing,
    [FT_KEY_ID_RECOMPUTE_MODULES] = modules,
    [FT_KEY_ID_LORA_RANK] = training,
    [FT_KEY_ID_LORA] = training,
    [FT_KEY_ID_CLIP_GRAD] = clipping,
    [FT_KEY_ID_LOSS] = losing,
    [FT_KEY_ID_PACKING] = packing,
    [FT_KEY_ID_POWER_CAP] = timed,
    [FT_KEY_ID_EMA] = updating,
    [FT_KEY_ID_MOMENTS] = moments,
    [FT_KEY_ID_IN_BACKWARD] = updating,
    [FT_KEY_ID_RECOMPUTE_LAYERS] = some_layers,
    [FT_KEY_ID_REMAT] = policies,
    [FT_KEY_ID_OFFLOAD] = offloading,
    [FT_KEY_ID_HOST_GBPS] = host_link,
    [FT_KEY_ID_NVME_GBPS] = drives,
    [FT_KEY_ID_TRAINER] = training,
    [FT_KEY_ID_REFERENCE] = training,
    [FT_KEY_ID_ROLLOUT] = generating,
    [FT_KEY_ID_HOST] = hosted,
    [FT_KEY_ID_HOST_US] = dispatched,
    [FT_KEY_ID_IMAGE_LAYOUT] = images,
    [FT_KEY_ID_IMAGES] = pictures,
    [FT_KEY_ID_IMAGE_SIZE] = picture_size,
    [FT_KEY_ID_READ_AS] = read_as,
    [FT_KEY_ID_PARALLEL] = acts,
    [FT_KEY_ID_CLUSTER] = acts,
    [FT_KEY_ID_TRAIN_TOKENS] = days,
    [FT_KEY_ID_DETAIL] = timed,
    [FT_KEY_ID_ADVICE] = timed,
    [FT_KEY_ID_TECHNIQUES] = timed,
    [FT_KEY_ID_COURSE] = timed,
    [FT_KEY_ID_LOADER] = timed,
    [FT_KEY_ID_TP] = acts,
    [FT_KEY_ID_PP] = acts,
    [FT_KEY_ID_VPP] = staged,
    [FT_KEY_ID_DP] = acts,
    [FT_KEY_ID_GPUS] = acts,
    [FT_KEY_ID_CP] = acts,
    [FT_KEY_ID_EP] = acts,
    [FT_KEY_ID_ETP] = expert_tensor,
    [FT_KEY_ID_ZERO] = sharing,
    [FT_KEY_ID_SP] = tensor,
    [FT_KEY_ID_SCHEDULE] = staged,
    [FT_KEY_ID_OVERLAP] = sharing,
    [FT_KEY_ID_TP_OVERLAP] = pieces,
    [FT_KEY_ID_DEAL] = dealing,
    [FT_KEY_ID_CP_KIND] = context,
    [FT_KEY_ID_ULYSSES] = context,
    [FT_KEY_ID_GATHER] = wholly_sharded,
    [FT_KEY_ID_SHARD] = sharded,
    [FT_KEY_ID_RESHARD] = wholly_sharded,
    [FT_KEY_ID_GATHER_OVERLAP] = gathered_after,
    [FT_KEY_ID_OVERLAP_P2P] = sending,
    [FT_KEY_ID_EXPERT_DISPATCH] = experts,
    [FT_KEY_ID_EXPERT_OVERLAP] = expert_overlap,
    [FT_KEY_ID_EXPERT_SKEW] = experts,
    [FT_KEY_ID_EXPERT_CAPACITY] = capacity,
    [FT_KEY_ID_BUCKET] = sharing,
    [FT_KEY_ID_REDUCE_DTYPE] = reducing,
    [FT_KEY_ID_GATHER_DTYPE] = sharded,
    [FT_KEY_ID_NODES] = nodes,
    [FT_KEY_ID_GPUS_PER_NODE] = per_node,
    [FT_KEY_ID_INTERCONNECT] = interconnect,
    [FT_KEY_ID_TOPOLOGY] = switches,
    [FT_KEY_ID_OVERSUBSCRIPTION] = switches,
    [FT_KEY_ID_LEAF_NODES] = switches,
    [FT_KEY_ID_NCCL] = joined,
    [FT_KEY_ID_NETWORK] = simulated,
    [FT_KEY_ID_TIERS] = joined,
    [FT_KEY_ID_DISK_RATE] = timed,
    [FT_KEY_ID_DISK_GBPS] = timed,
    [FT_KEY_ID_SAMPLE_BYTES] = timed,
    [FT_KEY_ID_WORKERS] = timed,
    [FT_KEY_ID_WORKER_MS] = timed,
    [FT_KEY_ID_PINNED] = timed,
    [FT_KEY_ID_ADAPTER_RANK] = acts,
    [FT_KEY_ID_ADAPTER_TARGETS] = acts,
    [FT_KEY_ID_ADAPTER_DTYPE] = adapter_format,
    [FT_KEY_ID_ADAPTER_DROPOUT] = acts,
    [FT_KEY_ID_ADAPTER_ALPHA] = acts,
    [FT_KEY_ID_ADAPTER_EMBEDDINGS] = acts,
    [FT_KEY_ID_ADAPTER_DORA] = acts,
};

static bool of_a_model(ft_section section)
{
    return section == FT_SECTION_COMMON || section == FT_SECTION_MODEL || section == FT_SECTION_PARALLEL ||
           section == FT_SECTION_CLUSTER || section == FT_SECTION_LOADER || section == FT_SECTION_LORA;
}

/* The cluster's keys are read elsewhere: what they say is looked up. */
static bool repeats_default(const ft_effect_case *c, ft_key_id id)
{
    const ft_key_row *k = &ft__keys[id];
    const ft_said_value *v = &c->said->at[id];
    if (isnan(k->standard)) return false;
    if (k->section == FT_SECTION_CLUSTER) {
        const json_t *said = json_object_get(c->r->cluster, k->key);
        if (k->type == FT_KEY_WORD) return json_is_string(said) && !strcmp(json_string_value(said), k->words[0]);
        return json_number_value(said) == k->standard;
    }
    return k->type == FT_KEY_REAL ? v->real == k->standard : v->whole == (int64_t)k->standard;
}

static bool given(const ft_effect_case *c, ft_key_id id)
{
    if (ft__keys[id].section != FT_SECTION_CLUSTER) return ft__given(c->said, id);
    return c->r->cluster && json_object_get(c->r->cluster, ft__keys[id].key);
}

ft_status ft__request_effects(const ft_said *said, ft_model_request *r, ft_error *err)
{
    const ft_parallel *p = &r->parallel;
    bool trains = r->work.task == FT_TRAIN;
    ft_effect_case c = {.said = said,
                        .r = r,
                        .p = p,
                        .w = &r->work,
                        .a = r->arch,
                        .ranks = ft__parallel_ranks(p),
                        .trains = trains,
                        .shares = trains && p->dp * p->cp > 1};
    r->idle_count = 0;
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        ft_key_id id = (ft_key_id)i;
        if (!of_a_model(ft__keys[i].section)) continue;
        if (!rules[i]) return ft__fail(err, FT_E_BUG, "\"%s\" has no rule in effects.c", ft__keys[i].key);
        if (!given(&c, id) || repeats_default(&c, id)) continue;
        const char *why = rules[i](&c);
        if (why) r->idle[r->idle_count++] = (ft_idle_key){id, why};
    }
    return FT_OK;
}
