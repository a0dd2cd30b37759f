/* tensor.c: element types, and the contents of small tensors. */
#include "import/onnx/tensor.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

double ft__onnx_type_bytes(int type)
{
    static const double bytes[FT_ONNX_TYPES] = {0,  4, 1, 1, 2, 2, 4,   8,   0,   1, 2,    8,    4,    8,   8,
                                                16, 2, 1, 1, 1, 1, 0.5, 0.5, 0.5, 1, 0.25, 0.25, 0.75, 0.75};
    return type > 0 && type < FT_ONNX_TYPES ? bytes[type] : 0;
}

bool ft__onnx_type_floats(int type)
{
    return type == FT_ONNX_FLOAT || type == FT_ONNX_FLOAT16 || type == FT_ONNX_BFLOAT16 || type == FT_ONNX_DOUBLE;
}

static ft_onnx_number of_whole(int64_t i) { return (ft_onnx_number){i, (double)i}; }

static ft_onnx_number of_real(double f)
{
    return (ft_onnx_number){isnan(f) ? 0 : f >= 0x1p63 ? INT64_MAX : f < -0x1p63 ? INT64_MIN : (int64_t)f, f};
}

/* IEEE 754 binary16: five bits of exponent, ten of fraction. */
static double half(uint16_t bits)
{
    int exponent = (bits >> 10) & 31;
    double fraction = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* The upper half of a binary32. */
static double brain(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return (double)f;
}

static uint64_t little_endian(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* `bits` hold an element of this type. False where nobody computes with such. */
static bool decode(int type, uint64_t bits, ft_onnx_number *out)
{
    float f;
    double d;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case FT_ONNX_FLOAT:
        memcpy(&f, &low, sizeof f);
        *out = of_real((double)f);
        return true;
    case FT_ONNX_DOUBLE:
        memcpy(&d, &bits, sizeof d);
        *out = of_real(d);
        return true;
    case FT_ONNX_FLOAT16: *out = of_real(half((uint16_t)bits)); return true;
    case FT_ONNX_BFLOAT16: *out = of_real(brain((uint16_t)bits)); return true;
    case FT_ONNX_INT8: *out = of_whole((int8_t)bits); return true;
    case 5: *out = of_whole((int16_t)bits); return true;
    case FT_ONNX_INT32: *out = of_whole((int32_t)low); return true;
    case FT_ONNX_INT64: *out = of_whole((int64_t)bits); return true;
    case FT_ONNX_BOOL: *out = of_whole((bits & 255) != 0); return true;
    case FT_ONNX_UINT8: *out = of_whole((uint8_t)bits); return true;
    case 4: *out = of_whole((uint16_t)bits); return true;
    case 12: *out = of_whole((int64_t)low); return true;
    case 13: *out = of_whole(bits > INT64_MAX ? INT64_MAX : (int64_t)bits); return true;
    default: return false;
    }
}

/* False when the contents are not there, or not as many as the shape says. */
static bool contents(const FtOnnx__Tensor *t, int type, size_t count, ft_onnx_number *out)
{
    double each = ft__onnx_type_bytes(type);
    bool good = true;
    if (t->has_raw_data && t->raw_data.len) {
        if (each < 1 || t->raw_data.len != count * (size_t)each) return false;
        for (size_t i = 0; i < count && good; i++)
            good = decode(type, little_endian(t->raw_data.data + i * (size_t)each, (size_t)each), &out[i]);
        return good;
    }
    if (t->n_float_data == count && type == FT_ONNX_FLOAT) {
        for (size_t i = 0; i < count; i++) out[i] = of_real((double)t->float_data[i]);
        return true;
    }
    if (t->n_double_data == count && type == FT_ONNX_DOUBLE) {
        for (size_t i = 0; i < count; i++) out[i] = of_real(t->double_data[i]);
        return true;
    }
    if (t->n_int64_data == count && type == FT_ONNX_INT64) {
        for (size_t i = 0; i < count; i++) out[i] = of_whole(t->int64_data[i]);
        return true;
    }
    if (t->n_int32_data == count) {
        for (size_t i = 0; i < count && good; i++) good = decode(type, (uint64_t)(int64_t)t->int32_data[i], &out[i]);
        return good;
    }
    if (t->n_uint64_data == count) {
        for (size_t i = 0; i < count && good; i++) good = decode(type, t->uint64_data[i], &out[i]);
        return good;
    }
    return false;
}

ft_status ft__onnx_tensor_of(const FtOnnx__Tensor *from, const int64_t *dims, size_t dim_count, const char *name,
                             ft_arena *arena, const ft_onnx_tensor **out, ft_error *err)
{
    ft_onnx_tensor *t = ft__arena_alloc(arena, sizeof *t);
    double count = 1;
    int cut = (int)ft__utf8_cut(name, 80);
    if (!t) return ft__no_memory(err);
    if (dim_count > FT_ONNX_DIMS)
        return ft__fail(err, FT_E_UNSUPPORTED, "tensor \"%.*s\" has %zu axes: at most %d are read", cut, name,
                        dim_count, FT_ONNX_DIMS);
    t->type = from->data_type;
    t->dims = (int)dim_count;
    for (size_t i = 0; i < dim_count; i++) {
        t->dim[i] = dims[i];
        if (dims[i] < 0 || dims[i] > (int64_t)1 << 40)
            return ft__fail(err, FT_E_RANGE, "tensor \"%.*s\" has a size of %lld", cut, name, (long long)dims[i]);
        count *= (double)dims[i];
    }
    if (count > 1e15)
        return ft__fail(err, FT_E_RANGE, "tensor \"%.*s\" of %.3g elements is too large for any machine", cut, name,
                        count);
    *out = t;
    if (count > FT_ONNX_KNOWN) return FT_OK;
    ft_onnx_number *known = ft__arena_array(arena, (size_t)count + 1, sizeof *known);
    if (!known) return ft__no_memory(err);
    if (count <= 0 || contents(from, t->type, (size_t)count, known)) t->known = known;
    return FT_OK;
}

ft_status ft__onnx_tensor_from(const ft_onnx_attribute *a, ft_arena *arena, const ft_onnx_tensor **out, ft_error *err)
{
    ft_onnx_tensor *t = ft__arena_alloc(arena, sizeof *t);
    bool list = strstr(a->name, "ints") || strstr(a->name, "floats");
    bool floats = strstr(a->name, "float") != NULL, text = strstr(a->name, "string") != NULL;
    size_t count = !list ? 1 : floats ? a->float_count : a->int_count;
    if (!t) return ft__no_memory(err);
    t->type = text ? FT_ONNX_STRING : floats ? FT_ONNX_FLOAT : FT_ONNX_INT64;
    t->dims = list;
    t->dim[0] = (int64_t)count;
    *out = t;
    if (text || count > FT_ONNX_KNOWN) return FT_OK;
    ft_onnx_number *known = ft__arena_array(arena, count + 1, sizeof *known);
    if (!known) return ft__no_memory(err);
    for (size_t i = 0; i < count; i++)
        known[i] = floats ? of_real(list ? (double)a->floats[i] : a->f) : of_whole(list ? a->ints[i] : a->i);
    t->known = known;
    return FT_OK;
}
