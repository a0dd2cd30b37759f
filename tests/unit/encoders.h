/* Models with an encoder. */
#ifndef FT_TEST_ENCODERS_H
#define FT_TEST_ENCODERS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "failing_alloc.h"
#include "graph_fixture.h"
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
static double product(const ft_node *n) { return n->op.kind == FT_OP_GEMM ? 1 : 0; }
static double flops(const ft_node *n) { return ft__op_flops(&n->op); }

static double sum(const ft_graph *g, ft_phase phase, measure *of)
{
    double all = 0;
    for (int32_t i = 0; i < g->block_count; i++)
        for (int32_t n = g->blocks[i].first; n < g->blocks[i].first + g->blocks[i].count; n++)
            if (g->nodes[n].phase == phase)
                all += of(&g->nodes[n]) * (double)g->nodes[n].count * (double)g->blocks[i].repeat;
    return all;
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
#endif
