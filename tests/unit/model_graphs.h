/* Graphs of catalogue models by name, for tests of what they launch. */
#ifndef FT_TEST_MODEL_GRAPHS_H
#define FT_TEST_MODEL_GRAPHS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "import/config/config.h"
#include "model/workload.h"

static inline ft_workload work_of(ft_task task, ft_attention_kind attention)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = 4,
                         .seq = 1024,
                         .attention = attention,
                         .execution = FT_RUN_EAGER,
                         .cache = FT_CACHE_DYNAMIC,
                         .optimizer = FT_NO_OPTIMIZER,
                         .accumulate = 1};
}

static inline ft_graph *graph_of(const char *model, int64_t layers, const ft_workload *work, ft_arena *arena)
{
    ft_arch arch;
    ft_error err = {0};
    ft_graph *g = NULL;
    if (ft__model_open(model, NULL, &arch, &err) != FT_OK) fail_msg("%s: %s", model, err.message);
    if (layers > 0) arch.layers = layers;
    if (ft__model_graph(&arch, work, arena, &g, &err) != FT_OK) fail_msg("%s: %s", model, err.message);
    return g;
}
#endif
