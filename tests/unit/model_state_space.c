/* Mamba-2: parameters, the kernels that a profiler saw the written-out recurrence launch (transformers 5.17 without the
 * mamba-ssm kernels, PyTorch 2.11, H200), the fused kernels, and what must hold for both. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "graph_fixture.h"
#include "import/config/config.h"
#include "model/workload.h"

static const char small[] =
    "{\"model_type\":\"mamba2\",\"hidden_size\":1536,\"num_heads\":48,\"head_dim\":64,\"n_groups\":1,"
    "\"vocab_size\":50288,\"num_hidden_layers\":3,\"tie_word_embeddings\":true}";

static ft_workload bf16(ft_task task, int64_t batch, int64_t seq)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = batch,
                         .seq = seq,
                         .attention = FT_SDPA,
                         .execution = FT_RUN_EAGER,
                         .cache = FT_CACHE_DYNAMIC,
                         .accumulate = 1};
}

static const ft_graph *built(fixture *f, const char *text, ft_workload work)
{
    json_t *config = NULL;
    ft_arch arch;
    assert_int_equal(FT_OK, ft__json_parse(text, strlen(text), "test", &config, &f->err));
    if (ft__config_read(config, NULL, "model", &arch, &f->err) != FT_OK ||
        ft__model_graph(&arch, &work, f->arena, &f->graph, &f->err) != FT_OK)
        fail_msg("%s: %s", text, f->err.message);
    json_decref(config);
    return f->graph;
}

static double launches(const ft_graph *g, ft_phase phase)
{
    double sum = 0;
    for (int32_t i = 0; i < g->block_count; i++)
        for (int32_t n = g->blocks[i].first; n < g->blocks[i].first + g->blocks[i].count; n++)
            if (g->nodes[n].phase == phase && ft__node_runs(&g->nodes[n]))
                sum += (double)g->nodes[n].count * (double)g->blocks[i].repeat;
    return sum;
}

static double widest(const ft_graph *g)
{
    double most = 0;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == FT_ACTIVATION && g->tensors[i].storage == i)
            most = fmax(most, ft__tensor_bytes(&g->tensors[i]));
    return most;
}

static double role_bytes(const ft_graph *g, ft_role role)
{
    double sum = 0;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == role && g->tensors[i].storage == i)
            sum += ft__tensor_bytes(&g->tensors[i]) * (double)g->tensors[i].copies;
    return sum;
}

/* -- against what is known ------------------------------------------------------------------------- */

static void parameters_are_those_of_the_library(void **state)
{
    static const struct {
        const char *config;
        double parameters;
    } known[] = {
        {small, 121176240},
        {"{\"model_type\":\"mamba2\",\"hidden_size\":768,\"num_heads\":24,\"n_groups\":1,\"vocab_size\":50288,"
         "\"num_hidden_layers\":24,\"tie_word_embeddings\":true}",
         128989632}, /* mamba2-130m */
        {"{\"model_type\":\"mamba2\",\"hidden_size\":2560,\"num_heads\":80,\"n_groups\":1,\"vocab_size\":50288,"
         "\"num_hidden_layers\":64,\"tie_word_embeddings\":true}",
         2702599680}, /* mamba2-2.7b */
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int execution = FT_RUN_EAGER; execution <= FT_RUN_FUSED; execution++)
            for (int task = 0; task < FT_TASK_COUNT; task++) {
                ft_workload work = bf16((ft_task)task, 1, 300);
                work.execution = (ft_execution)execution;
                const ft_graph *g = built(f, known[i].config, work);
                if (g->parameters != known[i].parameters)
                    fail_msg("%s, task %d: %.0f parameters, known are %.0f", known[i].config, task, g->parameters,
                             known[i].parameters);
            }
}

static void launches_are_those_of_the_profiler(void **state)
{
    static const struct {
        ft_task task;
        int64_t batch;
        double seen;
    } cases[] = {{FT_FORWARD_PASS, 1, 295}, {FT_TRAIN, 1, 299}, {FT_PREFILL, 2, 307}, {FT_DECODE, 8, 148}};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ft_graph *g = built(f, small, bf16(cases[i].task, cases[i].batch, 1024));
        double count = launches(g, FT_FORWARD);
        if (fabs(count - cases[i].seen) > 0.02 * cases[i].seen)
            fail_msg("task %d: %g launches, seen were %g", (int)cases[i].task, count, cases[i].seen);
    }
}

/* The profiler saw 6,442,450,944 bytes taken by one product: [4 chunks, 256, 256, 48 heads, 128] in fp32. */
static void the_written_out_scan_makes_the_tensor_that_was_seen(void **state)
{
    fixture *f = *state;
    assert_true(widest(built(f, small, bf16(FT_FORWARD_PASS, 1, 1024))) == 6442450944.0);
}

/* -- what must hold ----------------------------------------------------------------------------------- */

static void fused_kernels_are_few_and_small(void **state)
{
    fixture *f = *state;
    const ft_graph *g = built(f, small, bf16(FT_TRAIN, 1, 1024));
    double many = launches(g, FT_FORWARD), large = widest(g);
    ft_workload fused = bf16(FT_TRAIN, 1, 1024);
    fused.execution = FT_RUN_FUSED;
    g = built(f, small, fused);
    assert_true(launches(g, FT_FORWARD) < many / 4);
    assert_true(widest(g) < large / 20);
    /* Compiled graphs have them too, replayed or not. */
    for (int way = FT_RUN_COMPILE; way <= FT_RUN_CUDA_GRAPH; way++) {
        fused.execution = (ft_execution)way;
        assert_true(widest(built(f, small, fused)) < large / 20);
    }
}

static void every_parameter_gets_a_gradient(void **state)
{
    fixture *f = *state;
    ft_workload fused = bf16(FT_TRAIN, 1, 1024);
    fused.execution = FT_RUN_FUSED;
    const ft_graph *g = built(f, small, fused);
    double gradients = 0;
    for (int32_t t = 0; t < g->tensor_count; t++)
        if (g->tensors[t].role == FT_GRADIENT && g->tensors[t].storage == t && *g->tensors[t].name)
            gradients += ft__tensor_numel(&g->tensors[t]) * (double)g->tensors[t].copies;
    assert_true(gradients == g->parameters);
}

static void the_state_does_not_grow_with_the_text(void **state)
{
    fixture *f = *state;
    double brief = role_bytes(built(f, small, bf16(FT_DECODE, 4, 128)), FT_CACHE);
    double lengthy = role_bytes(built(f, small, bf16(FT_DECODE, 4, 65536)), FT_CACHE);
    assert_true(brief > 0 && brief == lengthy);
    /* per layer and sequence: 48 heads of 64 x 128 in fp32, and 3328 channels of the last 4 tokens in bf16 */
    assert_true(brief == 3.0 * 4 * (48.0 * 64 * 128 * 4 + 3328.0 * 4 * 2));
}

static void longer_texts_are_more_work_and_padding_counts(void **state)
{
    fixture *f = *state;
    double brief = widest(built(f, small, bf16(FT_FORWARD_PASS, 1, 1024)));
    double padded = widest(built(f, small, bf16(FT_FORWARD_PASS, 1, 1025)));
    double twice = widest(built(f, small, bf16(FT_FORWARD_PASS, 1, 2048)));
    assert_true(padded == 1.25 * brief); /* a fifth chunk for one token */
    assert_true(twice == 2 * brief);
}

static void texts_beyond_any_machine_are_refused(void **state)
{
    fixture *f = *state;
    ft_workload work = bf16(FT_TRAIN, 1, (int64_t)1 << 50);
    json_t *config = NULL;
    ft_arch arch;
    assert_int_equal(FT_OK, ft__json_parse(small, strlen(small), "test", &config, &f->err));
    assert_int_equal(FT_OK, ft__config_read(config, NULL, "model", &arch, &f->err));
    json_decref(config);
    assert_int_equal(FT_E_RANGE, ft__model_graph(&arch, &work, f->arena, &f->graph, &f->err));
}

/* What is written out as terms and sums is counted as the products that it is, forward and twice as much back; nodes
 * that are products by name know nothing of it. */
static void terms_that_are_summed_are_products(void **state)
{
    fixture *f = *state;
    const int64_t tokens = 256, side = 256, heads = 48, dim = 64, n = 128, layers = 3;
    const double pairs = (double)(tokens * side * heads), cells = (double)(tokens * heads * dim);
    const double inside = pairs * (double)(n + dim), between = 2 * cells * (double)n,
                 ends = 4.0 * (double)(heads * dim * n);
    const ft_graph *g = built(f, small, bf16(FT_TRAIN, 1, tokens));
    double forward = 0, back = 0;
    for (int32_t i = 0; i < g->block_count; i++)
        for (int32_t k = g->blocks[i].first; k < g->blocks[i].first + g->blocks[i].count; k++) {
            const ft_node *node = &g->nodes[k];
            if (!node->contracts) continue;
            assert_int_equal(node->op.kind, FT_OP_ELEMENTWISE);
            *(node->phase == FT_FORWARD ? &forward : &back) += (double)node->op.u.elementwise.numel *
                                                               (double)g->blocks[i].repeat;
        }
    assert_true(fabs(forward / ((double)layers * (inside + between + ends)) - 1) < 1e-6);
    assert_true(fabs(back / forward - 2) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_those_of_the_library),
        cmocka_unit_test(launches_are_those_of_the_profiler),
        cmocka_unit_test(terms_that_are_summed_are_products),
        cmocka_unit_test(the_written_out_scan_makes_the_tensor_that_was_seen),
        cmocka_unit_test(fused_kernels_are_few_and_small),
        cmocka_unit_test(every_parameter_gets_a_gradient),
        cmocka_unit_test(the_state_does_not_grow_with_the_text),
        cmocka_unit_test(longer_texts_are_more_work_and_padding_counts),
        cmocka_unit_test(texts_beyond_any_machine_are_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
