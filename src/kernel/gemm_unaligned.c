/* Rows that are no multiple of 16 bytes: TMA and 16-byte copies are out, and NVIDIA's libraries fall back on kernels of
 * older generations, the same on every GPU (profiles show their names): multiples of 4 bytes go through cp.async in
 * pieces of 4 bytes (CUTLASS's sm_80 kernels, "align2"; rows of 8 bytes take them too), the others element by element
 * through registers (sm_75, "align1"). What limits them is neither the matrix unit nor L2 but the SM that issues so
 * many small copies, of operands and of outputs: some four elements per clock, twice the bytes for pairs of them. A
 * faster matrix unit gains nothing. Found on fitted points of our H200, and held against what is published: 2048^3 with
 * an odd row takes "over 2x" the time of an aligned product on A100 (He 2024, What Shapes Do Matrix Multiplications
 * Like; 2.4 here), 1157 x 1157 x 4096 takes 99 us on B200 (PyTorch pull request 196992; 114 here, as "nn"). mma.sync,
 * which these kernels use, reaches 62 % of Hopper's 4096 flop per clock and SM (Luo et al. 2024, arXiv 2402.13499).
 *
 * The library's picks are habits and not minima, and the habits are read off the kernels that it ran on our H200 (the
 * tables of h200/, 6,108 bf16 products): which tiles, when K is split though that costs a second kernel, when it is
 * not though one SM then walks all of K alone, which products of few rows go to kernels without matrix units. Whether
 * other GPUs' libraries keep them was not measured; the kernels are the same. */
#include "kernel/gemm_unaligned.h"

#include <math.h>

#include "kernel/gemm_unaligned_constants.h"

double ft__mma_sync_rate(const ft_device *device, double element_bytes)
{
    return FT_K_GEMM_UNALIGNED_MMA_SYNC_FLOP_PER_CLOCK * 2 / element_bytes * device->matrix_mhz * 1e3;
}

/* B stored as A's rows run: torch.mm(a, b.T), what layers do. */
static bool by_rows(const ft_op *op) { return op->u.gemm.layout[0] != 't' && op->u.gemm.layout[1] == 't'; }

/* A few rows of a transposed A, and little work: one tile after the other along all of K, never split. */
static bool walks_alone(const ft_op *op)
{
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n, k = (double)op->u.gemm.k;
    return op->u.gemm.layout[0] == 't' && m <= FT_K_GEMM_UNALIGNED_FEW_ROWS && op->u.gemm.b == 1 &&
           k < FT_K_GEMM_UNALIGNED_LONE_WALK_K && m * n * k < FT_K_GEMM_UNALIGNED_LONE_WALK_MNK;
}

void ft__gemm_unaligned_search(const ft_device *device, const ft_op *op, ft_gemm_unaligned unaligned, ft_gemm_search *s)
{
    /* Element by element: the first four; where both operands run along K in whole rows and only the outputs do not,
     * no more than the third and the fourth. */
    static const ft_gemm_tile tiles[] = {{256, 128}, {128, 256}, {128, 128}, {64, 64}, {128, 64},
                                         {64, 128},  {256, 64},  {64, 256},  {32, 32}, {16, 16}};
    const int of_elements = 4, along_k = 2;
    bool halves = op->dtype == FT_BF16 || op->dtype == FT_FP16; /* whose habits were seen */
    bool alone = halves && walks_alone(op), elements = unaligned.align < 4 || alone;
    double clocks_per_ms = device->matrix_mhz * 1e3;
    s->tiles = tiles;
    s->tile_count = elements ? of_elements : (int)(sizeof tiles / sizeof *tiles);
    if (elements && halves && by_rows(op) && op->u.gemm.k % 8 == 0) {
        s->tiles += along_k;
        s->tile_count -= along_k;
    }
    s->flop_per_ms_sm = fmin(s->flop_per_ms_sm, unaligned.efficiency * ft__mma_sync_rate(device, s->element_bytes));
    /* Along K a warp's elements lie in as many rows as it has lanes, across K in one. */
    double pieces = !elements ? unaligned.pairs : halves && by_rows(op) ? FT_K_GEMM_UNALIGNED_ALONG_K_ELEMENTS : 1;
    double feed = unaligned.bytes_per_clock * pieces * clocks_per_ms;
    s->feed_bytes_per_ms_sm = fmin(feed, FT_K_GEMM_UNALIGNED_FEED_MOST * s->feed_bytes_per_ms_sm);
    /* Two small tiles on an SM hide a part of each other's start and end. */
    s->wave_ms *= halves ? FT_K_GEMM_UNALIGNED_WAVE : 1;
    s->wave_ms_per_element = (halves ? FT_K_GEMM_UNALIGNED_WAVE_STORE : 1) * fmax(s->element_bytes, 2) /
                             s->feed_bytes_per_ms_sm;
    s->finely = true;
    s->max_split = s->max_split > 1 && !alone ? FT_K_GEMM_UNALIGNED_MOST_SPLIT : 1;
    s->split_ms = unaligned.split_ms;
    s->habit = 0;
    /* With tiles for less than a quarter of the SMs K is split, whether that pays or not. */
    double smallest = ceil(s->m / 64) * ceil(s->n / 64) * s->batch;
    if (elements && halves && s->max_split > 1 && s->k > FT_K_GEMM_UNALIGNED_SPLIT_FROM_K) {
        s->least_k = FT_K_GEMM_UNALIGNED_LEAST_K;
        s->min_split = FT_K_GEMM_UNALIGNED_SPLIT_TILES * smallest < s->sms ? 2 : 0;
    }
}

/* Vector units: a block takes some columns of all rows or of half of them; clocks for one step along K, of a block
 * alone and for each one more per SM. */
static double vector_ms(const ft_device *device, const ft_op *op, bool along_k)
{
    int at = 0;
    while (at < FT_K_GEMM_UNALIGNED_VECTOR_COUNT - 1 && ft__k_gemm_unaligned_vector[at].along_k != along_k) at++;
    const struct ft__k_gemm_unaligned_vector *v = &ft__k_gemm_unaligned_vector[at];
    double m = (double)op->u.gemm.m, n = (double)op->u.gemm.n;
    bool halves = op->u.gemm.m >= v->halves_from && op->u.gemm.m <= v->halves_to;
    double blocks = ceil(n / v->columns) * (halves ? 2 : 1), rows = halves ? m / 2 : m;
    double clocks = v->alone + (v->each + v->each_row * rows) * blocks / device->sms;
    return (double)op->u.gemm.k * clocks / (ft__running_mhz(device) * 1e3);
}

double ft__gemm_few_rows_ms(const ft_device *device, const ft_op *op, int align, double memory_ms, double tiled_ms)
{
    bool along_k = by_rows(op);
    int64_t m = op->u.gemm.m;
    bool halves = op->dtype == FT_BF16 || op->dtype == FT_FP16;
    if (!halves || align >= 4 || m > FT_K_GEMM_UNALIGNED_FEW_ROWS || op->u.gemm.b > 1 || op->u.gemm.layout[0] == 't')
        return tiled_ms;
    double vector = fmax(vector_ms(device, op, along_k), memory_ms);
    if (along_k && m <= FT_K_GEMM_UNALIGNED_ALWAYS_VECTOR_ROWS) return vector;
    if (along_k && op->u.gemm.n <= FT_K_GEMM_UNALIGNED_SHORT_COLUMNS) /* unless K is so long that splitting it wins */
        return fmin(vector, FT_K_GEMM_UNALIGNED_SHORT_MS * ft__clock_scale(device));
    return along_k && m > FT_K_GEMM_UNALIGNED_TILED_ROWS ? tiled_ms : fmin(vector, tiled_ms);
}
