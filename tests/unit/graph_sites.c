/* Names decide nothing: a model whose nodes, blocks and parameters are called by numbers takes the same time and the
 * same memory, to the bit, however it is run and cut. */
#include <stdio.h>

#include "import/site.h"
#include "model/parts.h"
#include "ranks_rig.h"

/* -- numbers for names ------------------------------------------------------------------------------ */

typedef struct renamed {
    ft_at was, is;
} renamed;

typedef struct renamer {
    ft_arena *arena;
    renamed done[512];
    int count;
    int64_t number;
} renamer;

static const char *number(renamer *r)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%lld", (long long)++r->number);
    char *kept = ft__arena_copy(r->arena, text, (size_t)length);
    assert_non_null(kept);
    return kept;
}

/* Another address and another name; one for each that there was, and modules stay modules. */
static ft_at renumbered(renamer *r, ft_at was)
{
    for (int i = 0; i < r->count; i++)
        if (r->done[i].was == was) return r->done[i].is;
    ft_site_info *is = ft__arena_array(r->arena, 1, sizeof *is);
    assert_true(is != NULL && r->count < 512);
    *is = *was;
    is->name = number(r);
    r->done[r->count++] = (renamed){was, is};
    is->of = was->of == was ? is : renumbered(r, was->of);
    return is;
}

static void rename_graph(ft_graph *g)
{
    renamer r = {.arena = g->arena};
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_node *n = &g->nodes[i];
        assert_non_null(n->at);
        assert_string_equal(n->name, n->at->name);
        n->at = renumbered(&r, n->at);
        n->name = n->at->name;
    }
    for (int32_t b = 0; b < g->block_count; b++) g->blocks[b].name = number(&r);
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (*g->tensors[i].name) g->tensors[i].name = number(&r);
}

static void make_renamed(ft_maker *m)
{
    ft__make_design(m);
    if (m->b.status == FT_OK) rename_graph(m->b.g);
}

static void release_nothing(void *file) { (void)file; }

static const ft_importer renaming = {.make = make_renamed, .release = release_nothing};

/* -- the comparison --------------------------------------------------------------------------------- */

static void assert_same(const char *model, const char *how, const ft_step *a, const ft_step *b)
{
    const struct {
        const char *what;
        double a, b;
    } figures[] = {
        {"step", a->step_ms, b->step_ms},
        {"low", a->low_ms, b->low_ms},
        {"high", a->high_ms, b->high_ms},
        {"busy", a->busy_ms, b->busy_ms},
        {"host", a->host_ms, b->host_ms},
        {"launches", a->launches, b->launches},
        {"exchanges", a->comm_ms, b->comm_ms},
        {"exposed", a->comm_exposed_ms, b->comm_exposed_ms},
        {"bubble", a->bubble_ms, b->bubble_ms},
        {"executed", a->executed_flops, b->executed_flops},
        {"weights", a->memory.weights_bytes, b->memory.weights_bytes},
        {"gradients", a->memory.gradients_bytes, b->memory.gradients_bytes},
        {"optimizer", a->memory.optimizer_bytes, b->memory.optimizer_bytes},
        {"activations", a->memory.activations_bytes, b->memory.activations_bytes},
        {"temporary", a->memory.temporary_bytes, b->memory.temporary_bytes},
        {"peak", a->memory.peak_bytes, b->memory.peak_bytes},
        {"reserved", a->memory.reserved_bytes, b->memory.reserved_bytes},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (memcmp(&figures[i].a, &figures[i].b, sizeof(double)) != 0)
            fail_msg("%s, %s: %s is %.17g, and %.17g under other names", model, how, figures[i].what, figures[i].a,
                     figures[i].b);
}

typedef struct way {
    const char *how;
    ft_parallel layout;
    ft_workload work;
} way;

/* The same work on a model of any design. */
static ft_workload fit(const ft_arch *a, ft_workload work)
{
    if (a->design != FT_DECODER_ONLY && a->design != FT_STATE_SPACE) work.seq = 64;
    return work;
}

static ft_status run(rig *r, const way *w, bool under_numbers)
{
    ft_error err;
    ft_graph *g;
    ft__arena_reset(r->arena);
    r->work = fit(&r->arch, w->work);
    r->parallel = w->layout;
    r->arch.importer = under_numbers ? &renaming : NULL;
    ft_ranks ranks = ranks_of(r);
    ft_divisible model = ft__ranks_model(&r->arch, &r->work);
    bool alone = w->layout.tp * w->layout.pp * w->layout.cp * w->layout.dp == 1;
    ft_status status = ft__parallel_check(&r->parallel, &model, &err);
    if (status == FT_OK && !alone) status = ft__ranks_forecast(&ranks, &r->step, &r->ranked, &g, &err);
    if (status == FT_OK && alone) status = ft__model_graph(&r->arch, &r->work, r->arena, &g, &err);
    if (status == FT_OK && alone)
        status = ft__step_forecast(g, &r->work, &r->device, predictor, 0.9, r->memo, r->arena, &r->step, &err);
    r->arch.importer = NULL;
    return status;
}

/* In how many of these ways the model can be run; all of them are compared. */
static int compare(const char *model, const way *ways, size_t count)
{
    rig r = {.arena = ft__arena_new(0), .memo = ft__memo_new(), .device = limit_device("h200_sxm")};
    int done = 0;
    r.arch = open_model(model);
    r.cluster = connected_nodes(64);
    for (size_t i = 0; i < count; i++) {
        if (run(&r, &ways[i], false) != FT_OK) continue; /* not this design, or it does not divide */
        const ft_step named = r.step;
        if (run(&r, &ways[i], true) != FT_OK) fail_msg("%s, %s: refused under other names", model, ways[i].how);
        assert_same(model, ways[i].how, &named, &r.step);
        done++;
    }
    end(&r);
    return done;
}

static ft_workload working(ft_execution execution, ft_recompute recompute, unsigned again)
{
    ft_workload w = train_work(8, 512);
    w.execution = execution;
    w.recompute = recompute;
    w.again = again;
    w.master_weights = execution == FT_RUN_FUSED;
    return w;
}

static void one_gpu(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.2-1b",  "gpt2",        "qwen3-30b-a3b", "deepseek-v2-lite",
                                         "gpt-oss-20b",   "bert-base",   "t5-small",      "switch-base-8",
                                         "whisper-base",  "vit-b-16",    "clip-vit-l-14", "resnet-50",
                                         "convnext-tiny", "mamba2-130m", "dit-s-2",       "wav2vec2-base",
                                         "sd3-medium",    "wan2.1-1.3b", "sd-1.5-unet",   "vae-sd"};
    const unsigned small = 1u << FT_MODULE_LAYERNORM | 1u << FT_MODULE_MOE_ACT | 1u << FT_MODULE_MLA_UP_PROJ;
    const unsigned large = 1u << FT_MODULE_MLP | 1u << FT_MODULE_MOE | 1u << FT_MODULE_SHARED_EXPERTS;
    const ft_parallel alone = layout_of(1, 1, 1, 1, 1);
    way ways[] = {{"eager", alone, working(FT_RUN_EAGER, FT_RECOMPUTE_NONE, 0)},
                  {"eager, every layer again", alone, working(FT_RUN_EAGER, FT_RECOMPUTE_FULL, 0)},
                  {"eager, every other product again", alone, working(FT_RUN_EAGER, FT_RECOMPUTE_SELECTIVE, 0)},
                  {"eager, scores written out", alone, working(FT_RUN_EAGER, FT_RECOMPUTE_NONE, 0)},
                  {"eager, adapters", alone, working(FT_RUN_EAGER, FT_RECOMPUTE_NONE, 0)},
                  {"eager, forward", alone, working(FT_RUN_EAGER, FT_RECOMPUTE_NONE, 0)},
                  {"compiled", alone, working(FT_RUN_COMPILE, FT_RECOMPUTE_NONE, 0)},
                  {"fused", alone, working(FT_RUN_FUSED, FT_RECOMPUTE_NONE, 0)},
                  {"fused, small modules again", alone, working(FT_RUN_FUSED, FT_RECOMPUTE_SELECTIVE, small)},
                  {"fused, large modules again", alone, working(FT_RUN_FUSED, FT_RECOMPUTE_SELECTIVE, large)}};
    ways[3].work.attention = FT_EAGER;
    ways[4].work.lora_rank = 8;
    ways[5].work.task = FT_FORWARD_PASS;
    ways[5].work.optimizer = FT_NO_OPTIMIZER;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (compare(models[i], ways, sizeof ways / sizeof *ways) < 5) fail_msg("%s: hardly ran", models[i]);
}

static void many_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int least; /* of the ways below */
    } models[] = {{"llama-3.2-1b", 6}, {"qwen3-30b-a3b", 9}, {"deepseek-v2-lite", 8},
                  {"mixtral-8x7b", 9}, {"gpt-oss-20b", 6},   {"gemma-2-9b", 5},
                  {"bert-base", 4},    {"vit-b-16", 3},      {"t5-small", 2}};
    const ft_workload fused = working(FT_RUN_FUSED, FT_RECOMPUTE_NONE, 0);
    const ft_workload eager = working(FT_RUN_EAGER, FT_RECOMPUTE_SELECTIVE, 0);
    way ways[] = {{"tp 2", layout_of(2, 1, 1, 1, 1), fused},
                  {"tp 4 with sp", layout_of(4, 1, 1, 1, 1), fused},
                  {"pp 2", layout_of(1, 2, 1, 1, 1), fused},
                  {"cp 2", layout_of(1, 1, 2, 1, 1), fused},
                  {"zero 3", layout_of(1, 1, 1, 1, 4), eager},
                  {"zero 3 by the tensor", layout_of(1, 1, 1, 1, 4), fused},
                  {"ddp", layout_of(1, 1, 1, 1, 8), eager},
                  {"ep 4", layout_of(1, 1, 1, 4, 4), fused},
                  {"ep 4, tp 2 with sp, pp 2", layout_of(2, 2, 1, 4, 4), fused},
                  {"ep 8, its exchanges hidden", layout_of(1, 2, 1, 8, 8), fused},
                  {"tp 2, decoding", layout_of(2, 1, 1, 1, 1), fused},
                  {"ep 2, tp 2, eager", layout_of(2, 1, 1, 2, 2), eager}};
    ways[1].layout.sp = ways[8].layout.sp = true;
    ways[4].layout.zero = ways[5].layout.zero = 3;
    ways[9].layout.schedule = FT_DUALPIPE;
    ways[9].work.accumulate = 8;
    ways[10].work.task = FT_DECODE;
    ways[10].work.cache = FT_CACHE_PAGED;
    ways[10].work.optimizer = FT_NO_OPTIMIZER;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        int done = compare(models[i].model, ways, sizeof ways / sizeof *ways);
        if (done < models[i].least) fail_msg("%s: ran in %d ways", models[i].model, done);
    }
}

/* -- sites ------------------------------------------------------------------------------------------ */

static bool stands(const ft_graph *g, ft_at at, ft_phase phase)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == phase && g->nodes[i].at == at) return true;
    return false;
}

/* But for sums of gradients, which are nobody's. */
static void gradients_stand_where_their_node_does(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_arch arch = open_model("deepseek-v2-lite");
    ft_workload work = working(FT_RUN_EAGER, FT_RECOMPUTE_FULL, 0);
    ft_graph *g;
    ft_error err;
    int back = 0;
    assert_int_equal(ft__model_graph(&arch, &work, arena, &g, &err), FT_OK);
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (n->phase == FT_UPDATE || n->at->site == FT_SITE_ACCUMULATE) continue;
        if (!stands(g, n->at, FT_FORWARD)) fail_msg("%s, in the %s pass", n->name, ft__phase_name(n->phase));
        back += n->phase != FT_FORWARD;
    }
    assert_true(back > 100);
    ft__arena_free(arena);
}

static void sites_survive_want(void **state)
{
    (void)state;
    int failed = 0, done = 0;
    for (size_t cap = 512; cap < 65536; cap += cap / 8) {
        ft_arena *arena = ft__arena_new(cap);
        ft_graph *g = ft__graph_new(arena, FT_BF16);
        bool all = g != NULL;
        for (int i = 0; g && i < 200 && all; i++) {
            char name[24];
            snprintf(name, sizeof name, "m%d.x", i);
            all = ft__import_site(g, name) != NULL;
        }
        failed += !all;
        done += all;
        ft__arena_free(arena);
    }
    assert_true(failed > 3 && done > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gpu),
        cmocka_unit_test(many_gpus),
        cmocka_unit_test(gradients_stand_where_their_node_does),
        cmocka_unit_test(sites_survive_want),
    };
    return cmocka_run_group_tests(tests, open_predictor, close_predictor);
}
