/* aten_generated.c: kernels that torch.compile generated. Their names list the operators that were fused
 * (triton_poi_fused_gelu_view_7), their inputs all tensors they read and write. */
#include <math.h>
#include <string.h>

#include "trace/aten_entry.h"

/* Instructions per element of what the name lists: the figures of graph/fusion_member.c. Longer words first, so that
 * "gelu_backward" is not taken for "gelu". */
static double work_of(const char *name)
{
    static const struct {
        const char *word;
        double work;
    } list[] = {
        {"native_layer_norm_backward", 20},
        {"_log_softmax_backward_data", 30},
        {"_softmax_backward_data", 8},
        {"native_dropout_backward", 1},
        {"prepare_softmax_online", 20},
        {"native_layer_norm", 10},
        {"silu_backward", 18},
        {"gelu_backward", 36},
        {"native_dropout", 110},
        {"tanh_backward", 6},
        {"_safe_softmax", 20},
        {"_log_softmax", 39},
        {"_softmax", 20},
        {"embedding", 6},
        {"sigmoid", 12},
        {"rsqrt", 3},
        {"silu", 12},
        {"gelu", 26},
        {"tanh", 26},
        {"_to_copy", 1},
        {"where", 2},
        {"cos", 30},
        {"sin", 30},
        {"pow", 3},
        {"exp_", 8},
        {"div", 6},
        {"mul", 1},
        {"add", 1},
        {"sum", 4},
        {"cat", 6},
    };
    double work = 2;
    const char *p = strstr(name, "fused_");
    for (p = p ? p + 5 : name; *p;) {
        size_t i = 0, count = sizeof list / sizeof *list;
        while (i < count && strncmp(p, list[i].word, strlen(list[i].word)) != 0) i++;
        if (i < count) {
            work += list[i].work;
            p += strlen(list[i].word);
        } else {
            p++;
        }
    }
    return fmin(work, 250);
}

/* Behind the tensors stand the sizes of the loops; their product is the number of elements that are walked. */
static double walked(const ft_calling *c)
{
    double n = 1;
    bool any = false;
    for (int i = 0; i < c->in->count; i++) {
        double size;
        if (ft__call_input(c, i)->tensors || !ft__input_number(c->in, i, &size) || !(size >= 1)) continue;
        n *= size;
        any = true;
    }
    return any && n < 1e15 ? n : 0;
}

bool ft__call_generated(const ft_calling *c)
{
    double most = 0, bytes = 0, largest = 0, total = walked(c);
    int big = 0;
    ft_dtype d = c->usual;
    for (int i = 0; i < c->in->count; i++) {
        const ft_input *x = ft__call_input(c, i);
        /* A tensor larger than the loops is looked up here and there. */
        double share = total > 0 && x->numel > total ? total / x->numel : 1;
        if (x->numel * share > most)
            most = x->numel * share, largest = ft__call_bytes(c, x) * share, d = ft__call_dtype(c, x);
        bytes += ft__call_bytes(c, x) * share;
    }
    if (!(most >= 1)) return false;
    for (int i = 0; i < c->in->count; i++) big += ft__call_input(c, i)->numel * 2 > most;
    /* One tensor of the size is read and written in place, unless all of it is summed up, or it is set to zero. */
    bool reduces = !strncmp(c->name, "triton_red", 10),
         zeroes = strstr(c->name, "fused_embedding_dense_backward_") != NULL;
    if (big == 1 && !reduces && !zeroes) bytes += largest;
    ft_op op = {.kind = FT_OP_ELEMENTWISE, .name = "generated", .dtype = d, .kv_dtype = d};
    op.u.elementwise.numel = (int64_t)most;
    op.u.elementwise.inputs = big > 1 ? big - 1 : 1;
    op.u.elementwise.bytes = fmax(bytes, 1);
    op.u.elementwise.ops_per_element = zeroes && big == 1 ? 1 : work_of(c->name);
    return ft__call_add(c, op) != NULL;
}
