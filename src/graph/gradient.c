/* gradient.c: what each node's backward launches, after PyTorch's derivative formulas (tools/autograd/derivatives.yaml
 * names them; the shapes follow from calculus). A product has two gradients, a norm one for its input and one for its
 * weights in the same pair of kernels, a slice a zeroed tensor with a copy inside, a reshape of a strided gradient a
 * copy. */
#include "graph/gradient.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "graph/pointwise.h"

#define T(ref) (&t->b.g->tensors[ref])

static bool wants(const ft_tape *t, ft_ref x) { return x != FT_NONE && T(x)->trained; }

/* A kernel whose result is like `like` in shape and format. */
static ft_ref result_like(ft_tape *t, ft_node *n, ft_ref like)
{
    ft_tensor l = *ft__tensor_of(&t->b, like);
    double bytes = l.role == FT_PARAMETER ? ft_dtype_bytes(l.dtype) : l.element_bytes;
    return ft__node_out(&t->b, n, l.rows, l.cols, l.dtype, bytes);
}

/* -- products ---------------------------------------------------------------------------------- */

static ft_ref product(ft_tape *t, const ft_node *of, ft_ref x, ft_ref y, ft_ref like, int64_t m, int64_t n, int64_t k,
                      const char *layout)
{
    ft_node node = ft__node_of(of->verb, of->name);
    ft__node_in(&node, x);
    ft__node_in(&node, y);
    ft_ref out = result_like(t, &node, like);
    node.op = ft__gemm_kernel(of->op.dtype, of->op.u.gemm.b, m, n, k, layout, false);
    node.op.name = of->op.name;
    node.cut = of->cut;
    node.core = of->core;
    /* Rows of odd length: kernels that read single elements, which lose less in these layouts than in the forward one
     * (H200: heads over 50257 tokens, gpt2 and gpt_neo alike). */
    bool low = ft_dtype_bytes(of->op.dtype) == 2, odd = of->op.u.gemm.n % 2 && of->op.u.gemm.n > 1;
    if (of->verb == FT_DO_LINEAR && low && odd) node.effort = 0.8F;
    ft__emit(&t->b, &node);
    return out;
}

static ft_ref column_sums(ft_tape *t, const ft_node *of, ft_ref g, ft_ref like)
{
    ft_node n = ft__node_of(FT_DO_ROW, of->name);
    ft__node_in(&n, g);
    ft_tensor shape = *ft__tensor_of(&t->b, g);
    ft_ref out = result_like(t, &n, like);
    n.op = ft__row_kernel("sum_cols", FT_FWD, shape.rows, shape.cols, shape.dtype);
    ft__emit(&t->b, &n);
    return out;
}

static void linear(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], weight = n->in[1], bias = n->in_count > 2 ? n->in[2] : FT_NONE;
    int64_t m = n->op.u.gemm.m, out = n->op.u.gemm.n, in = n->op.u.gemm.k;
    bool stored_across = n->op.u.gemm.layout[1] == 'n'; /* [in, out] */
    if (wants(t, x))
        ft__tape_give(t, x, product(t, n, g, ft__tape_saved(t, weight), x, m, in, out, stored_across ? "nt" : "nn"));
    if (wants(t, weight)) {
        ft_ref saved = ft__tape_saved(t, x);
        ft__tape_give(t, weight,
                      stored_across ? product(t, n, saved, g, weight, in, out, m, "tn")
                                    : product(t, n, g, saved, weight, out, in, m, "tn"));
    }
    if (wants(t, bias)) ft__tape_give(t, bias, column_sums(t, n, g, bias));
}

static void matmul(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], y = n->in[1];
    int64_t m = n->op.u.gemm.m, cols = n->op.u.gemm.n, k = n->op.u.gemm.k;
    bool y_across = n->op.u.gemm.layout[1] == 't';
    if (wants(t, x)) {
        ft_ref back = product(t, n, g, ft__tape_saved(t, y), x, m, k, cols, y_across ? "nn" : "nt");
        /* Experts are as uneven backward; between activations it is x that was hard to read. */
        if (t->b.status == FT_OK && T(y)->role == FT_PARAMETER)
            t->b.g->nodes[t->b.g->node_count - 1].effort = n->effort;
        ft__tape_give(t, x, back);
    }
    if (wants(t, y)) {
        ft_ref saved = ft__tape_saved(t, x);
        ft_ref back = y_across ? product(t, n, g, saved, y, cols, k, m, "tn")
                               : product(t, n, saved, g, y, k, cols, m, "tn");
        if (t->b.status == FT_OK) t->b.g->nodes[t->b.g->node_count - 1].effort = n->effort; /* reads the same x */
        ft__tape_give(t, y, back);
    }
}

static void attention(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_ATTENTION, n->name);
    ft__node_in(&back, g);
    for (int i = 0; i < 3; i++) ft__node_in(&back, ft__tape_saved(t, n->in[i]));
    for (int i = 0; i < n->out_count; i++) ft__node_in(&back, ft__tape_saved(t, n->out[i]));
    back.op = n->op;
    back.op.pass = FT_BWD;
    back.traffic = n->traffic;
    /* What a mask or dropout adds weighs differently beside five products than beside two. */
    back.effort = n->traffic > 1 ? 1 + 0.67F * (n->effort - 1) : 1 + 0.2F * (n->effort - 1);
    /* dQ is summed in fp32 before it is rounded. */
    back.workspace = (float)(ft__tensor_numel(T(n->in[0])) * (ft_dtype_bytes(n->op.dtype) < 4 ? 4 : 0));
    ft_ref out[3];
    for (int i = 0; i < 3; i++) {
        out[i] = result_like(t, &back, n->in[i]);
        if (out[i] != FT_NONE) T(out[i])->strided = T(n->in[i])->strided;
    }
    ft__emit(&t->b, &back);
    for (int i = 0; i < 3; i++) ft__tape_give(t, n->in[i], out[i]);
}

/* -- pointwise --------------------------------------------------------------------------------- */

/* Sums a gradient down to the shape of an operand that was broadcast. */
static ft_ref summed(ft_tape *t, const ft_node *of, ft_ref g, ft_ref like)
{
    const ft_tensor *from = T(g), *to = T(like);
    if (ft__tensor_numel(from) <= ft__tensor_numel(to)) return g;
    if (to->rows == 1 && to->cols == from->cols) return column_sums(t, of, g, like);
    ft_node n = ft__node_of(FT_DO_ROW, of->name);
    ft__node_in(&n, g);
    if (to->cols == from->cols && to->rows > 1 && from->rows % to->rows == 0) { /* repeated over the batch */
        int64_t times = from->rows / to->rows, wide = to->rows * to->cols;
        ft_dtype format = from->dtype;
        ft_ref sum = result_like(t, &n, like);
        n.op = ft__row_kernel("sum_cols", FT_FWD, times, wide, format);
        ft__emit(&t->b, &n);
        return sum;
    }
    int64_t rows = to->cols == 1 ? from->rows : to->rows;
    double all = ft__tensor_numel(from);
    ft_dtype dtype = from->dtype;
    ft_ref out = result_like(t, &n, like);
    int64_t cols = (int64_t)(all / (double)(rows > 0 ? rows : 1));
    n.op = ft__row_kernel("sum_rows", FT_FWD, rows, cols > 0 ? cols : 1, dtype);
    ft__emit(&t->b, &n);
    return out;
}

/* A comparison: one byte per element. */
static ft_ref compared(ft_tape *t, const char *name, ft_ref x, ft_ref y)
{
    ft_node n = ft__node_of(FT_DO_POINTWISE, name);
    ft__node_in(&n, x);
    ft__node_in(&n, y);
    ft_tensor shape = *ft__tensor_of(&t->b, x);
    ft_ref out = ft__node_out(&t->b, &n, shape.rows, shape.cols, shape.dtype, 1);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(t->b.g, "compare", n.in, n.in_count, T(out));
    ft__emit(&t->b, &n);
    return out;
}

/* Runs a gradient's words: see pointwise.h. */
static ft_ref words(ft_tape *t, const ft_node *n, const char *program, ft_ref g, ft_ref to)
{
    ft_ref made[10];
    int count = 0;
    ft_ref last = g;
    while (*program && t->b.status == FT_OK) {
        char op[32];
        size_t length = strcspn(program, ":");
        if (length >= sizeof op || !program[length]) break;
        memcpy(op, program, length);
        op[length] = 0;
        ft_ref operand[2] = {FT_NONE, FT_NONE};
        int operands = 0;
        for (program += length + 1; *program && *program != ' '; program++) {
            ft_ref o = *program == 'g'   ? g
                       : *program == 'x' ? ft__tape_saved(t, n->in[0])
                       : *program == 'w' ? ft__tape_saved(t, n->in[n->in_count > 1 ? 1 : 0])
                       : *program == 'y' ? ft__tape_saved(t, n->out[0])
                       : *program == 'm' ? ft__tape_saved(t, n->out[n->out_count > 1 ? 1 : 0])
                       : isdigit((unsigned char)*program) && *program - '1' < count ? made[*program - '1']
                                                                                    : FT_NONE;
            if (operands < 2) operand[operands++] = o;
        }
        while (*program == ' ') program++;
        bool in_place = length && op[length - 1] == '!';
        if (in_place) op[length - 1] = 0;
        const char *kernel = !strcmp(op, "mul") ? "mul"
                             : !strcmp(op, "div")
                                 ? "div"
                                 : (ft__pointwise_op_find(op) >= 0 ? ft__pointwise_ops[ft__pointwise_op_find(op)].name
                                                                   : "mulu");
        if (!strcmp(op, "cast_back"))
            last = ft__cast(&t->b, n->name, operand[0], T(to)->dtype);
        else if (!strcmp(op, "compare"))
            last = compared(t, n->name, operand[0], operand[1]);
        else if (in_place)
            last = ft__pointwise_in_place(&t->b, n->name, kernel, operand[0], operand[1]);
        else
            last = ft__pointwise2(&t->b, n->name, kernel, operand[0], operand[1]);
        if (count < 9) made[count++] = last;
    }
    return last;
}

static void pointwise(ft_tape *t, const ft_node *n, ft_ref g)
{
    const ft_gradient *rule = ft__gradient_find(n->op.name);
    ft_ref x = n->in[0], w = n->in_count > 1 ? n->in[1] : FT_NONE;
    /* A gradient comes back in its operand's format: where two formats met, one of them is cast. */
    if (wants(t, x)) {
        ft_ref back = summed(t, n, words(t, n, rule->first, g, x), x);
        ft__tape_give(t, x, ft__cast(&t->b, n->name, back, T(x)->dtype));
    }
    if (wants(t, w) && rule->second) {
        ft_ref back = summed(t, n, words(t, n, rule->second, g, w), w);
        ft__tape_give(t, w, ft__cast(&t->b, n->name, back, T(w)->dtype));
    }
}

/* -- rows -------------------------------------------------------------------------------------- */

static void norm(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_ROW, n->name);
    ft__node_in(&back, g);
    ft__node_in(&back, ft__tape_saved(t, n->in[0]));
    for (int i = 1; i < n->out_count; i++) ft__node_in(&back, ft__tape_saved(t, n->out[i]));
    back.op = n->op;
    back.op.pass = FT_BWD;
    ft_ref out[3] = {FT_NONE, FT_NONE, FT_NONE};
    for (int i = 0; i < n->in_count && i < 3; i++)
        if (wants(t, n->in[i])) out[i] = result_like(t, &back, n->in[i]);
    ft__emit(&t->b, &back);
    for (int i = 0; i < n->in_count && i < 3; i++) ft__tape_give(t, n->in[i], out[i]);
}

static void row(ft_tape *t, const ft_node *n, ft_ref g)
{
    const char *op = n->op.name;
    if (!strcmp(op, "layernorm") || !strcmp(op, "rmsnorm")) {
        norm(t, n, g);
        return;
    }
    if (!strcmp(op, "sum")) { /* over an axis before the last: repeated along it, which a reshape writes out */
        ft_tensor shape = *T(n->in[0]);
        ft__tape_give(t, n->in[0], ft__copy(&t->b, n->name, g, shape.rows, shape.cols));
        return;
    }
    if (!strcmp(op, "sum_rows")) { /* the gradient of a sum is the same number everywhere; a mean's is divided */
        ft_tensor shape = *T(n->in[0]);
        if (!n->mean) {
            ft__tape_give(t, n->in[0], ft__expand(&t->b, g, shape.rows, shape.cols));
            return;
        }
        ft_node spread = ft__node_of(FT_DO_POINTWISE, n->name);
        ft__node_in(&spread, g);
        ft_ref out = result_like(t, &spread, n->in[0]);
        if (out == FT_NONE) return;
        spread.op = ft__pointwise_kernel(t->b.g, "divu", spread.in, 1, T(out));
        spread.op.u.elementwise.pattern = FT_SPREAD;
        ft__emit(&t->b, &spread);
        ft__tape_give(t, n->in[0], out);
        return;
    }
    if (!strcmp(op, "cumsum")) { /* the sums from the other end: turned round, summed, turned back */
        g = ft__copy(&t->b, n->name, g, T(g)->rows, T(g)->cols);
        g = ft__row(&t->b, n->name, "cumsum", g);
        ft__tape_give(t, n->in[0], ft__copy(&t->b, n->name, g, T(g)->rows, T(g)->cols));
        return;
    }
    if (strcmp(op, "softmax") && strcmp(op, "log_softmax")) return; /* argmax: not differentiated */
    ft_node back = ft__node_of(FT_DO_ROW, n->name);
    ft__node_in(&back, g);
    ft__node_in(&back, ft__tape_saved(t, n->out[0]));
    back.op = n->op;
    back.op.pass = FT_BWD;
    back.core = n->core;
    back.traffic = n->traffic < 1 ? 0.83F : 1; /* writes the input's low format */
    ft_ref out = result_like(t, &back, n->in[0]);
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}

/* -- memory ------------------------------------------------------------------------------------ */

static ft_ref zeros(ft_tape *t, const char *name, ft_ref like)
{
    ft_node n = ft__node_of(FT_DO_FILL, name);
    ft_ref out = result_like(t, &n, like);
    if (out == FT_NONE) return out;
    n.op = ft__pointwise_kernel(t->b.g, "fill", n.in, 0, T(out));
    ft__emit(&t->b, &n);
    return out;
}

static void view(ft_tape *t, const ft_node *n, ft_ref g)
{
    const ft_tensor *x = T(n->in[0]);
    int64_t rows = x->rows, cols = x->cols;
    bool strided = T(g)->strided;
    if (T(n->out[0])->rows == rows && T(n->out[0])->cols == cols && !n->transposes) {
        ft__tape_give(t, n->in[0], g);
        return;
    }
    bool reshapes = T(n->out[0])->cols != cols;
    if (n->transposes) {
        strided = !strided;
        if (strided && reshapes) { /* heads side by side again: what lies head by head is copied */
            g = ft__view(&t->b, g, rows, cols, true);
            g = ft__contiguous(&t->b, n->name, g);
            strided = false;
        }
    } else if (strided) { /* reshaping what is not contiguous copies it */
        g = ft__contiguous(&t->b, n->name, g);
        strided = false;
    }
    ft__tape_give(t, n->in[0], ft__view(&t->b, g, rows, cols, strided));
}

static void slice(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref all = zeros(t, n->name, n->in[0]);
    if (all == FT_NONE || t->b.status != FT_OK) return;
    ft_node copy = ft__node_of(FT_DO_COPY, n->name);
    ft__node_in(&copy, all);
    ft__node_in(&copy, g);
    ft_tensor part = *T(g);
    copy.op = ft__pointwise_kernel(t->b.g, "copy", &g, 1, &part);
    copy.op.u.elementwise.pattern = FT_STRIDED;
    copy.in_place = true;
    ft_ref out = ft__node_view(&t->b, &copy, all, T(all)->rows, T(all)->cols, false);
    ft__emit(&t->b, &copy);
    ft__tape_give(t, n->in[0], out);
}

static void split(ft_tape *t, const ft_node *n)
{
    ft_ref part[FT_NODE_OUTPUTS];
    bool any = false;
    for (int i = 0; i < n->out_count; i++) any |= (part[i] = ft__tape_grad(t, n->out[i])) != FT_NONE;
    if (!any || !wants(t, n->in[0])) return;
    for (int i = 0; i < n->out_count; i++)
        if (part[i] == FT_NONE) part[i] = zeros(t, n->name, n->out[i]);
    const ft_tensor *x = T(n->in[0]);
    ft__tape_give(t, n->in[0], ft__cat(&t->b, n->name, n->out_count, part, x->rows, x->cols));
}

static void cat(ft_tape *t, const ft_node *n, ft_ref g)
{
    for (int i = 0; i < n->in_count; i++) {
        const ft_tensor *x = T(n->in[i]);
        if (!x->trained) continue;
        ft_ref part = ft__view(&t->b, g, x->rows, x->cols, true);
        if (part != FT_NONE) T(part)->gaps = true;
        ft__tape_give(t, n->in[i], part);
    }
}

/* Rows that an index picked go back by index_put: indices are sorted so that equal ones can be added up in order. One
 * index that many rows share (a bias of an expert) takes them one after the other, 2.9 us each on H200. */
static void put_rows(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref all = zeros(t, n->name, n->in[0]);
    if (all == FT_NONE || t->b.status != FT_OK) return;
    ft_node sort = ft__node_of(FT_DO_OTHER, n->name);
    sort.op = ft__bytes_kernel("sort", T(g)->dtype, (double)T(g)->rows * 16, (double)T(g)->rows);
    sort.count = 12;
    ft__emit(&t->b, &sort);
    ft_node put = ft__node_of(FT_DO_COPY, n->name);
    ft__node_in(&put, all);
    ft__node_in(&put, g);
    ft_tensor part = *T(g);
    double shared = (double)part.rows / (double)T(all)->rows;
    put.op = ft__pointwise_kernel(t->b.g, "index_put", &g, 1, &part);
    put.op.u.elementwise.pattern = FT_STRIDED;
    if (shared > 64) put.effort = (float)fmax(1, shared * 1e6 / ft__tensor_numel(&part));
    put.in_place = true;
    ft_ref out = ft__node_view(&t->b, &put, all, T(all)->rows, T(all)->cols, false);
    ft__emit(&t->b, &put);
    ft__tape_give(t, n->in[0], out);
}

static void lookup(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref table = n->verb == FT_DO_GATHER ? n->in[0] : n->in[1];
    if (!wants(t, table)) return;
    if (n->verb == FT_DO_GATHER) {
        if (T(n->out[0])->rows == T(table)->rows && T(n->out[0])->cols < T(table)->cols)
            slice(t, n, g); /* top-k */
        else
            put_rows(t, n, g);
        return;
    }
    ft_node back = ft__node_of(n->verb, n->name);
    ft__node_in(&back, g);
    ft__node_in(&back, n->in[0]);
    ft_ref out = result_like(t, &back, table);
    back.op = n->op;
    back.op.pass = FT_BWD;
    ft__emit(&t->b, &back);
    ft__tape_give(t, table, out);
}

/* -- images and the rest ----------------------------------------------------------------------- */

static void conv(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref x = n->in[0], weight = n->in[1];
    bool input = wants(t, x), filter = wants(t, weight);
    if (input || filter) {
        ft_node back = ft__node_of(FT_DO_CONV, n->name);
        ft__node_in(&back, g);
        ft__node_in(&back, ft__tape_saved(t, x));
        ft__node_in(&back, ft__tape_saved(t, weight));
        ft_ref dx = input ? result_like(t, &back, x) : FT_NONE, dw = filter ? result_like(t, &back, weight) : FT_NONE;
        back.op = n->op;
        back.op.pass = FT_BWD;
        back.effort = n->effort;
        if (!input || !filter) back.op.pass = FT_FWD; /* one of the two products, about as long as the forward one */
        ft__emit(&t->b, &back);
        ft__tape_give(t, x, dx);
        ft__tape_give(t, weight, dw);
    }
    if (n->in_count > 2 && wants(t, n->in[2])) {
        ft_node sum = ft__node_of(FT_DO_ROW, n->name);
        ft__node_in(&sum, g);
        ft_tensor shape = *T(g);
        ft_ref out = result_like(t, &sum, n->in[2]);
        sum.op = ft__row_kernel("sum_rows", FT_FWD, shape.rows, shape.cols, shape.dtype);
        ft__emit(&t->b, &sum);
        ft__tape_give(t, n->in[2], out);
    }
}

static void batchnorm(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_node back = ft__node_of(FT_DO_BATCHNORM, n->name);
    ft__node_in(&back, g);
    ft__node_in(&back, ft__tape_saved(t, n->in[0]));
    if (n->out_count > 1) ft__node_in(&back, ft__tape_saved(t, n->out[1]));
    ft_ref out[3] = {FT_NONE, FT_NONE, FT_NONE};
    for (int i = 0; i < 3 && i < n->in_count; i++) out[i] = result_like(t, &back, n->in[i]);
    if (out[0] == FT_NONE) return;
    back.op = ft__pointwise_kernel(t->b.g, "batchnorm", back.in, 2, T(out[0]));
    back.op.u.elementwise.bytes += ft__tensor_bytes(T(g)) + ft__tensor_bytes(T(n->in[0])); /* moments, then result */
    /* Two walks over both operands: by one block per channel, or in NHWC by as many as there is room for. */
    double trips = ft__channel_trips(T(n->in[0]), T(n->in[1])->cols);
    bool low = T(g)->element_bytes < 4;
    back.trips = trips > 0 ? (float)((low ? 2.2 : 1.7) * trips) : low ? 1.9F : 0;
    back.blocks = trips > 0 ? (float)T(n->in[1])->cols : (float)(ft__tensor_numel(T(g)) / 512);
    ft__emit(&t->b, &back);
    for (int i = 0; i < 3 && i < n->in_count; i++) ft__tape_give(t, n->in[i], out[i]);
}

static void pool(ft_tape *t, const ft_node *n, ft_ref g)
{
    ft_ref all = zeros(t, n->name, n->in[0]);
    if (all == FT_NONE) return;
    ft_node back = ft__node_of(FT_DO_POOL, n->name);
    ft__node_in(&back, all);
    ft__node_in(&back, g);
    for (int i = 1; i < n->out_count; i++) ft__node_in(&back, ft__tape_saved(t, n->out[i]));
    ft_tensor shape = *T(all);
    ft_ref out = ft__node_view(&t->b, &back, all, shape.rows, shape.cols, false);
    if (out == FT_NONE) return;
    back.in_place = true;
    back.op = ft__pointwise_kernel(t->b.g, "pool", back.in + 1, back.in_count - 1, T(out));
    back.op.u.elementwise.ops_per_element = n->op.u.elementwise.ops_per_element;
    back.trips = 2.6F; /* each pixel looks up which windows found it */
    back.blocks = (float)(ft__tensor_numel(&shape) / 256);
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}

static void loss(ft_tape *t, const ft_node *n)
{
    ft_ref all = zeros(t, n->name, n->in[0]);
    if (all == FT_NONE) return;
    ft_node write = ft__node_of(FT_DO_LOSS, n->name);
    ft__node_in(&write, all);
    ft__node_in(&write, ft__tape_saved(t, n->in[0])); /* autograd keeps it, for its shape alone */
    ft_tensor shape = *T(all);
    ft_ref out = ft__node_view(&t->b, &write, all, shape.rows, shape.cols, false);
    write.in_place = true;
    write.op = ft__bytes_kernel("nll_loss_backward", shape.dtype, (double)shape.rows * 64, (double)shape.rows);
    ft__emit(&t->b, &write);
    ft__tape_give(t, n->in[0], out);
}

/* An exchange's gradient is its conjugate: what was gathered is scattered, what was summed is passed on. */
static void comm(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!wants(t, n->in[0])) return;
    ft_node back = ft__node_of(FT_DO_COMM, n->name);
    ft__node_in(&back, g);
    back.exchange = (ft_exchange){.kind = n->exchange.gradient,
                                  .gradient = n->exchange.kind,
                                  .axis = n->exchange.axis,
                                  .bytes = n->exchange.gradient_bytes,
                                  .gradient_bytes = n->exchange.bytes};
    const ft_tensor *x = T(n->in[0]);
    ft_ref out = back.exchange.kind == FT_EXCHANGE_NONE || back.exchange.kind == FT_EXCHANGE_ALL_REDUCE
                     ? ft__node_view(&t->b, &back, g, x->rows, x->cols, T(g)->strided)
                     : result_like(t, &back, n->in[0]);
    back.in_place = out != FT_NONE && T(out)->storage == T(g)->storage;
    ft__emit(&t->b, &back);
    ft__tape_give(t, n->in[0], out);
}

/* What has no rule of its own reads the gradient and its input, does twice the arithmetic and writes once. */
static void other(ft_tape *t, const ft_node *n, ft_ref g)
{
    if (!wants(t, n->in[0])) return;
    ft_node back = ft__node_of(n->verb, n->name);
    ft__node_in(&back, g);
    for (int i = 0; i < n->in_count && i < 4; i++) ft__node_in(&back, ft__tape_saved(t, n->in[i]));
    ft_ref out[FT_NODE_OUTPUTS];
    for (int i = 0; i < n->in_count && i < FT_NODE_OUTPUTS; i++)
        out[i] = wants(t, n->in[i]) ? result_like(t, &back, n->in[i]) : FT_NONE;
    back.op = n->op;
    if (n->op.kind == FT_OP_OTHER) {
        back.op.u.other.bytes *= 2;
        back.op.u.other.flops *= 2;
    } else {
        back.count = 2;
    }
    ft__emit(&t->b, &back);
    for (int i = 0; i < n->in_count && i < FT_NODE_OUTPUTS; i++) ft__tape_give(t, n->in[i], out[i]);
}

static void undo(ft_tape *t, const ft_node *n)
{
    if (n->verb == FT_DO_SPLIT) {
        split(t, n);
        return;
    }
    ft_ref g = n->out_count ? ft__tape_grad(t, n->out[0]) : FT_NONE;
    if (g == FT_NONE) return;
    switch (n->verb) {
    case FT_DO_LINEAR: linear(t, n, ft__contiguous(&t->b, n->name, g)); break;
    case FT_DO_MATMUL: matmul(t, n, g); break;
    case FT_DO_ATTENTION: attention(t, n, g); break;
    case FT_DO_POINTWISE: pointwise(t, n, g); break;
    case FT_DO_ROW: row(t, n, g); break;
    case FT_DO_EMBEDDING:
    case FT_DO_GATHER: lookup(t, n, g); break;
    case FT_DO_COPY:
    case FT_DO_EXPAND: ft__tape_give(t, n->in[0], summed(t, n, g, n->in[0])); break;
    case FT_DO_CAT: cat(t, n, g); break;
    case FT_DO_VIEW: view(t, n, g); break;
    case FT_DO_SLICE: slice(t, n, g); break;
    case FT_DO_CONV: conv(t, n, ft__contiguous(&t->b, n->name, g)); break;
    case FT_DO_BATCHNORM: batchnorm(t, n, g); break;
    case FT_DO_POOL: pool(t, n, g); break;
    case FT_DO_LOSS: loss(t, n); break;
    case FT_DO_COMM: comm(t, n, g); break;
    case FT_DO_SCAN:
    case FT_DO_EXPERTS:
    case FT_DO_OTHER: other(t, n, g); break;
    default: break;
    }
}

void ft__tape_node(ft_tape *t, const ft_node *n)
{
    int32_t first = t->b.g->node_count;
    undo(t, n);
    if (!(n->count > 1) || t->b.status != FT_OK) return;
    /* A node of a loop: its gradients run as often, over as small shares. Operators of n's own kind took n's sizes;
     * pointwise ones and sums were sized by their tensors. */
    for (int32_t i = first; i < t->b.g->node_count; i++) {
        ft_node *back = &t->b.g->nodes[i];
        back->count *= n->count;
        if (back->op.kind == FT_OP_ELEMENTWISE || back->op.kind != n->op.kind)
            ft__op_share(&back->op, (double)n->count);
    }
}
