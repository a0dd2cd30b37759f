/* How PyTorch's kernel of a row operator is laid out over its matrix: threads, vectors, passes, and which kernel it is
 * where there are several (aten/src/ATen/native/cuda). */
#include "kernel/row_layout.h"

#include <math.h>
#include <string.h>

#include "kernel/row_constants.h"

static double up(double x) /* to a power of two */
{
    double p = 1;
    while (p < x) p *= 2;
    return p;
}

static double down(double x)
{
    double p = up(x);
    return p > x ? p / 2 : p;
}

static bool is(const ft_op *op, const char *name) { return !strcmp(op->name, name); }

/* PyTorch's reductions (aten/src/ATen/native/cuda/Reduce.cuh): `outputs` sums of `length` values each. Threads of a
 * block's width go along what is contiguous; its height goes along the sum when that leaves each thread 16 values per
 * warp of the height, else along further outputs; and when a thread still has 256 values or more, blocks share a sum
 * and add up in a second stage. A thread just under that bound walks 255 values alone: sums of 1,000 rows can take
 * longer than sums of 5,000. */
static void reduction(const ft_device *device, double outputs, double length, bool along, double vector,
                      ft_row_layout *g)
{
    double most = 512 / (along ? 1 : vector), inner = along ? length : outputs / vector,
           outer = along ? outputs : length;
    double width = fmin(down(fmax(inner, 1)), 32), height = fmin(down(outer), most / width);
    width = fmin(down(fmax(inner, 1)), most / height);
    double values = along ? length / width : length;
    double across = along ? 1 : width * vector; /* outputs a block's width covers */
    if (values >= height * 16 || values >= 256)
        values /= height;
    else
        across *= height;
    g->block = width * height;
    g->blocks = ceil(outputs / across);
    g->rows_each = along ? across : 1;
    double target = device->sms * floor(device->max_warps_per_sm * 32 / fmax(g->block, 32));
    if (values >= 256 && g->blocks <= target) {
        double ctas = fmax(fmin(ceil(target / g->blocks), ceil(values / 16)), ceil(values / 256));
        if (ctas > 1) g->kernel = FT_ROW_STAGED;
        g->blocks *= ctas;
        values /= ctas;
    }
    g->trips = ceil(values / 4); /* four loads are under way at a time */
    g->fill = values / (4 * g->trips);
}

/* Softmax before 2.7. Blocks are as wide as there are vectors, halved; forward kernels of 1,024 threads
 * (SoftMaxForward_getBlockSize, SoftMax.cu) fit the eager rows less well. */
static void older_softmax(bool back, double cols, double *threads, double *vector, ft_row_layout *g)
{
    if (cols <= 1024) { /* a warp per row, columns padded to a power of two, in registers */
        *threads = fmin(32, up(cols));
        *vector = fmax(1, up(cols) / *threads);
        g->block = 128;
        g->rows_each = 128 / *threads;
    } else {
        *threads = g->block = up(fmin(cols / *vector, 1024) / 2);
        g->again = back ? 1 : 2;
    }
}

/* Softmax of today (SoftMax.cu, PersistentSoftmax.cuh; pull request 144679, January 2025). A warp keeps a row of up to
 * 2,048 columns in registers, 1,024 going back; a block of 1,024 threads keeps up to nine elements a thread. Wider rows
 * lie in shared memory where vectors divide them and they fit. Else each pass reads them from memory again: a head and
 * a tail go element by element, what lies between by vectors. A step waits for memory; an element that a thread holds
 * takes its share of one. */
static void softmax(bool back, bool plain, double rows, double cols, double e, ft_row_layout *g)
{
    const struct ft__k_row_softmax_registers *k = &ft__k_row_softmax_registers[!plain];
    double vector = 16 / e, threads = 1024, room = FT_K_ROW_SHARED_BYTES - threads / 32 * 4, elements;
    double once = 1.0 / (back ? 2 : 3); /* of the waits that a step has where every pass reads memory */
    bool divides = fmod(cols, vector) == 0;
    if (!back && plain) {
        g->start = ft__k_row_softmax_share.start;
        g->trip = ft__k_row_softmax_share.trip;
        g->issue = ft__k_row_softmax_share.issue;
    }
    if (cols <= (back ? FT_K_ROW_WARP_COLS_BACK : FT_K_ROW_WARP_COLS)) {
        double each = up(cols) <= 128 ? 2 : 1; /* rows of a warp */
        threads = fmin(32, up(cols));
        elements = (ceil(cols / threads) + up(cols) / threads) / 2; /* some loops run over the padded row */
        g->kernel = FT_ROW_WARP;
        g->block = 128;
        g->rows_each = 128 / threads * each;
        g->trips = once + FT_K_ROW_ELEMENT_TRIPS * elements;
        g->most = floor(65536 / g->block / fmin(k->thread + k->element * each * up(cols) / threads, 255));
        g->fill = cols / up(cols);
        return;
    }
    if (back) threads = fmax(32, up(fmin(floor(cols / vector), 1024) / 2));
    g->block = threads;
    g->alone = true;
    if (!back && ceil(cols / threads) <= FT_K_ROW_REGISTER_TRIPS) {
        g->kernel = FT_ROW_REGISTERS;
        g->trips = once;
        elements = ceil(cols / threads);
        if (elements > k->pair) g->most = 1;
    } else if (divides && cols * e < room) {
        g->kernel = FT_ROW_SHARED;
        elements = ceil(cols / (vector * threads)) * vector;
        g->trips = elements / vector * once;
    } else {
        double left = divides || rows == 1 ? cols : cols - threads, whole = floor(left / (vector * threads)),
               rest = (left < cols) + ceil((left - whole * vector * threads) / threads);
        g->kernel = FT_ROW_MEMORY;
        g->again = back ? 1 : 2;
        g->trips = whole + rest;
        elements = whole * vector + rest;
        g->odd = !divides && rows > 1; /* the first row begins on a vector */
    }
    g->fill = cols / (elements * threads);
    g->trips += FT_K_ROW_ELEMENT_TRIPS * elements;
}

/* Norms take vectors of four elements, whatever their format, with 128 threads where four divide a row
 * (vectorized_layer_norm_kernel); else one kernel of 512 threads for the moments, and one of 256 for the result. */
static void norm(bool back, double cols, ft_row_layout *g)
{
    g->odd = fmod(cols, 4) != 0;
    g->again = 1;
    g->block = 128;
    double width = 128 * (g->odd ? 1 : 4);
    g->trips = ceil(cols / width);
    g->fill = cols / (g->trips * width);
    if (back || !g->odd) return;
    g->kernel = FT_ROW_SINGLY;
    g->launches = 2;
    g->block = 256;
    g->trips = ceil(cols / 512) + ceil(cols / 256);
    g->fill = cols / (256 * ceil(cols / 256));
}

/* Rows by their numbers (index_select, Indexing.cu). Up to sixteen go one after the other, by all blocks; more as a
 * gather, a vector a thread where vectors divide a row, else eight elements a thread. */
static void gather(const ft_device *device, double rows, double cols, double e, ft_row_layout *g)
{
    double bytes = cols * e;
    g->fill = 1;
    g->trips = 1;
    if (rows <= FT_K_ROW_FEW_ROWS) {
        g->kernel = FT_ROW_FEW;
        g->block = fmin(cols, 128);
        g->blocks = fmin(ceil(cols / 128), 8 * device->sms);
        g->trips = rows * ceil(cols / (g->block * g->blocks));
    } else if (fmod(bytes, 16) == 0) {
        double threads = fmin(256, 32 * ceil(bytes / 512));
        g->block = threads;
        g->blocks = rows * ceil(bytes / 4096);
        g->fill = bytes / (g->blocks / rows * threads * 16);
    } else {
        g->kernel = FT_ROW_SINGLY;
        g->odd = true;
        g->trips = 8;
        g->block = 128;
        g->blocks = ceil(rows * cols / 1024);
    }
}

ft_row_layout ft__row_layout(const ft_device *device, const ft_op *op, bool older)
{
    double rows = (double)op->u.row.rows, cols = (double)op->u.row.cols, e = ft_dtype_bytes(op->dtype), vector = 16 / e;
    bool back = op->pass != FT_PASS_FWD;
    double odd = fmod(cols, 4) == 0 ? 4 : fmod(cols, 2) == 0 ? 2 : 1;
    ft_row_layout g = {.block = 256, .rows_each = 1, .launches = 1, .start = 1, .trip = 1, .issue = 1};
    g.odd = fmod(cols * e, 16) != 0;
    if (!back && is(op, "sum_cols"))
        reduction(device, cols, rows, false, odd, &g);
    else if (!back && is(op, "mean_all"))
        reduction(device, 1, rows * cols, true, 1, &g);
    else if (!back && (is(op, "sum_rows") || is(op, "argmax")))
        reduction(device, rows, cols, true, 1, &g);
    if (g.blocks > 0) return g;
    double threads = 256; /* per row */
    if (is(op, "softmax") || is(op, "log_softmax") || is(op, "cross_entropy")) {
        if (!older) {
            g.odd = false;
            softmax(back, is(op, "softmax"), rows, cols, e, &g);
            g.blocks = ceil(rows / g.rows_each);
            return g;
        }
        older_softmax(back, cols, &threads, &vector, &g);
    } else if (is(op, "layernorm") || is(op, "rmsnorm")) {
        norm(back, cols, &g);
        g.blocks = rows;
        return g;
    } else if (is(op, "embedding") && !back) {
        gather(device, rows, cols, e, &g);
        if (g.kernel == FT_ROW_USUAL) g.odd = false;
        return g;
    } else if (is(op, "cumsum") && rows > 1) {
        /* 512 threads share out between rows and columns as the matrix does, at least 16 along a row. */
        int along = 0;
        while ((int64_t)1 << along < op->u.row.cols) along++;
        int down_rows = 0;
        while ((int64_t)1 << down_rows < op->u.row.rows) down_rows++;
        int x = (9 + along - down_rows) / 2;
        threads = 1 << (x < 4 ? 4 : x > 9 ? 9 : x);
        g.block = 512;
        g.rows_each = 512 / threads;
        vector = 2;
    } else if (is(op, "cumsum")) {
        vector = fmax(1, cols / threads); /* one row: a device-wide scan */
    }
    /* Whole vectors of all threads, then, in softmax going forward, the rest element by element. */
    double whole = floor(cols / (threads * vector)), rest = cols - whole * threads * vector;
    g.trips = whole + (g.again == 2 ? ceil(rest / threads) : rest > 0);
    g.fill = cols / (ceil(cols / (threads * vector)) * threads * vector);
    g.blocks = ceil(rows / g.rows_each);
    return g;
}
