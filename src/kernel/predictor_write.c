/* Writing a predictor file. */
#include <stdlib.h>
#include <string.h>

#include "kernel/predictor_check.h"
#include "kernel/predictor_file.h"

/* From the first tree of an expert, of whichever kind, to behind its last. */
static ft_tree_span span_of(const ft_expert *e)
{
    size_t first = e->tree_first, end = first + e->tree_count, sigma_end = (size_t)e->sigma_first + e->sigma_count;
    if (!e->sigma_count) return (ft_tree_span){first, end};
    if (!e->tree_count) return (ft_tree_span){e->sigma_first, sigma_end};
    return (ft_tree_span){first < e->sigma_first ? first : e->sigma_first, end > sigma_end ? end : sigma_end};
}

static ft_status pack(const ft_expert *experts, size_t expert_count, const ft_tree *trees, size_t tree_count,
                      ft_packed *out, ft_error *err)
{
    ft_tree_span *spans = malloc((expert_count + 1) * sizeof *spans);
    if (!spans) return ft__no_memory(err);
    for (size_t i = 0; i < expert_count; i++) spans[i] = span_of(&experts[i]);
    ft_status s = ft__forest_pack(trees, tree_count, spans, expert_count, out, err);
    free(spans);
    return s;
}

static void append(unsigned char **to, const void *from, size_t bytes)
{
    if (bytes) memcpy(*to, from, bytes);
    *to += bytes;
}

ft_status ft__predictor_write(const ft_expert *experts, size_t expert_count, const ft_tree *trees, size_t tree_count,
                              const char *meta, void **out, size_t *length, ft_error *err)
{
    ft_packed p;
    FT_TRY(pack(experts, expert_count, trees, tree_count, &p, err));
    ft_predictor_header h = {.version = FT_PREDICTOR_VERSION,
                             .header_bytes = sizeof h,
                             .expert_count = (uint32_t)expert_count,
                             .expert_bytes = sizeof *experts,
                             .tree_count = (uint32_t)tree_count,
                             .tree_bytes = sizeof(ft_leaves) + sizeof(ft_tests),
                             .meta_length = strlen(meta),
                             .table_count = (uint32_t)p.table_count,
                             .cut_count = (uint32_t)p.cut_count};
    size_t total = sizeof h + tree_count * h.tree_bytes + expert_count * sizeof *experts +
                   p.table_count * sizeof *p.tables + p.cut_count * sizeof *p.cuts + (size_t)h.meta_length;
    unsigned char *at = malloc(total);
    if (!at) {
        ft__packed_free(&p);
        return ft__fail(err, FT_E_MEMORY, "out of memory writing a predictor of %zu bytes", total);
    }
    unsigned char *to = at + sizeof h;
    memcpy(h.magic, FT_PREDICTOR_MAGIC, sizeof h.magic);
    h.length = total;
    for (size_t i = 0; i < tree_count; i++) append(&to, trees[i].leaf, sizeof trees[i].leaf);
    append(&to, p.tests, tree_count * sizeof *p.tests);
    append(&to, experts, expert_count * sizeof *experts);
    append(&to, p.tables, p.table_count * sizeof *p.tables);
    append(&to, p.cuts, p.cut_count * sizeof *p.cuts);
    append(&to, meta, (size_t)h.meta_length);
    ft__packed_free(&p);
    h.checksum = ft__records_checksum(at + sizeof h, total - sizeof h);
    memcpy(at, &h, sizeof h);
    *out = at;
    *length = total;
    return FT_OK;
}
