/* inputs.c: four lists of text into one of arguments. */
#include "trace/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_DIM (INT64_C(1) << 40)

/* "c10::BFloat16", "float" -> the format; bytes 0 where the name is not known. */
static double type_bytes(const char *name, size_t length, ft_dtype *dtype, bool *floating)
{
    static const struct {
        const char *name;
        double bytes;
        ft_dtype dtype;
        bool floating;
    } types[] = {
        {"c10::BFloat16", 2, FT_BF16, true},
        {"c10::Half", 2, FT_FP16, true},
        {"float", 4, FT_FP32, true},
        {"double", 8, FT_FP64, true},
        {"c10::Float8_e4m3fn", 1, FT_FP8, true},
        {"c10::Float8_e5m2", 1, FT_FP8, true},
        {"c10::Float8_e4m3fnuz", 1, FT_FP8, true},
        {"c10::Float8_e5m2fnuz", 1, FT_FP8, true},
        {"long int", 8, FT_FP32, false},
        {"long", 8, FT_FP32, false},
        {"int", 4, FT_FP32, false},
        {"short", 2, FT_FP32, false},
        {"short int", 2, FT_FP32, false},
        {"bool", 1, FT_FP32, false},
        {"unsigned char", 1, FT_FP32, false},
        {"signed char", 1, FT_INT8, false},
        {"c10::complex<float>", 8, FT_FP32, true},
        {"c10::complex<double>", 16, FT_FP64, true},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (length == strlen(types[i].name) && !memcmp(types[i].name, name, length)) {
            *dtype = types[i].dtype;
            *floating = types[i].floating;
            return types[i].bytes;
        }
    return 0;
}

/* -- lists ------------------------------------------------------------------------------------- */

/* Up to `most` whole numbers of "[8, 1024]"; where the list ends. Further ones are passed over. */
static const char *sizes(const char *p, int64_t *out, int most, int *count)
{
    *count = 0;
    while (*p && *p != ']' && *p != '[') {
        if ((*p >= '0' && *p <= '9') || *p == '-') {
            char *end;
            long long v = strtoll(p, &end, 10);
            if (end == p) {
                p++;
                continue;
            }
            if (*count < most) out[(*count)++] = v > LARGEST_DIM ? LARGEST_DIM : v < 0 ? 0 : v;
            p = end;
        } else {
            p++;
        }
    }
    return *p == ']' ? p + 1 : p;
}

static double product(const int64_t *dim, int rank)
{
    double n = rank > 0 ? 1 : 0;
    for (int i = 0; i < rank; i++) n *= (double)dim[i];
    return n;
}

static bool in_order(const int64_t *dim, const int64_t *stride, int rank)
{
    double expected = 1;
    for (int i = rank - 1; i >= 0; i--) {
        if (dim[i] > 1 && (double)stride[i] != expected) return false;
        expected *= (double)dim[i];
    }
    return true;
}

/* One entry: "[8, 1024]", "[]", "[[8], [16]]", or a word. */
static const char *entry(const char *p, ft_input *x, bool strides)
{
    int64_t some[FT_INPUT_RANK];
    int rank;
    if (*p != '[') {
        while (*p && *p != ',' && *p != ']') p++;
        return p;
    }
    p++;
    while (*p == ' ' || *p == '\n') p++;
    if (*p != '[') {
        p = sizes(p, some, FT_INPUT_RANK, &rank);
        if (strides) {
            x->strides_known = rank == x->rank && rank > 0;
            for (int i = 0; i < rank; i++) x->stride[i] = some[i];
        } else {
            x->rank = rank;
            for (int i = 0; i < rank; i++) x->dim[i] = some[i];
            x->numel = product(some, rank);
            x->tensors = rank > 0;
        }
        return p;
    }
    int depth = 1;
    int64_t dims[FT_INPUT_RANK];
    int dim_rank;
    const char *beside = strides ? x->concrete : NULL; /* the list's sizes, kept here until the strides are read */
    x->list = true;
    if (!strides) x->concrete = p;
    while (*p && depth > 0) {
        if (*p == '[') {
            p = sizes(p + 1, some, FT_INPUT_RANK, &rank);
            if (strides) {
                while (beside && *beside && *beside != '[' && *beside != ']') beside++;
                if (!beside || *beside != '[') continue;
                beside = sizes(beside + 1, dims, FT_INPUT_RANK, &dim_rank);
                if (dim_rank == rank && !in_order(dims, some, rank)) x->scattered = true;
                continue;
            }
            double numel = rank > 0 ? product(some, rank) : 1;
            if (x->numel <= 0 && numel > 0) { /* an empty one before it has no shape to speak of */
                x->rank = rank;
                for (int i = 0; i < rank; i++) x->dim[i] = some[i];
            }
            x->numel += numel;
            x->tensors++;
        } else {
            depth -= *p == ']';
            p++;
        }
    }
    return p;
}

static void each_entry(const char *p, ft_inputs *in, bool strides)
{
    int i = 0;
    if (*p != '[') return;
    p++;
    while (*p && *p != ']' && i < FT_INPUTS) {
        if (*p == ' ' || *p == ',' || *p == '\n') {
            p++;
            continue;
        }
        const char *from = p;
        p = entry(p, &in->at[i], strides);
        if (p == from) break;
        i++;
    }
    if (!strides) in->count = i;
}

/* The words of ["float", "", "Scalar"]. */
static int words(const char *p, ft_trace_text *out, int most)
{
    int n = 0;
    while (*p && n < most) {
        if (*p != '"') {
            p++;
            continue;
        }
        const char *from = ++p;
        while (*p && *p != '"') p += *p == '\\' && p[1] ? 2 : 1;
        out[n++] = (ft_trace_text){from, (size_t)(p - from)};
        if (*p) p++;
    }
    return n;
}

/* Sorted by stride, axes of one run of memory follow each other without gaps; axes of stride 0 are the same memory. */
static void layout(ft_input *x)
{
    x->stored = x->numel;
    x->dense = x->contiguous = !x->scattered;
    if (x->list || !x->strides_known) return;
    bool used[FT_INPUT_RANK] = {false};
    double next = 1;
    double expected = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        if (x->dim[i] != 1 && (double)x->stride[i] != expected) x->contiguous = false;
        expected *= (double)x->dim[i];
        if (x->stride[i] == 0 && x->dim[i] > 1) x->stored /= (double)x->dim[i];
    }
    for (int round = 0; round < x->rank; round++) {
        int least = -1;
        for (int i = 0; i < x->rank; i++)
            if (!used[i] && x->dim[i] > 1 && x->stride[i] > 0 && (least < 0 || x->stride[i] < x->stride[least]))
                least = i;
        if (least < 0) break;
        used[least] = true;
        if ((double)x->stride[least] != next) x->dense = false;
        next *= (double)x->dim[least];
    }
    if (x->stored < x->numel) x->dense = false;
}

/* A recording says the format of a list's tensors where they have one: "TensorList<float>". */
static ft_trace_text of_list(ft_trace_text type)
{
    static const char before[] = "TensorList<";
    size_t n = sizeof before - 1;
    if (type.length <= n + 1 || memcmp(type.at, before, n) != 0 || type.at[type.length - 1] != '>') return type;
    return (ft_trace_text){type.at + n, type.length - n - 1};
}

void ft__inputs_read(const ft_signature_text *text, ft_inputs *out)
{
    ft_trace_text types[FT_INPUTS], concrete[FT_INPUTS];
    memset(out, 0, sizeof *out);
    each_entry(text->dims, out, false);
    each_entry(text->strides, out, true);
    int type_count = words(text->types, types, FT_INPUTS), concrete_count = words(text->concrete, concrete, FT_INPUTS);
    for (int i = 0; i < out->count; i++) {
        ft_input *x = &out->at[i];
        x->concrete = "";
        if (i < concrete_count) {
            x->concrete = concrete[i].at;
            x->concrete_length = concrete[i].length;
        }
        if (i < type_count) {
            ft_trace_text type = of_list(types[i]);
            x->element_bytes = type_bytes(type.at, type.length, &x->dtype, &x->floating);
        }
        if (x->rank == 0 && !x->list && x->element_bytes > 0) x->numel = 1, x->tensors = 1; /* a tensor of one number */
        if (!(x->numel <= 1e15)) x->numel = 0;
        layout(x);
    }
}

/* -- arguments --------------------------------------------------------------------------------- */

bool ft__input_number(const ft_inputs *in, int at, double *out)
{
    char copy[40];
    if (at < 0 || at >= in->count) return false;
    size_t n = in->at[at].concrete_length;
    if (n == 0 || n >= sizeof copy) return false;
    memcpy(copy, in->at[at].concrete, n);
    copy[n] = 0;
    char *end;
    double v = strtod(copy, &end);
    if (end == copy || !isfinite(v)) return false;
    *out = v;
    return true;
}

bool ft__input_true(const ft_inputs *in, int at)
{
    if (at < 0 || at >= in->count) return false;
    const ft_input *x = &in->at[at];
    return (x->concrete_length == 4 && !memcmp(x->concrete, "True", 4)) ||
           (x->concrete_length == 1 && x->concrete[0] == '1');
}

int ft__input_numbers(const ft_inputs *in, int at, int64_t *out, int most)
{
    if (at < 0 || at >= in->count) return 0;
    const char *p = in->at[at].concrete, *end = p + in->at[at].concrete_length;
    int n = 0;
    while (p < end && n < most) {
        bool minus = *p == '-' && p + 1 < end;
        const char *from = p + minus;
        if (from >= end || *from < '0' || *from > '9') {
            p++;
            continue;
        }
        int64_t v = 0;
        for (p = from; p < end && *p >= '0' && *p <= '9'; p++)
            if (v < LARGEST_DIM) v = 10 * v + (*p - '0');
        out[n++] = minus ? -v : v;
    }
    return n;
}

double ft__input_bytes(const ft_input *x, double otherwise)
{
    return x->stored * (x->element_bytes > 0 ? x->element_bytes : otherwise);
}

int64_t ft__input_last(const ft_input *x) { return x->rank > 0 ? x->dim[x->rank - 1] : 1; }
