/* Models with an encoder: bert, roberta, t5, switch_transformers, whisper. Parameters as published; kernels and
 * products as a profiler counted them (transformers 5.17, PyTorch 2.11, H200); what must hold whatever the sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "failing_alloc.h"
#include "import/config/config.h"
#include "model/workload.h"

#define BERT "{\"model_type\":\"bert\",\"num_hidden_layers\":6,\"architectures\":[\"BertForMaskedLM\"]}"
#define ROBERTA                                                                                               \
    "{\"model_type\":\"roberta\",\"hidden_size\":1024,\"intermediate_size\":4096,\"num_attention_heads\":16," \
    "\"num_hidden_layers\":4,\"max_position_embeddings\":514,\"type_vocab_size\":1,\"architectures\":["       \
    "\"RobertaForMaskedLM\"]}"
#define T5(rest) "{\"model_type\":\"t5\",\"d_model\":1024,\"d_ff\":4096,\"num_layers\":4,\"num_heads\":16" rest "}"
#define SWITCH                                                                                         \
    "{\"model_type\":\"switch_transformers\",\"d_ff\":3072,\"num_layers\":4,\"num_decoder_layers\":4," \
    "\"num_sparse_encoder_layers\":2,\"num_sparse_decoder_layers\":2}"
#define WHISPER                                                                                                  \
    "{\"model_type\":\"whisper\",\"d_model\":768,\"encoder_attention_heads\":12,\"decoder_attention_heads\":12," \
    "\"encoder_ffn_dim\":3072,\"decoder_ffn_dim\":3072}"

typedef struct fixture {
    ft_arena *arena;
    ft_graph *graph;
    ft_error err;
} fixture;

static int open_arena(void **state)
{
    static fixture f;
    f = (fixture){.arena = ft__arena_new(0)};
    *state = &f;
    return f.arena ? 0 : -1;
}

static int close_arena(void **state)
{
    ft__arena_free(((fixture *)*state)->arena);
    return 0;
}

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
                         .optimizer = FT_ADAMW,
                         .accumulate = 1};
}

static ft_status attempt(fixture *f, const char *text, ft_workload work)
{
    json_t *config = NULL;
    ft_arch arch;
    memset(&f->err, 0, sizeof f->err);
    ft__arena_reset(f->arena);
    if (ft__json_parse(text, strlen(text), "test", &config, &f->err) != FT_OK) fail_msg("%s: %s", text, f->err.message);
    ft_status status = ft__config_read(config, NULL, "model", &arch, &f->err);
    json_decref(config);
    if (status != FT_OK) fail_msg("%s: %s", text, f->err.message);
    return ft__model_graph(&arch, &work, f->arena, &f->graph, &f->err);
}

static const ft_graph *built(fixture *f, const char *text, ft_workload work)
{
    if (attempt(f, text, work) != FT_OK) fail_msg("%s: %s", text, f->err.message);
    return f->graph;
}

/* Adds something up over every node as often as it is launched. */
typedef double measure(const ft_node *n);
static double one(const ft_node *n) { return ft__node_runs(n) ? 1 : 0; }
static double product(const ft_node *n) { return n->op.kind == FT_OP_GEMM ? 1 : 0; }
static double flops(const ft_node *n) { return ft__op_flops(&n->op); }
static double bytes(const ft_node *n) { return ft__op_bytes(&n->op); }
static double waits(const ft_node *n) { return n->synced ? 1 : 0; }
static double attends(const ft_node *n) { return n->op.kind == FT_OP_ATTENTION ? 1 : 0; }

static double sum(const ft_graph *g, ft_phase phase, measure *of)
{
    double all = 0;
    for (int32_t i = 0; i < g->block_count; i++)
        for (int32_t n = g->blocks[i].first; n < g->blocks[i].first + g->blocks[i].count; n++)
            if (g->nodes[n].phase == phase)
                all += of(&g->nodes[n]) * (double)g->nodes[n].count * (double)g->blocks[i].repeat;
    return all;
}

static double role_bytes(const ft_graph *g, ft_role role)
{
    double all = 0;
    for (int32_t i = 0; i < g->tensor_count; i++)
        if (g->tensors[i].role == role && g->tensors[i].storage == i)
            all += ft__tensor_bytes(&g->tensors[i]) * (double)g->tensors[i].copies;
    return all;
}

static bool has_block(const ft_graph *g, const char *name)
{
    for (int32_t i = 0; i < g->block_count; i++)
        if (!strcmp(g->blocks[i].name, name)) return true;
    return false;
}

/* -- against what is known ---------------------------------------------------------------------- */

static void parameters_are_as_published(void **state)
{
    static const struct {
        const char *config;
        double parameters;
    } known[] = {
        {BERT, 66987066},
        {ROBERTA, 103487577},
        {T5(""), 150363136},
        {SWITCH, 222897408},
        {WHISPER, 109436160},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertModel\"]}", 109482240},
        {"{\"model_type\":\"bert\",\"hidden_size\":1024,\"intermediate_size\":4096,\"num_hidden_layers\":24,"
         "\"num_attention_heads\":16,\"architectures\":[\"BertForPreTraining\"]}",
         336226108},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification\"]}", 109483778},
        {"{\"model_type\":\"t5\",\"d_model\":1024,\"d_ff\":4096,\"num_layers\":24,\"num_heads\":16}", 737668096},
        {"{\"model_type\":\"t5\",\"d_model\":1024,\"d_ff\":4096,\"num_layers\":24,\"num_heads\":16,"
         "\"architectures\":[\"T5EncoderModel\"]}",
         334939648},
        /* t5-v1.1-small: gated, its head untied */
        {"{\"model_type\":\"t5\",\"d_model\":512,\"d_ff\":1024,\"num_layers\":8,\"num_heads\":6,\"feed_forward_proj\":"
         "\"gated-gelu\",\"tie_word_embeddings\":false}",
         76961152},
        /* whisper-large-v3 */
        {"{\"model_type\":\"whisper\",\"d_model\":1280,\"encoder_layers\":32,\"decoder_layers\":32,"
         "\"encoder_attention_heads\":20,\"decoder_attention_heads\":20,\"encoder_ffn_dim\":5120,"
         "\"decoder_ffn_dim\":5120,\"num_mel_bins\":128,\"vocab_size\":51866}",
         1543490560},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int task = FT_TRAIN; task <= FT_FORWARD_PASS; task++) {
            const ft_graph *g = built(f, known[i].config, bf16((ft_task)task, 1, 64));
            if (g->parameters != known[i].parameters)
                fail_msg("%s: %.0f parameters, published are %.0f", known[i].config, g->parameters,
                         known[i].parameters);
        }
}

static const struct {
    const char *config;
    int64_t batch, seq;
    ft_attention_kind attention;
    double products, forward, training, backward; /* operators with kernels; switch's forward counts kernels */
} seen[] = {
    {BERT, 16, 512, FT_SDPA, 38, 84, 99, 195},     {ROBERTA, 16, 512, FT_SDPA, 26, 68, 79, 138},
    {T5(""), 8, 512, FT_SDPA, 81, 491, 539, 782},  {SWITCH, 8, 512, FT_EAGER, 149, 900, 990, 1642},
    {WHISPER, 8, 448, FT_SDPA, 65, 220, 228, 345},
};

static void products_are_those_of_the_profiler(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ft_workload work = bf16(FT_TRAIN, seen[i].batch, seen[i].seq);
        work.attention = seen[i].attention;
        const ft_graph *g = built(f, seen[i].config, work);
        if (sum(g, FT_FORWARD, product) != seen[i].products || sum(g, FT_BACKWARD, product) != 2 * seen[i].products)
            fail_msg("%s: %g products forward, %g backward; seen were %g and twice that", seen[i].config,
                     sum(g, FT_FORWARD, product), sum(g, FT_BACKWARD, product), seen[i].products);
    }
}

static void near(const char *what, const char *config, double got, double expected, double tolerance)
{
    if (fabs(got - expected) > tolerance * expected) fail_msg("%s: %s %g, seen were %g", config, what, got, expected);
}

static void launches_are_those_of_the_profiler(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ft_workload work = bf16(FT_FORWARD_PASS, seen[i].batch, seen[i].seq);
        work.attention = seen[i].attention;
        bool loops = !strcmp(seen[i].config, SWITCH);
        near("forward", seen[i].config, sum(built(f, seen[i].config, work), FT_FORWARD, one), seen[i].forward, 0.02);
        work.task = FT_TRAIN;
        const ft_graph *g = built(f, seen[i].config, work);
        near("in training", seen[i].config, sum(g, FT_FORWARD, one), seen[i].training, 0.03);
        /* Scatters of a loop over experts are nine kernels that stand here as one. */
        near("backward", seen[i].config, sum(g, FT_BACKWARD, one), seen[i].backward, loops ? 0.35 : 0.08);
    }
}

static void every_trained_parameter_gets_a_gradient(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        const ft_graph *g = built(f, seen[i].config, bf16(FT_TRAIN, 2, 64));
        double gradients = 0;
        for (int32_t t = 0; t < g->tensor_count; t++)
            if (g->tensors[t].role == FT_GRADIENT && g->tensors[t].storage == t && *g->tensors[t].name)
                gradients += ft__tensor_numel(&g->tensors[t]) * (double)g->tensors[t].copies;
        if (gradients != g->trained_parameters)
            fail_msg("%s: gradients of %.0f elements for %.0f", seen[i].config, gradients, g->trained_parameters);
    }
}

/* Positions of whisper's encoder are sinusoids: parameters that nobody trains. */
static void sinusoids_are_not_trained(void **state)
{
    fixture *f = *state;
    const ft_graph *g = built(f, WHISPER, bf16(FT_TRAIN, 1, 64));
    assert_true(g->parameters - g->trained_parameters == 1500.0 * 768);
}

/* -- what must hold ------------------------------------------------------------------------------- */

static void more_sequences_are_more_work_and_wider_formats_more_bytes(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ft_workload work = bf16(FT_TRAIN, 2, 64);
        work.attention = FT_EAGER;
        const ft_graph *g = built(f, seen[i].config, work);
        double few = sum(g, FT_FORWARD, flops), narrow = sum(g, FT_BACKWARD, bytes);
        work.batch = 4;
        double many = sum(built(f, seen[i].config, work), FT_FORWARD, flops);
        if (!(many > 1.5 * few && many < 2.2 * few)) fail_msg("%s: %g, then %g", seen[i].config, few, many);
        work.batch = 2;
        work.dtype = FT_FP32;
        double wide = sum(built(f, seen[i].config, work), FT_BACKWARD, bytes);
        if (!(wide > 1.3 * narrow)) fail_msg("%s: %g bytes, in fp32 %g", seen[i].config, narrow, wide);
    }
}

static void fused_kernels_are_fewer(void **state)
{
    fixture *f = *state;
    const char *some[] = {BERT, T5(""), SWITCH};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        ft_workload work = bf16(FT_TRAIN, 2, 64);
        double many = sum(built(f, some[i], work), FT_FORWARD, one);
        work.execution = FT_RUN_FUSED;
        assert_true(sum(built(f, some[i], work), FT_FORWARD, one) < many);
    }
}

/* Its bias is read through strides, which the fused kernels refuse; cross-attention's is not. */
static void t5_attends_to_itself_by_hand_under_sdpa(void **state)
{
    fixture *f = *state;
    ft_workload work = bf16(FT_FORWARD_PASS, 2, 64);
    assert_true(sum(built(f, T5(""), work), FT_FORWARD, attends) == 4);
    work.attention = FT_FLASH;
    assert_true(sum(built(f, T5(""), work), FT_FORWARD, attends) == 12);
    work.attention = FT_EAGER;
    assert_true(sum(built(f, T5(""), work), FT_FORWARD, attends) == 0);
}

/* The host waits once to learn which experts were hit and once for the tokens of each. */
static void a_loop_over_experts_waits_for_each(void **state)
{
    fixture *f = *state;
    assert_true(sum(built(f, SWITCH, bf16(FT_FORWARD_PASS, 8, 512)), FT_FORWARD, waits) == 4 * (1 + 8));
    assert_true(sum(built(f, SWITCH, bf16(FT_FORWARD_PASS, 1, 4)), FT_FORWARD, waits) == 4 * (1 + 4));
}

static void experts_that_a_token_passes_by_are_not_active(void **state)
{
    fixture *f = *state;
    const ft_graph *g = built(f, SWITCH, bf16(FT_FORWARD_PASS, 1, 64));
    assert_true(g->parameters - g->active_parameters == 4.0 * 7 * 2 * 768 * 3072);
    double passed_by = g->parameters - g->active_parameters;
    g = built(f, SWITCH, bf16(FT_DECODE, 1, 64));
    assert_true(g->parameters - g->active_parameters == passed_by);
}

/* -- generation ------------------------------------------------------------------------------------ */

static void a_decode_step_keeps_the_encoder_and_does_not_run_it(void **state)
{
    const char *some[] = {T5(""), SWITCH, WHISPER};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        const ft_graph *g = built(f, some[i], bf16(FT_FORWARD_PASS, 2, 64));
        double parameters = g->parameters, whole = sum(g, FT_FORWARD, flops);
        assert_true(has_block(g, "encoder.layers"));
        g = built(f, some[i], bf16(FT_DECODE, 2, 64));
        assert_true(g->parameters == parameters);
        assert_false(has_block(g, "encoder.layers"));
        assert_true(sum(g, FT_FORWARD, flops) < whole / 20);
        /* Keys and values: of 64 tokens of the text, and of the source once. */
        double source = !strcmp(some[i], WHISPER) ? 1500 : 64, width = !strcmp(some[i], T5("")) ? 1024 : 768;
        assert_true(role_bytes(g, FT_CACHE) == 4 * 2.0 * (64 + source) * width * 2 * 2);
    }
}

static void a_prefill_fills_what_the_decode_step_reads(void **state)
{
    fixture *f = *state;
    double read = role_bytes(built(f, WHISPER, bf16(FT_DECODE, 2, 64)), FT_CACHE);
    assert_true(role_bytes(built(f, WHISPER, bf16(FT_PREFILL, 2, 64)), FT_CACHE) == read);
    /* t5 begins with one token whatever the source is. */
    const ft_graph *g = built(f, T5(""), bf16(FT_PREFILL, 2, 64));
    assert_true(role_bytes(g, FT_CACHE) == 4 * 2.0 * (1 + 64) * 1024 * 2 * 2);
}

static void an_encoder_alone_has_no_decoder(void **state)
{
    fixture *f = *state;
    const ft_graph *g = built(f, T5(",\"architectures\":[\"T5EncoderModel\"]"), bf16(FT_TRAIN, 2, 64));
    assert_true(has_block(g, "encoder.layers"));
    assert_false(has_block(g, "decoder.layers"));
}

/* -- recomputation: layer by layer even where two kinds of layers take turns --------------------------- */

static void recomputation_runs_every_layer_once_more(void **state)
{
    fixture *f = *state;
    ft_workload work = bf16(FT_TRAIN, 2, 64);
    work.attention = FT_EAGER;
    work.recompute = FT_RECOMPUTE_FULL;
    const ft_graph *g = built(f, SWITCH, work);
    int blocks = 0;
    for (int32_t i = 0; i < g->block_count; i++)
        if (g->blocks[i].phase == FT_FORWARD && !strcmp(g->blocks[i].name, "encoder.layers")) blocks++;
    assert_int_equal(4, blocks);
    assert_true(sum(g, FT_RECOMPUTE, product) == 149 - 1); /* all but the head's */
}

/* -- errors ---------------------------------------------------------------------------------------- */

static void refuses(fixture *f, const char *config, ft_workload work, ft_status code, const char *says)
{
    if (attempt(f, config, work) == FT_OK) fail_msg("%s: built", config);
    assert_int_equal(code, f->err.code);
    if (!strstr(f->err.message, says)) fail_msg("\"%s\" does not say \"%s\"", f->err.message, says);
}

static void what_makes_no_sense_is_refused(void **state)
{
    fixture *f = *state;
    refuses(f, BERT, bf16(FT_DECODE, 1, 64), FT_E_UNSUPPORTED, "no decode step");
    refuses(f, T5(",\"architectures\":[\"T5EncoderModel\"]"), bf16(FT_DECODE, 1, 64), FT_E_UNSUPPORTED,
            "no decode step");
    refuses(f, BERT, bf16(FT_TRAIN, 1, 513), FT_E_RANGE, "end at 512");
    refuses(f, WHISPER, bf16(FT_FORWARD_PASS, 1, 449), FT_E_RANGE, "end at 448");
    built(f, BERT, bf16(FT_TRAIN, 1, 512));
    built(f, WHISPER, bf16(FT_FORWARD_PASS, 1, 448));
    built(f, "{\"model_type\":\"bert\",\"is_decoder\":true}", bf16(FT_DECODE, 1, 64));
}

static ft_status build_whole(void *context)
{
    fixture f = {.arena = ft__arena_new(0)};
    if (!f.arena) return FT_E_MEMORY;
    json_t *config = NULL;
    ft_arch arch;
    ft_workload work = bf16(FT_TRAIN, 2, 64);
    ft_status status = ft__json_parse(context, strlen(context), "test", &config, NULL);
    if (status == FT_OK) status = ft__config_read(config, NULL, "model", &arch, NULL);
    if (status == FT_OK) status = ft__model_graph(&arch, &work, f.arena, &f.graph, NULL);
    work.task = FT_DECODE;
    if (status == FT_OK && arch.design != FT_ENCODER_ONLY)
        status = ft__model_graph(&arch, &work, f.arena, &f.graph, NULL);
    json_decref(config);
    ft__arena_free(f.arena);
    return status;
}

static void running_out_of_memory_is_an_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        assert_true(failing_alloc_sweep(build_whole, (void *)(uintptr_t)seen[i].config) > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_as_published),
        cmocka_unit_test(products_are_those_of_the_profiler),
        cmocka_unit_test(launches_are_those_of_the_profiler),
        cmocka_unit_test(every_trained_parameter_gets_a_gradient),
        cmocka_unit_test(sinusoids_are_not_trained),
        cmocka_unit_test(more_sequences_are_more_work_and_wider_formats_more_bytes),
        cmocka_unit_test(fused_kernels_are_fewer),
        cmocka_unit_test(t5_attends_to_itself_by_hand_under_sdpa),
        cmocka_unit_test(a_loop_over_experts_waits_for_each),
        cmocka_unit_test(experts_that_a_token_passes_by_are_not_active),
        cmocka_unit_test(a_decode_step_keeps_the_encoder_and_does_not_run_it),
        cmocka_unit_test(a_prefill_fills_what_the_decode_step_reads),
        cmocka_unit_test(an_encoder_alone_has_no_decoder),
        cmocka_unit_test(recomputation_runs_every_layer_once_more),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
