/* Models with an encoder: bert, roberta, t5, switch_transformers, whisper. Parameters as published; kernels and
 * products as a profiler counted them (transformers 5.17, PyTorch 2.11, H200); what must hold whatever the sizes. */
#include <math.h>

#include "encoders.h"

static double one(const ft_node *n) { return ft__node_runs(n) ? 1 : 0; }
static double bytes(const ft_node *n) { return ft__op_bytes(&n->op); }
static double waits(const ft_node *n) { return n->synced ? 1 : 0; }
static double attends(const ft_node *n) { return n->op.kind == FT_OP_ATTENTION ? 1 : 0; }

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
        /* decoders by their base class, which ends with the last norm, and with a score of the last token */
        {"{\"model_type\":\"llama\"}", 6738415616},
        {"{\"model_type\":\"llama\",\"architectures\":[\"LlamaModel\"]}", 6607343616},
        {"{\"model_type\":\"llama\",\"architectures\":[\"LlamaForSequenceClassification\"]}", 6607351808},
        {"{\"model_type\":\"modernbert\",\"architectures\":[\"ModernBertModel\"]}", 149014272},
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
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
