/* A graph file, read once. */
#ifndef FT_TEST_GRAPHFILE_TRY_H
#define FT_TEST_GRAPHFILE_TRY_H
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
#include "import/graphfile/graphfile.h"

static ft_arena *arena;

static int open_arena(void **state)
{
    (void)state;
    arena = ft__arena_new(0);
    return arena ? 0 : -1;
}

static int close_arena(void **state)
{
    (void)state;
    ft__arena_free(arena);
    return 0;
}

static ft_workload workload(ft_task task)
{
    return (ft_workload){.task = task,
                         .dtype = FT_BF16,
                         .kv_dtype = FT_BF16,
                         .batch = 4,
                         .seq = 128,
                         .optimizer = FT_ADAMW,
                         .accumulate = 1};
}

/* The graph of a text; NULL with *err filled when it is refused. */
static ft_graph *graph_of(const char *text, ft_task task, ft_error *err)
{
    json_t *file = NULL;
    ft_arch arch = {0};
    ft_workload work = workload(task);
    ft_graph *graph = NULL;
    ft__arena_reset(arena);
    if (ft__json_parse(text, strlen(text), "", &file, err) != FT_OK) fail_msg("%s: %.200s", err->message, text);
    ft_status status = ft__config_read(file, NULL, "model", &arch, err);
    if (arch.fixed_batch > 0) work.batch = arch.fixed_batch; /* as requests do */
    if (arch.fixed_seq > 0) work.seq = arch.fixed_seq;
    if (status == FT_OK) status = ft__model_graph(&arch, &work, arena, &graph, err);
    ft__arch_release(&arch);
    json_decref(file);
    return status == FT_OK ? graph : NULL;
}

/* A file of one block with these nodes over x [batch, 64] and w [9, 4]; its result is y. */
#define FILE_OF(more, nodes)                                                                                    \
    "{\"foretell_graph\":1,\"inputs\":{\"x\":{\"shape\":[\"batch\",64]},\"w\":{\"shape\":[9,4]}},\"blocks\":[{" \
    "\"name\":"                                                                                                 \
    "\"b\",\"out\":\"y\"" more ",\"nodes\":[" nodes "]}]}"
#define OF(nodes) FILE_OF("", nodes)
#endif
