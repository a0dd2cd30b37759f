/* sizes.c: sizes, axes, numbers and formats of a graph file. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "import/graphfile/reader.h"

static const double LARGEST = 0x1p40;
static const double TOGETHER = 0x1p60;

/* -- sizes ------------------------------------------------------------------------------------- */

static bool factor_of(const ft_graph_reader *r, const char *s, size_t n, double *out)
{
    char word[24];
    int64_t whole = 0;
    if (n == 0 || n >= sizeof word) return false;
    memcpy(word, s, n);
    word[n] = 0;
    if (!strcmp(word, "batch"))
        whole = r->m->work->batch;
    else if (!strcmp(word, "seq"))
        whole = r->m->work->seq;
    else if (!ft__whole_parse(word, &whole) || whole < 0)
        return false;
    *out = (double)whole;
    return true;
}

/* "batch", "2*batch*seq", "seq/2", "2*seq-1": terms of products, quotients rounded down. */
static bool formula_of(const ft_graph_reader *r, const char *s, double *out)
{
    double sum = 0, term = 0;
    char sign = '+', by = 0;
    while (true) {
        size_t n = strcspn(s, "*/+-");
        double factor;
        if (!factor_of(r, s, n, &factor) || (by == '/' && factor < 1)) return false;
        term = by == '*' ? term * factor : by == '/' ? floor(term / factor) : factor;
        if (!(term <= TOGETHER)) return false;
        s += n;
        by = *s;
        if (by != '*' && by != '/') {
            sum += sign == '+' ? term : -term;
            if (!*s) break;
            sign = *s;
        }
        s++;
    }
    *out = sum;
    return true;
}

bool ft__graphfile_size_read(const ft_graph_reader *r, const json_t *value, int64_t *out)
{
    double size;
    if (json_is_integer(value)) {
        *out = json_integer_value(value);
        return *out >= 1 && *out <= (int64_t)LARGEST;
    }
    const char *s = json_string_value(value);
    if (!s || !formula_of(r, s, &size) || !(size >= 1 && size <= LARGEST)) return false;
    *out = (int64_t)size;
    return true;
}

bool ft__graphfile_shape_read(const ft_graph_reader *r, const json_t *value, int *dims, int64_t *dim)
{
    size_t n = json_array_size(value);
    bool good = json_is_array(value) && n >= 1 && n <= FT_GRAPHFILE_DIMS;
    for (size_t i = 0; good && i < n; i++) good = ft__graphfile_size_read(r, json_array_get(value, i), &dim[i]);
    *dims = (int)n;
    if (!good || ft__graphfile_rows(*dims, dim) < 1) return false;
    return (double)ft__graphfile_rows(*dims, dim) * (double)dim[*dims - 1] <= TOGETHER;
}

_Static_assert(FT_GRAPHFILE_DIMS == 8, "as FT_GRAPHFILE_SIZES says");

bool ft__graphfile_shape(ft_graph_reader *r, const json_t *value, const char *key, int *dims, int64_t *dim)
{
    if (ft__graphfile_failed(r)) return false;
    if (ft__graphfile_shape_read(r, value, dims, dim)) return true;
    ft__graphfile_fail(r, value ? FT_E_TYPE : FT_E_MISSING, "\"%s\" " FT_GRAPHFILE_SIZES, key);
    return false;
}

int64_t ft__graphfile_whole(ft_graph_reader *r, const char *key, int64_t otherwise, int64_t low, int64_t high)
{
    const json_t *value = json_object_get(r->at, key);
    int64_t n = 0;
    if (ft__graphfile_failed(r) || (!value && otherwise >= low)) return otherwise;
    if (low == 0 && json_is_integer(value) && json_integer_value(value) == 0) return 0;
    bool number = value && ft__graphfile_size_read(r, value, &n);
    if (number && n >= low && n <= high) return n;
    ft__graphfile_fail(r,
                       !value                             ? FT_E_MISSING
                       : number || json_is_integer(value) ? FT_E_RANGE
                                                          : FT_E_TYPE,
                       "\"%s\" must be a whole number from %lld to %lld, or a formula with \"batch\" and \"seq\"", key,
                       (long long)low, (long long)high);
    return low > 0 ? low : 1;
}

bool ft__graphfile_each(ft_graph_reader *r, const char *key, int count, int64_t otherwise, int64_t low, int64_t *out)
{
    const json_t *value = json_object_get(r->at, key);
    if (!json_is_array(value)) {
        int64_t all = ft__graphfile_whole(r, key, otherwise, low, (int64_t)LARGEST);
        for (int i = 0; i < count; i++) out[i] = all;
        return !ft__graphfile_failed(r);
    }
    bool good = json_array_size(value) == (size_t)count && !ft__graphfile_failed(r);
    for (int i = 0; good && i < count; i++) {
        const json_t *one = json_array_get(value, (size_t)i);
        out[i] = 0;
        bool zero = json_is_integer(one) && json_integer_value(one) == 0;
        good = zero ? low == 0 : ft__graphfile_size_read(r, one, &out[i]);
    }
    if (!good)
        ft__graphfile_fail(r, FT_E_TYPE, "\"%s\" must be a whole number from %lld on, or a list of %d of them", key,
                           (long long)low, count);
    return good;
}

/* -- truths, numbers --------------------------------------------------------------------------- */

bool ft__graphfile_truth(ft_graph_reader *r, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(r->at, key);
    if (!value) return otherwise;
    if (!json_is_boolean(value)) ft__graphfile_fail(r, FT_E_TYPE, "\"%s\" must be true or false", key);
    return json_is_true(value);
}

double ft__graphfile_number(ft_graph_reader *r, const char *key, double otherwise, double low, double high)
{
    const json_t *value = json_object_get(r->at, key);
    double number = json_number_value(value);
    if (!value && otherwise >= low) return otherwise;
    if (json_is_number(value) && number >= low && number < high) return number;
    ft__graphfile_fail(r, value ? FT_E_RANGE : FT_E_MISSING, "\"%s\" must be a number from %g to %g, %g excluded", key,
                       low, high, high);
    return low;
}

/* -- axes -------------------------------------------------------------------------------------- */

static bool add_axis(const json_t *value, int dims, unsigned *set)
{
    json_int_t axis = json_integer_value(value);
    if (!json_is_integer(value) || axis < -dims || axis >= dims) return false;
    *set |= 1u << (unsigned)(axis < 0 ? axis + dims : axis);
    return true;
}

unsigned ft__graphfile_axes(ft_graph_reader *r, int dims, int otherwise)
{
    const json_t *axis = json_object_get(r->at, "axis"), *axes = json_object_get(r->at, "axes");
    unsigned set = 0;
    if (ft__graphfile_failed(r)) return 0;
    if (!axis && !axes) return 1u << (unsigned)(otherwise < 0 ? otherwise + dims : otherwise);
    bool good = !axis || add_axis(axis, dims, &set);
    if (axes) good = good && json_is_array(axes) && json_array_size(axes);
    for (size_t i = 0; good && i < json_array_size(axes); i++) good = add_axis(json_array_get(axes, i), dims, &set);
    if (good) return set;
    ft__graphfile_fail(r, FT_E_RANGE, "\"%s\" must be axes of %d, from %d to %d", axes ? "axes" : "axis", dims, -dims,
                       dims - 1);
    return 0;
}

int ft__graphfile_axis(ft_graph_reader *r, int dims, int otherwise)
{
    unsigned set = ft__graphfile_axes(r, dims, otherwise);
    for (int i = 0; i < dims; i++)
        if (set == 1u << (unsigned)i) return i;
    if (set) ft__graphfile_fail(r, FT_E_RANGE, "it works along one axis");
    return -1;
}

/* -- formats ----------------------------------------------------------------------------------- */

ft_format ft__graphfile_floats(const ft_graph_reader *r)
{
    ft_dtype stored = r->m->b.stored;
    return (ft_format){FT_FLOATS, stored, ft_dtype_bytes(stored)};
}

bool ft__graphfile_format(const ft_graph_reader *r, const char *name, ft_format *out)
{
    static const struct {
        const char *name;
        ft_values values;
        double bytes;
    } others[] = {{"int64", FT_INTEGERS, 8}, {"int32", FT_INTEGERS, 4}, {"int16", FT_INTEGERS, 2},
                  {"int8", FT_INTEGERS, 1},  {"uint8", FT_INTEGERS, 1}, {"bool", FT_BOOLS, 1}};
    *out = ft__graphfile_floats(r);
    if (!strcmp(name, "model")) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].name, name)) {
            out->values = others[i].values;
            out->bytes = others[i].bytes;
            return true;
        }
    if (!ft_dtype_parse(name, &out->dtype)) return false;
    if (out->dtype == FT_TF32) out->dtype = FT_FP32;
    out->bytes = ft_dtype_bytes(out->dtype);
    return true;
}

bool ft__graphfile_format_key(ft_graph_reader *r, const char *key, ft_format otherwise, ft_format *out)
{
    const json_t *value = json_object_get(r->at, key);
    const char *name = json_string_value(value);
    *out = otherwise;
    if (!value) return true;
    if (name && ft__graphfile_format(r, name, out)) return true;
    ft__graphfile_fail(r, FT_E_NAME, "\"%s\" must name a dtype, got \"%.*s\"", key,
                       name ? (int)ft__utf8_cut(name, 20) : 0, name ? name : "");
    return false;
}

/* -- products of axes -------------------------------------------------------------------------- */

int64_t ft__graphfile_rows(int dims, const int64_t *dim)
{
    double rows = 1;
    for (int i = 0; i + 1 < dims; i++) rows *= (double)dim[i];
    return rows > TOGETHER ? 0 : (int64_t)rows;
}

double ft__graphfile_elements(const ft_named *n)
{
    return (double)ft__graphfile_rows(n->dims, n->dim) * (double)n->dim[n->dims - 1];
}

int64_t ft__graphfile_span(const ft_named *n, int from, int to)
{
    int64_t span = 1; /* below 2^60: the whole tensor is */
    for (int i = from; i < to && i < n->dims; i++) span *= n->dim[i];
    return span;
}

bool ft__graphfile_possible(ft_graph_reader *r, int dims, const int64_t *dim)
{
    double all = 1;
    for (int i = 0; i < dims; i++) all *= (double)dim[i];
    if (all >= 1 && all <= TOGETHER) return true;
    ft__graphfile_fail(r, FT_E_RANGE, "a tensor of %.4g elements is too large for any machine", all);
    return false;
}
