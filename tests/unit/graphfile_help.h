/* Small graph files for tests, written with ' for " so that they can be read. */
#ifndef GRAPHFILE_HELP_H
#define GRAPHFILE_HELP_H
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "import/config/config.h"
#include "import/graphfile/graphfile.h"

static ft_arena *help_arena;
static ft_workload help_work;

static int help_open(void **state)
{
    (void)state;
    help_arena = ft__arena_new(0);
    help_work = (ft_workload){.task = FT_TRAIN,
                              .dtype = FT_BF16,
                              .kv_dtype = FT_BF16,
                              .batch = 4,
                              .seq = 128,
                              .optimizer = FT_ADAMW,
                              .accumulate = 1};
    return help_arena ? 0 : -1;
}

static int help_close(void **state)
{
    (void)state;
    ft__arena_free(help_arena);
    return 0;
}

/* The whole file; NULL with *err filled when it is refused. */
static ft_graph *help_read(const char *text, ft_error *err)
{
    json_t *file = NULL;
    ft_arch arch = {0};
    ft_graph *graph = NULL;
    char *quoted = malloc(strlen(text) + 1);
    assert_non_null(quoted);
    strcpy(quoted, text);
    for (char *c = quoted; *c; c++)
        if (*c == '\'') *c = '"';
    ft__arena_reset(help_arena);
    if (ft__json_parse(quoted, strlen(quoted), "", &file, err) != FT_OK) fail_msg("%s: %s", err->message, quoted);
    free(quoted);
    ft_status status = ft__config_read(file, NULL, "model", &arch, err);
    ft_workload work = help_work;
    if (arch.fixed_batch > 0) work.batch = arch.fixed_batch; /* as requests do */
    if (arch.fixed_seq > 0) work.seq = arch.fixed_seq;
    if (status == FT_OK) status = ft__model_graph(&arch, &work, help_arena, &graph, err);
    ft__arch_release(&arch);
    json_decref(file);
    return status == FT_OK ? graph : NULL;
}

/* One block of these nodes, with its result y, over what every test may read: x, and the inputs below. */
#define HELP_INPUTS                                                                                              \
    "'x':{'shape':['batch','seq',64]},'v':{'shape':[64]},'ids':{'shape':['batch','seq'],'dtype':'int64'},"       \
    "'picture':{'shape':['batch',8,32,32]},'turned':{'shape':['batch',8,32,32],'layout':'nhwc'},"                \
    "'sound':{'shape':['batch',8,100]},'film':{'shape':['batch',4,8,16,16]},'q':{'shape':['batch',8,'seq',64]}," \
    "'k':{'shape':['batch',2,'seq',64]},'seen':{'shape':['batch',1,'seq','seq'],'dtype':'bool'}"
#define HELP_FILE(more, nodes) \
    "{'foretell_graph':1,'inputs':{" HELP_INPUTS "},'blocks':[{'name':'b','out':'y'" more ",'nodes':[" nodes "]}]}"

static ft_graph *help_good(const char *text, ft_task task)
{
    ft_error err = {0};
    help_work.task = task;
    ft_graph *g = help_read(text, &err);
    if (!g) fail_msg("%s: %s", err.message, text);
    return g;
}

static void help_refused(const char *text, ft_status code, const char *message)
{
    ft_error err = {0};
    help_work.task = FT_TRAIN;
    if (help_read(text, &err)) fail_msg("not refused: %s", text);
    assert_string_equal(message, err.message);
    assert_int_equal(code, err.code);
}

#define TRAINED(nodes) help_good(HELP_FILE("", nodes), FT_TRAIN)
#define FORWARD(nodes) help_good(HELP_FILE("", nodes), FT_FORWARD_PASS)
#define REFUSED(nodes, code, message) help_refused(HELP_FILE("", nodes), code, message)

/* How many kernels of this name run in a phase. */
static int help_count(const ft_graph *g, ft_phase phase, const char *op)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == phase && ft__node_runs(&g->nodes[i]) && !strcmp(g->nodes[i].op.name, op))
            count += (int)g->nodes[i].count;
    return count;
}

/* All of them. */
static int help_kernels(const ft_graph *g, ft_phase phase)
{
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == phase && ft__node_runs(&g->nodes[i])) count++;
    return count;
}

/* The first that runs under this name. */
static const ft_node *help_node(const ft_graph *g, ft_phase phase, const char *name)
{
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].phase == phase && ft__node_runs(&g->nodes[i]) && !strcmp(g->nodes[i].name, name))
            return &g->nodes[i];
    fail_msg("no kernel of %s", name);
    return NULL;
}

static inline const ft_tensor *help_result(const ft_graph *g, const char *name)
{
    const ft_node *n = help_node(g, FT_FORWARD, name);
    return &g->tensors[n->out[0]];
}
#endif
