/* recurrent.c: the steps of recurrent layers. Their inputs' product is a linear node before them, of the gates of all
 * steps at once. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

static const int64_t LARGEST = (int64_t)1 << 40;

/* How many gates stand side by side; 0 after an error. */
static int64_t blocks_of(ft_graph_reader *r)
{
    static const struct {
        const char *kind;
        int64_t blocks;
    } kinds[] = {{"lstm", 4}, {"gru", 3}, {"rnn", 1}};
    const char *kind = json_string_value(json_object_get(r->at, "kind"));
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kind, kinds[i].kind)) return kinds[i].blocks;
    ft__graphfile_fail(r, FT_E_NAME, "\"kind\" must be lstm, gru or rnn");
    return 0;
}

/* [steps, batch, gates], twice for two ways; "steps" where the axes do not say it (packed sequences). */
void ft__read_recurrence(ft_graph_reader *r, ft_at at)
{
    static const char *const weights[2] = {"weight", "weight_reverse"}, *const biases[2] = {"bias", "bias_reverse"};
    ft_recurrence how = {.ways = (int)ft__graphfile_operands(r), .blocks = blocks_of(r)};
    ft_named gates[2];
    if (ft__graphfile_failed(r)) return;
    for (int i = 0; i < how.ways; i++)
        if (!ft__graphfile_operand(r, (size_t)i, &gates[i])) return;
    int last = gates[0].dims - 1;
    how.layers = ft__graphfile_whole(r, "layers", 0, 0, LARGEST);
    how.inputs = ft__graphfile_whole(r, "inputs", 0, 0, LARGEST);
    how.steps = ft__graphfile_whole(r, "steps", last == 2 ? gates[0].dim[0] : 0, 1, LARGEST);
    if (ft__graphfile_failed(r)) return;
    int64_t rows = ft__graphfile_rows(gates[0].dims, gates[0].dim);
    how.hidden = gates[0].dim[last] / how.blocks;
    how.batch = rows / how.steps > 0 ? rows / how.steps : 1;
    bool fits = last >= 1 && how.hidden > 0 && how.hidden * how.blocks == gates[0].dim[last];
    if (fits && how.ways > 1)
        fits = gates[1].dims == gates[0].dims &&
               !memcmp(gates[1].dim, gates[0].dim, sizeof *gates[0].dim * (size_t)(last + 1));
    if (!fits) {
        ft__graphfile_fail(r, FT_E_RANGE,
                           "gates of [steps, batch, %d times the state] are expected, the same of both ways",
                           (int)how.blocks);
        return;
    }
    for (int i = 0; i < how.ways; i++) {
        how.gates[i] = ft__graphfile_by_rows(r, at, &gates[i]);
        how.weight[i] = ft__graphfile_weight(r, weights[i], true, "recurrent.weight", how.blocks * how.hidden,
                                             how.hidden);
        how.bias[i] = ft__graphfile_weight(r, biases[i], false, "recurrent.bias", 1, how.blocks * how.hidden);
    }
    if (ft__graphfile_failed(r)) return;
    ft_ref y = ft__recurrence(ft__graphfile_build(r), at, &how);
    gates[0].dim[last] = how.ways * how.hidden;
    ft__graphfile_result(r, y, gates[0].dims, gates[0].dim);
}
