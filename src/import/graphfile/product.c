/* product.c: linear layers, matrix products, embeddings. */
#include <string.h>

#include "graph/emit.h"
#include "import/graphfile/reader.h"

static const int64_t LARGEST = (int64_t)1 << 40;

/* -- linear ------------------------------------------------------------------------------------ */

/* "kn": the weight stands [k, features]. */
static bool across(ft_graph_reader *r)
{
    const json_t *value = json_object_get(r->at, "weight_layout");
    const char *layout = json_string_value(value);
    if (!value || (layout && !strcmp(layout, "nk"))) return false;
    if (layout && !strcmp(layout, "kn")) return true;
    ft__graphfile_fail(r, FT_E_NAME, "\"weight_layout\" must be \"nk\", features first, or \"kn\"");
    return false;
}

/* The features that a named weight says; 0: it says nothing. */
static int64_t features_of(ft_graph_reader *r, int64_t k, bool turned)
{
    const ft_named *w = ft__graphfile_named_weight(r, "weight");
    if (!w || w->dims < 2) return 0;
    int64_t rows = ft__graphfile_rows(w->dims, w->dim), cols = w->dim[w->dims - 1];
    int64_t inner = turned ? rows : cols, features = turned ? cols : rows;
    if (inner == k) return features;
    ft__graphfile_fail(r, FT_E_RANGE, "its weight is for rows of %lld, x has rows of %lld", (long long)inner,
                       (long long)k);
    return 0;
}

/* An activation inside the product's kernel costs nothing; autograd knows no such product. False after an error. */
static bool activation_fits(ft_graph_reader *r)
{
    const json_t *said = json_object_get(r->at, "activation");
    const char *name = json_string_value(said);
    if (!said) return true;
    if (!name || (strcmp(name, "gelu") != 0 && strcmp(name, "relu") != 0))
        ft__graphfile_fail(r, FT_E_NAME, "\"activation\" of a product must be \"gelu\" or \"relu\"");
    else if (ft__graphfile_build(r)->training)
        ft__graphfile_fail(r, FT_E_UNSUPPORTED,
                           "\"activation\" inside a product has no gradient: a node of its own is needed to train");
    return !ft__graphfile_failed(r);
}

void ft__read_linear(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    if (!ft__graphfile_operand(r, 0, &x) || !activation_fits(r)) return;
    int64_t k = x.dim[x.dims - 1];
    bool turned = across(r), before = b->conv1d;
    const json_t *said = json_object_get(r->at, "weight");
    if (said && !json_is_string(said)) {
        ft__graphfile_fail(r, FT_E_TYPE, "\"weight\" must name a parameter");
        return;
    }
    int64_t features = 0;
    if (said && !json_object_get(r->at, "features")) features = features_of(r, k, turned);
    features = ft__graphfile_whole(r, "features", features, 1, LARGEST);
    ft_ref weight = FT_NONE;
    if (ft__graphfile_failed(r)) return;
    if (said) {
        const ft_named *w = ft__graphfile_named_weight(r, "weight");
        if (!w || ft__graphfile_elements(w) != (double)features * (double)k) {
            if (w)
                ft__graphfile_fail(r, FT_E_RANGE, "the weight has %.0f elements, not %lld x %lld",
                                   ft__graphfile_elements(w), (long long)features, (long long)k);
            return;
        }
        weight = w->ref;
        ft__as_weight(b, weight);
    } else {
        weight = ft__weight(b, "weight", turned ? k : features, turned ? features : k);
    }
    ft_ref bias = ft__graphfile_weight(r, "bias", false, "bias", 1, features);
    ft_ref in = ft__graphfile_by_rows(r, at, &x);
    b->conv1d = turned;
    ft_ref y = ft__linear_with(b, at, in, weight, features, bias, FT_WHOLE);
    b->conv1d = before;
    ft__module(b, 1);
    y = ft__adapted(b, at, in, y, features, FT_WHOLE);
    x.dim[x.dims - 1] = features;
    ft__graphfile_result(r, y, x.dims, x.dim);
}

/* -- products of activations ------------------------------------------------------------------- */

/* An operand of a batched product: batches have to be one axis to it, which strides may not allow, and all of them have
 * to be there. `turned`: its rows do not lie in memory, a copy changes their order. */
static ft_ref batched(ft_graph_reader *r, ft_at at, ft_named *x, double batch, bool *turned)
{
    ft_build *b = ft__graphfile_build(r);
    int64_t rows = x->dim[x->dims - 2], cols = x->dim[x->dims - 1];
    double all = batch * (double)rows * (double)cols;
    *turned = !x->unordered && x->stride[x->dims - 1] != 1 && cols > 1;
    if (all > ft__graphfile_elements(x)) return ft__copy(b, at, x->ref, (int64_t)batch * rows, cols);
    if (ft__graphfile_merges(x, 2)) return x->ref;
    if (*turned) return ft__transpose(b, at, x->ref, (int64_t)batch * rows, cols);
    return ft__graphfile_copied(r, at, x);
}

/* Sizes of the batches together, as NumPy broadcasts them, into `out`'s leading axes; false after an error. */
static bool batches(ft_graph_reader *r, const ft_named *a, const ft_named *c, ft_named *out)
{
    int more = a->dims > c->dims ? a->dims : c->dims;
    out->dims = more;
    for (int i = 3; i <= more; i++) {
        int64_t one = i <= a->dims ? a->dim[a->dims - i] : 1, two = i <= c->dims ? c->dim[c->dims - i] : 1;
        if (one != two && one != 1 && two != 1) return false;
        out->dim[more - i] = one > two ? one : two;
    }
    (void)r;
    return true;
}

/* [..., m, k] x [..., k, n]; "transposed": the second is [..., n, k]. */
void ft__read_matmul(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named a, c;
    bool across_c = ft__graphfile_truth(r, "transposed", false);
    if (!ft__graphfile_operand(r, 0, &a) || !ft__graphfile_operand(r, 1, &c)) return;
    if (a.dims < 2 || c.dims < 2) {
        ft__graphfile_fail(r, FT_E_RANGE, "a product needs two axes of each operand, got %d and %d", a.dims, c.dims);
        return;
    }
    int64_t m = a.dim[a.dims - 2], k = a.dim[a.dims - 1];
    int64_t inner = c.dim[c.dims - (across_c ? 1 : 2)], n = c.dim[c.dims - (across_c ? 2 : 1)];
    if (k != inner) {
        ft__graphfile_fail(r, FT_E_RANGE, "the operands' inner sizes differ: %lld and %lld", (long long)k,
                           (long long)inner);
        return;
    }
    double batch = ft__graphfile_elements(&a) / ((double)m * (double)k);
    double other = ft__graphfile_elements(&c) / ((double)k * (double)n);
    ft_named out = {.dims = a.dims, .repeats = FT_NONE};
    memcpy(out.dim, a.dim, sizeof out.dim);
    if (batch != other && !batches(r, &a, &c, &out)) {
        ft__graphfile_fail(r, FT_E_RANGE, "the operands' batches differ: %.0f and %.0f matrices", batch, other);
        return;
    }
    out.dim[out.dims - 2] = m;
    out.dim[out.dims - 1] = n;
    if (!ft__graphfile_possible(r, out.dims, out.dim)) return;
    if (other == 1 && batch > 1) { /* one product of all rows */
        ft_ref x = ft__graphfile_by_rows(r, at, &a);
        bool before = b->conv1d, weight = ft__tensor_of(b, c.ref)->role == FT_PARAMETER;
        if (weight) ft__as_weight(b, c.ref);
        b->conv1d = !across_c;
        ft_ref y = weight ? ft__linear_with(b, at, x, c.ref, n, FT_NONE, FT_WHOLE)
                          : ft__matmul(b, at, x, c.ref, 1, (int64_t)batch * m, n, k, across_c ? "nt" : "nn");
        b->conv1d = before;
        ft__graphfile_result(r, y, out.dims, out.dim);
        return;
    }
    double both = (double)ft__graphfile_span(&out, 0, out.dims - 2), size = both * (double)k;
    if (size * (double)m > 1e18 || size * (double)n > 1e18) {
        ft__graphfile_fail(r, FT_E_RANGE, "%.4g products of %lld x %lld x %lld are too large for any machine", both,
                           (long long)m, (long long)n, (long long)k);
        return;
    }
    bool a_turned, c_turned;
    ft_ref x = batched(r, at, &a, both, &a_turned), y = batched(r, at, &c, both, &c_turned);
    /* Keys that were transposed on their way: the product reads them as they lay. */
    bool nt = across_c != (c_turned && !across_c);
    ft_ref z = ft__matmul(b, at, x, y, (int64_t)both, m, n, k, nt ? "nt" : "nn");
    ft__graphfile_result(r, z, out.dims, out.dim);
}

/* -- embeddings -------------------------------------------------------------------------------- */

void ft__read_embedding(ft_graph_reader *r, ft_at at)
{
    ft_build *b = ft__graphfile_build(r);
    ft_named x;
    if (!ft__graphfile_operand(r, 0, &x)) return;
    const json_t *said = json_object_get(r->at, "table");
    const char *label = json_string_value(said);
    if (said && !label) {
        ft__graphfile_fail(r, FT_E_TYPE, "\"table\" must be a name");
        return;
    }
    const ft_named *known = label ? ft__graphfile_find(r, label) : NULL;
    int64_t rows = ft__graphfile_whole(r, "rows", known && known->dims == 2 ? known->dim[0] : 0, 1, LARGEST);
    int64_t features = ft__graphfile_whole(r, "features", known && known->dims == 2 ? known->dim[1] : 0, 1, LARGEST);
    if (ft__graphfile_failed(r)) return;
    if (known && (known->dims != 2 || known->dim[0] != rows || known->dim[1] != features)) {
        ft__graphfile_fail(r, FT_E_RANGE, "\"table\" names a tensor of another shape than %lld x %lld", (long long)rows,
                           (long long)features);
        return;
    }
    ft_ref table = known ? known->ref : FT_NONE;
    int64_t shape[2] = {rows, features};
    int64_t bag = ft__graphfile_whole(r, "bag", 0, 0, LARGEST), all = (int64_t)ft__graphfile_elements(&x);
    if (!ft__graphfile_failed(r) && bag > 0 && all % bag)
        ft__graphfile_fail(r, FT_E_RANGE, "%lld indices are not bags of %lld", (long long)all, (long long)bag);
    if (ft__graphfile_failed(r)) return;
    if (bag > 0) {
        int64_t made[2] = {all / bag, features};
        ft_ref sums = ft__embedding_bag(b, at, x.ref, rows, features, bag, &table);
        if (label && !known) ft__graphfile_keep(r, ft__graphfile_text(r, label), table, 2, shape);
        ft__graphfile_result(r, sums, 2, made);
        return;
    }
    ft_ref y = ft__embedding(b, at, x.ref, rows, features, &table);
    int dims = x.dims < FT_GRAPHFILE_DIMS ? x.dims + 1 : FT_GRAPHFILE_DIMS;
    if (dims == x.dims) x.dim[dims - 2] *= x.dim[dims - 1];
    x.dim[dims - 1] = features;
    if (label && !known) ft__graphfile_keep(r, ft__graphfile_text(r, label), table, 2, shape);
    ft__graphfile_result(r, y, dims, x.dim);
}
