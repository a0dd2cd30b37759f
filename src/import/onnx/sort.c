/* sort.c: an order in which nodes can run. The standard wants the file's own to be one; runtimes sort all the
 * same, and so do we. What cannot be sorted is a cycle. */
#include <string.h>

#include "base/text.h"
#include "import/onnx/graph.h"

static const ft_onnx_node *maker(const ft_onnx *o, int32_t value)
{
    return value >= 0 && o->values[value].maker >= 0 ? &o->nodes[o->values[value].maker] : NULL;
}

/* From a node that waits, back along what it waits for: after as many steps as there are nodes, inside the cycle. */
static ft_status cycle(const ft_onnx *o, const int32_t *waits, ft_error *err)
{
    int32_t at = 0;
    while (at < o->node_count && !waits[at]) at++;
    for (int32_t step = 0; step < o->node_count; step++)
        for (int32_t k = 0; k < o->nodes[at].in_count; k++) {
            int32_t value = o->nodes[at].in[k], from = value >= 0 ? o->values[value].maker : -1;
            if (from < 0 || !waits[from]) continue;
            at = from;
            break;
        }
    const ft_onnx_node *n = &o->nodes[at];
    return ft__fail(err, FT_E_FORMAT, "a cycle: node \"%.*s\" (%.*s) waits for its own result",
                    (int)ft__utf8_cut(n->name, 80), n->name, (int)ft__utf8_cut(n->op, 40), n->op);
}

ft_status ft__onnx_sort(ft_onnx *o, ft_error *err)
{
    size_t nodes = (size_t)o->node_count, edges = 0;
    for (size_t i = 0; i < nodes; i++)
        for (int32_t k = 0; k < o->nodes[i].in_count; k++) edges += maker(o, o->nodes[i].in[k]) != NULL;
    int32_t *order = ft__arena_array(o->arena, nodes, sizeof *order);
    int32_t *waits = ft__arena_array(o->arena, nodes, sizeof *waits);     /* operands that are not there yet */
    int32_t *first = ft__arena_array(o->arena, nodes + 1, sizeof *first); /* each node's readers, in one list */
    int32_t *readers = ft__arena_array(o->arena, edges + 1, sizeof *readers);
    if (!order || !waits || !first || !readers) return ft__no_memory(err);
    for (size_t i = 0; i < nodes; i++)
        for (int32_t k = 0; k < o->nodes[i].in_count; k++) {
            const ft_onnx_node *from = maker(o, o->nodes[i].in[k]);
            if (!from) continue;
            waits[i]++;
            first[from - o->nodes + 1]++;
        }
    for (size_t i = 0; i < nodes; i++) first[i + 1] += first[i];
    int32_t *fill = ft__arena_array(o->arena, nodes, sizeof *fill);
    if (!fill) return ft__no_memory(err);
    memcpy(fill, first, nodes * sizeof *fill);
    bool sorted = true;
    for (size_t i = 0; i < nodes; i++)
        for (int32_t k = 0; k < o->nodes[i].in_count; k++) {
            const ft_onnx_node *from = maker(o, o->nodes[i].in[k]);
            if (!from) continue;
            readers[fill[from - o->nodes]++] = (int32_t)i;
            sorted &= from < &o->nodes[i];
        }
    int32_t done = 0, taken = 0;
    if (sorted) {
        for (size_t i = 0; i < nodes; i++) order[i] = (int32_t)i;
        o->order = order;
        return FT_OK;
    }
    for (size_t i = 0; i < nodes; i++)
        if (!waits[i]) order[done++] = (int32_t)i;
    while (taken < done) {
        int32_t at = order[taken++];
        for (int32_t k = first[at]; k < first[at + 1]; k++)
            if (!--waits[readers[k]]) order[done++] = readers[k];
    }
    if (done < o->node_count) return cycle(o, waits, err);
    o->order = order;
    return FT_OK;
}
