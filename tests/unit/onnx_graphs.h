/* Graphs of ONNX files that tests write as text. */
#ifndef TESTS_ONNX_GRAPHS_H
#define TESTS_ONNX_GRAPHS_H
#define _GNU_SOURCE /* strdup, strtok_r, ftruncate under -std=c17 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "import/onnx/onnx.h"
#include "onnx_writer.h"
#include "scratch.h"

static ft_arena *arena;
static ft_arch opened; /* of the last graph, without what it owned */
static char warnings[1024];

static inline int begin(void **state)
{
    arena = ft__arena_new(0);
    return arena ? scratch_make(state) : -1;
}

static inline int end(void **state)
{
    ft__arena_free(arena);
    return scratch_remove(state);
}

static inline ft_workload workload(ft_task task, ft_attention_kind attention)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = 4,
                         .seq = 128,
                         .attention = attention,
                         .optimizer = FT_ADAMW,
                         .accumulate = 1};
}

static inline ft_graph *graph_from(const void *bytes, size_t length, const ft_workload *given, ft_error *err)
{
    ft_arch arch = {0};
    ft_graph *graph = NULL;
    ft_workload work = *given;
    *err = (ft_error){0};
    ft__arena_reset(arena);
    ft_status status = ft__onnx_read(bytes, length, "test.onnx", &arch, err);
    if (status == FT_OK) {
        snprintf(warnings, sizeof warnings, "%s", arch.warnings);
        if (arch.fixed_batch) work.batch = arch.fixed_batch;
        if (arch.fixed_seq) work.seq = arch.fixed_seq;
        status = ft__model_graph(&arch, &work, arena, &graph, err);
    }
    opened = arch;
    ft__arch_release(&arch); /* the graph must not need the file */
    return status == FT_OK ? graph : NULL;
}

static inline ft_graph *graph_of(const char *text, const ft_workload *work, ft_error *err)
{
    size_t length;
    uint8_t *bytes = onnx_bytes(text, &length);
    ft_graph *g = graph_from(bytes, length, work, err);
    free(bytes);
    return g;
}

static inline ft_graph *good(const char *text, ft_task task, ft_attention_kind attention)
{
    ft_error err;
    ft_workload work = workload(task, attention);
    ft_graph *g = graph_of(text, &work, &err);
    if (!g) fail_msg("%s: %s", err.where, err.message);
    return g;
}

static inline ft_graph *forward(const char *text) { return good(text, FT_FORWARD_PASS, FT_EAGER); }

static inline void refused(const char *text, ft_status code, const char *says)
{
    ft_error err;
    ft_workload work = workload(FT_FORWARD_PASS, FT_EAGER);
    assert_null(graph_of(text, &work, &err));
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    assert_int_equal(err.code, code);
    assert_true(err.where[0]);
}

static inline int kernels(const ft_graph *g, const char *op)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        count += g->nodes[i].phase == FT_FORWARD && ft__node_runs(&g->nodes[i]) && !strcmp(g->nodes[i].op.name, op);
    return count;
}

static inline int running(const ft_graph *g)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++) count += g->nodes[i].phase == FT_FORWARD && ft__node_runs(&g->nodes[i]);
    return count;
}

static inline double products(const ft_graph *g, ft_phase phase)
{
    double sum = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        ft_op_kind kind = g->nodes[i].op.kind;
        bool product = kind == FT_OP_GEMM || kind == FT_OP_CONV2D || kind == FT_OP_ATTENTION;
        if (g->nodes[i].phase == phase && product) sum += ft__op_flops(&g->nodes[i].op) * (double)g->nodes[i].count;
    }
    return sum;
}

static inline const ft_tensor *last(const ft_graph *g)
{
    for (int32_t b = g->block_count - 1; b >= 0; b--)
        if (g->blocks[b].phase == FT_FORWARD) return &g->tensors[g->blocks[b].carry_out];
    return NULL;
}

#define MLP                                                                                                     \
    "opset 17\nin x float batch seq 64\ninit fc1.weight float 64 256\ninit fc1.bias float 256\n"                \
    "init fc2.weight float 256 10\nnode MatMul x fc1.weight -> a\nnode Add fc1.bias a -> b\nnode Relu b -> c\n" \
    "node MatMul c fc2.weight -> y\nout y float batch seq 10\n"

static const char attention[] =
    "opset 17\nin q float batch 8 seq 64\nin k float batch 8 seq 64\nin v float batch 8 seq 64\n"
    "in mask float batch 1 1 seq\nfloats scale 0.125\nnode Transpose k -> kt perm=0,1,3,2\nnode MatMul q kt -> s\n"
    "node Mul s scale -> scaled\nnode Add scaled mask -> masked\nnode Softmax masked -> p axis=-1\n"
    "node MatMul p v -> o\nnode Transpose o -> y perm=0,2,1,3\nout y float batch seq 8 64\n";

#endif
