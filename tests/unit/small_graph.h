/* Graphs by hand for the tests of memory: tensors of so many KiB, nodes that read and make them, blocks. */
#ifndef FT_TEST_SMALL_GRAPH_H
#define FT_TEST_SMALL_GRAPH_H
#include "kernel_limits.h"

#include "base/arena.h"
#include "memory/resident.h"
#include "named_site.h"
#include "timeline/step.h"

static inline ft_ref tensor(ft_graph *g, ft_role role, int64_t kib, int64_t copies)
{
    ft_tensor t = {.rows = kib,
                   .cols = 512,
                   .element_bytes = 2,
                   .dtype = FT_BF16,
                   .role = role,
                   .storage = FT_NONE,
                   .block = -1,
                   .copies = copies,
                   .trained = role == FT_PARAMETER};
    ft_ref at = ft__graph_tensor(g, &t);
    assert_true(at != FT_NONE);
    return at;
}

static inline ft_ref view(ft_graph *g, ft_ref of)
{
    ft_tensor t = g->tensors[of];
    ft_ref at = ft__graph_tensor(g, &t);
    assert_true(at != FT_NONE);
    return at;
}

static inline void node(ft_graph *g, ft_phase phase, const char *name, int in_count, const ft_ref *in, int out_count,
                        const ft_ref *out)
{
    ft_node n = {.verb = FT_DO_COPY, .phase = phase, .name = name, .count = 1, .traffic = 1};
    n.at = named_site(g, name);
    for (int i = 0; i < in_count; i++) n.in[n.in_count++] = in[i];
    for (int i = 0; i < out_count; i++) n.out[n.out_count++] = out[i];
    assert_non_null(ft__graph_node(g, &n));
}

static inline void open_block(ft_graph *g, const char *name, ft_phase phase, int64_t repeat, ft_ref carry_in,
                              int32_t mirror)
{
    ft_block_info info = ft__import_block(g, name);
    ft_block b = {.name = name,
                  .kind = info.kind,
                  .trunk = info.trunk,
                  .phase = phase,
                  .first = g->node_count,
                  .repeat = repeat,
                  .carry_in = carry_in,
                  .carry_out = FT_NONE,
                  .mirror = mirror,
                  .fed_by = carry_in == FT_NONE ? FT_NONE : g->blocks[g->block_count - 1].carry_out};
    assert_non_null(ft__graph_block(g, &b));
}

static inline void close_block(ft_graph *g, ft_ref carry_out)
{
    ft_block *b = &g->blocks[g->block_count - 1];
    b->count = g->node_count - b->first;
    b->carry_out = carry_out;
}

static inline ft_memory memory_of(const ft_graph *g, const ft_workload *work)
{
    ft_device h200 = limit_device("h200_sxm");
    ft_memory m;
    ft_error err;
    assert_int_equal(ft__step_memory(g, work, &h200, &m, &err), FT_OK);
    double parts = m.weights_bytes + m.gradients_bytes + m.optimizer_bytes + m.activations_bytes + m.temporary_bytes +
                   m.kv_cache_bytes;
    assert_true(fabs(parts - m.peak_bytes) <= 1e-9 * m.peak_bytes);
    assert_true(m.reserved_bytes >= m.peak_bytes);
    return m;
}

#endif
