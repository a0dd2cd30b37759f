/* Memory over a step: against an allocator that walks every iteration, and against figures that people publish. */
#include "kernel_limits.h"
#include "random_op.h"

#include "base/arena.h"
#include "timeline/allocator.h"
#include "timeline/fits.h"
#include "timeline/lifetime.h"
#include "timeline/resident.h"
#include "timeline/states.h"
#include "timeline/step.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* -- small graphs ------------------------------------------------------------------------------ */

static ft_ref tensor(ft_graph *g, ft_role role, int64_t kib, int64_t copies)
{
    ft_tensor t = {.rows = kib,
                   .cols = 512,
                   .element_bytes = 2,
                   .dtype = FT_BF16,
                   .role = role,
                   .storage = FT_NONE,
                   .block = -1,
                   .copies = copies,
                   .trained = role == FT_PARAMETER};
    ft_ref at = ft__graph_tensor(g, &t);
    assert_true(at != FT_NONE);
    return at;
}

static ft_ref view(ft_graph *g, ft_ref of)
{
    ft_tensor t = g->tensors[of];
    ft_ref at = ft__graph_tensor(g, &t);
    assert_true(at != FT_NONE);
    return at;
}

static void node(ft_graph *g, ft_phase phase, const char *name, int in_count, const ft_ref *in, int out_count,
                 const ft_ref *out)
{
    ft_node n = {.verb = FT_DO_OTHER, .phase = phase, .name = name, .count = 1, .traffic = 1};
    for (int i = 0; i < in_count; i++) n.in[n.in_count++] = in[i];
    for (int i = 0; i < out_count; i++) n.out[n.out_count++] = out[i];
    assert_non_null(ft__graph_node(g, &n));
}

static void open_block(ft_graph *g, const char *name, ft_phase phase, int64_t repeat, ft_ref carry_in, int32_t mirror)
{
    ft_block b = {.name = name,
                  .phase = phase,
                  .first = g->node_count,
                  .repeat = repeat,
                  .carry_in = carry_in,
                  .carry_out = FT_NONE,
                  .mirror = mirror,
                  .fed_by = carry_in == FT_NONE ? FT_NONE : g->blocks[g->block_count - 1].carry_out};
    assert_non_null(ft__graph_block(g, &b));
}

static void close_block(ft_graph *g, ft_ref carry_out)
{
    ft_block *b = &g->blocks[g->block_count - 1];
    b->count = g->node_count - b->first;
    b->carry_out = carry_out;
}

/* -- the allocator that walks every iteration -------------------------------------------------- */

enum { COPIES = 64, PLACES = 512 };
typedef struct plain {
    const ft_graph *g;
    int32_t home[PLACES];
    bool alive[PLACES][COPIES];
    int left[PLACES][COPIES]; /* readers still to come */
} plain;

typedef struct place {
    ft_ref tensor;
    int64_t copy;
} place;

/* Which memory `t` is in iteration `i` of block `b`. */
static place where(const plain *p, ft_ref t, int32_t b, int64_t i)
{
    t = p->g->tensors[t].storage;
    for (int32_t k = 0; k < p->g->block_count; k++) {
        const ft_block *block = &p->g->blocks[k];
        if (block->carry_in != t) continue;
        int64_t at = k == b ? i : p->g->blocks[b].mirror == k ? block->repeat - 1 - i : block->repeat - 1;
        if (at > 0) return where(p, block->carry_out, k, at - 1);
        assert_true(k > 0 && block->fed_by == p->g->blocks[k - 1].carry_out);
        return where(p, block->fed_by, k - 1, p->g->blocks[k - 1].repeat - 1);
    }
    int32_t home = p->home[t];
    if (home < 0) return (place){t, 0};
    int64_t repeat = p->g->blocks[home].repeat;
    if (home == b) return (place){t, i};
    if (p->g->blocks[b].mirror == home && p->g->blocks[b].repeat == repeat) return (place){t, repeat - 1 - i};
    return (place){t, repeat - 1};
}

/* What node n reads in iteration i of block b, its results included; Python holds a layer's input until the layer
 * returns, and what fed the layers until the last of them did. */
static int reads_of(const ft_graph *g, bool held, int32_t b, int64_t i, int32_t n, ft_ref out[16])
{
    const ft_block *block = &g->blocks[b];
    const ft_node *x = &g->nodes[n];
    int count = 0;
    for (int k = 0; k < x->in_count; k++) out[count++] = x->in[k];
    for (int k = 0; k < x->out_count; k++) out[count++] = x->out[k];
    bool returns = n == block->first + block->count - 1 && block->phase == FT_FORWARD && block->repeat > 1;
    if (held && returns) out[count++] = block->carry_in;
    if (held && returns && i == block->repeat - 1 && b == 1) out[count++] = block->fed_by;
    return count;
}

static double plain_peak(const ft_graph *g, bool held)
{
    static plain p;
    p = (plain){.g = g};
    assert_true(g->tensor_count <= PLACES);
    for (int32_t t = 0; t < g->tensor_count; t++) p.home[t] = -1;
    for (int32_t b = 0; b < g->block_count; b++)
        for (int32_t n = g->blocks[b].first; n < g->blocks[b].first + g->blocks[b].count; n++)
            for (int o = 0; o < g->nodes[n].out_count; o++) {
                ft_ref r = g->tensors[g->nodes[n].out[o]].storage;
                if (p.home[r] < 0 && g->tensors[r].role != FT_PARAMETER) p.home[r] = b;
            }
    double live = 0, peak = 0;
    for (int pass = 0; pass < 2; pass++) /* count the readers, then run */
        for (int32_t b = 0; b < g->block_count; b++)
            for (int64_t i = 0; i < g->blocks[b].repeat; i++)
                for (int32_t n = g->blocks[b].first; n < g->blocks[b].first + g->blocks[b].count; n++) {
                    const ft_node *x = &g->nodes[n];
                    ft_ref reads[16];
                    int count = reads_of(g, held, b, i, n, reads);
                    for (int o = 0; pass == 1 && o < x->out_count; o++) {
                        place at = where(&p, x->out[o], b, i);
                        bool *alive = &p.alive[at.tensor][at.copy];
                        if (!*alive && g->tensors[at.tensor].role != FT_PARAMETER)
                            live += ft__tensor_bytes(&g->tensors[at.tensor]);
                        *alive = true;
                    }
                    if (live > peak) peak = live;
                    for (int k = 0; k < count; k++) {
                        /* What fed the layers is the first iteration's carry. */
                        bool fed = k >= x->in_count + x->out_count + 1;
                        place at = fed ? where(&p, g->blocks[b].carry_in, b, 0) : where(&p, reads[k], b, i);
                        if (pass == 0) p.left[at.tensor][at.copy]++;
                        if (pass == 0 || --p.left[at.tensor][at.copy] > 0) continue;
                        if (p.alive[at.tensor][at.copy] && g->tensors[at.tensor].role == FT_ACTIVATION)
                            live -= ft__tensor_bytes(&g->tensors[at.tensor]);
                        if (g->tensors[at.tensor].role == FT_ACTIVATION) p.alive[at.tensor][at.copy] = false;
                    }
                }
    return peak;
}

/* A forward pass of an entry, `repeat` layers and a head, and its backward pass; each node reads at random what an
 * autograd could read there. */
static ft_graph *random_graph(ft_arena *arena, random_source *r, bool training)
{
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    assert_non_null(g);
    enum { FORWARD = 3, MOST = 8 };
    static const char *const names[FORWARD] = {"embed", "layers", "head"};
    int64_t repeat[FORWARD] = {1, 1 + (int64_t)random_below(r, 9), 1};
    ft_ref made[FORWARD][MOST + 2], table = tensor(g, FT_ACTIVATION, 7, 1), carry = FT_NONE;
    int made_count[FORWARD];
    int64_t width = 1 + (int64_t)random_below(r, 30);
    for (int b = 0; b < FORWARD; b++) {
        ft_ref in = b ? tensor(g, FT_ACTIVATION, width, 1) : FT_NONE, last = in;
        open_block(g, names[b], FT_FORWARD, repeat[b], in, -1);
        made_count[b] = 0;
        if (in != FT_NONE) made[b][made_count[b]++] = in;
        if (b == 0) node(g, FT_FORWARD, "table", 0, NULL, 1, &table);
        int nodes = 2 + (int)random_below(r, MOST - 3);
        for (int n = 0; n < nodes; n++) {
            ft_ref reads[3] = {last, table, FT_NONE}, out;
            int count = last == FT_NONE ? 0 : 1 + (int)random_below(r, 2);
            if (made_count[b] && random_below(r, 2))
                reads[count ? count++ : 0] = made[b][random_below(r, made_count[b])];
            int64_t kib = n == nodes - 1 ? width : 1 + (int64_t)random_below(r, 60);
            /* A view or an in-place operator now and then; never over what came from outside. */
            bool shares = n > 0 && n < nodes - 1 && last != in && random_below(r, 5) == 0;
            out = shares ? view(g, last) : tensor(g, FT_ACTIVATION, kib, 1);
            node(g, FT_FORWARD, n % 2 ? "f" : "g", count, reads, 1, &out);
            made[b][made_count[b]++] = last = out;
        }
        close_block(g, last);
        carry = last;
    }
    if (!training) return g;
    for (int b = FORWARD - 1; b >= 0; b--) {
        ft_ref in = b < FORWARD - 1 ? tensor(g, FT_ACTIVATION, width, 1) : FT_NONE, last = in;
        open_block(g, names[b], FT_BACKWARD, repeat[b], in, b);
        for (int n = 0; n < 4; n++) {
            ft_ref reads[4], out[2];
            int count = 0, outs = 1;
            if (last != FT_NONE) reads[count++] = last;
            for (int k = 0; k < 2; k++)
                if (random_below(r, 3)) reads[count++] = made[b][random_below(r, made_count[b])];
            if (random_below(r, 4) == 0) reads[count++] = table;
            out[0] = last = tensor(g, FT_ACTIVATION, n == 3 ? width : 1 + (int64_t)random_below(r, 60), 1);
            if (random_below(r, 2)) out[outs++] = tensor(g, FT_GRADIENT, 1 + (int64_t)random_below(r, 40), repeat[b]);
            node(g, FT_BACKWARD, "b", count, reads, outs, out);
        }
        close_block(g, last);
    }
    (void)carry;
    return g;
}

static ft_memory memory_of(const ft_graph *g, const ft_workload *work)
{
    ft_device h200 = limit_device("h200_sxm");
    ft_memory m;
    ft_error err;
    assert_int_equal(ft__step_memory(g, work, &h200, &m, &err), FT_OK);
    double parts = m.weights_bytes + m.gradients_bytes + m.optimizer_bytes + m.activations_bytes + m.temporary_bytes +
                   m.kv_cache_bytes;
    assert_true(fabs(parts - m.peak_bytes) <= 1e-9 * m.peak_bytes);
    assert_true(m.reserved_bytes >= m.peak_bytes);
    return m;
}

static void the_sweep_finds_the_peak_that_walking_every_iteration_finds(void **state)
{
    (void)state;
    random_source r = {11};
    ft_device h200 = limit_device("h200_sxm");
    for (int i = 0; i < 3000; i++) {
        bool training = random_below(&r, 4) != 0;
        ft_arena *arena = ft__arena_new(0);
        assert_non_null(arena);
        ft_graph *g = random_graph(arena, &r, training);
        ft_workload work = {.task = training ? FT_TRAIN : FT_FORWARD_PASS,
                            .dtype = FT_BF16,
                            .accumulate = 1,
                            .optimizer = FT_NO_OPTIMIZER};
        bool held = random_bool(&r);
        if (!held) work.execution = FT_RUN_COMPILE;
        double expected = plain_peak(g, held) + ft__library_workspace(&h200, training);
        ft_memory m = memory_of(g, &work);
        if (m.peak_bytes != expected) fail_msg("graph %d: %.0f bytes, walked %.0f", i, m.peak_bytes, expected);
        ft__arena_free(arena);
    }
}

/* -- one moment by hand ------------------------------------------------------------------------ */

/* Three layers: x -> h (16 KiB, saved) -> y; backward reads h, makes a gradient of 4 KiB. */
static ft_graph *three_layers(ft_arena *arena, int64_t repeat)
{
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    assert_non_null(g);
    ft_ref weight = tensor(g, FT_PARAMETER, 4, repeat), x = tensor(g, FT_ACTIVATION, 2, 1);
    open_block(g, "embed", FT_FORWARD, 1, FT_NONE, -1);
    node(g, FT_FORWARD, "embed", 0, NULL, 1, &x);
    close_block(g, x);
    ft_ref in = tensor(g, FT_ACTIVATION, 2, 1), h = tensor(g, FT_ACTIVATION, 16, 1), y = tensor(g, FT_ACTIVATION, 2, 1);
    open_block(g, "layers", FT_FORWARD, repeat, in, -1);
    node(g, FT_FORWARD, "up", 2, (ft_ref[]){in, weight}, 1, &h);
    node(g, FT_FORWARD, "down", 1, &h, 1, &y);
    close_block(g, y);
    ft_ref back = tensor(g, FT_ACTIVATION, 2, 1), dh = tensor(g, FT_ACTIVATION, 16, 1),
           dw = tensor(g, FT_GRADIENT, 4, repeat), dx = tensor(g, FT_ACTIVATION, 2, 1);
    open_block(g, "layers", FT_BACKWARD, repeat, back, 1);
    node(g, FT_BACKWARD, "down", 2, (ft_ref[]){back, h}, 1, &dh);
    node(g, FT_BACKWARD, "up", 2, (ft_ref[]){dh, in}, 2, (ft_ref[]){dx, dw});
    close_block(g, dx);
    return g;
}

static void the_peak_is_named_and_taken_apart(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_workload work = {.task = FT_TRAIN, .dtype = FT_BF16, .accumulate = 1, .optimizer = FT_ADAMW};
    ft_device h200 = limit_device("h200_sxm");
    for (int64_t repeat = 1; repeat <= 200; repeat += repeat < 8 ? 1 : 64) {
        ft_memory m = memory_of(three_layers(arena, repeat), &work);
        double layers = (double)repeat;
        assert_true(m.weights_bytes == layers * 4096);
        assert_true(m.optimizer_bytes == layers * 8192); /* two states of the parameter's own two bytes */
        /* Saved: h and the input of each layer. The peak is in the first backward iteration, where the last layer's h
         * is live beside its gradient. */
        assert_string_equal(m.peak_block, "layers");
        assert_string_equal(m.peak_node, "down");
        assert_int_equal(m.peak_phase, FT_BACKWARD);
        assert_true(m.peak_iteration == 0);
        assert_true(m.activations_bytes == (layers * (16 + 2) + 2) * 1024); /* and the result of all */
        assert_true(m.gradients_bytes == 0);
        assert_true(m.temporary_bytes == 16 * 1024 + ft__library_workspace(&h200, true));
        work.accumulate = 2; /* from the second micro-batch on all gradients wait */
        m = memory_of(three_layers(arena, repeat), &work);
        assert_true(m.gradients_bytes == layers * 4096);
        work.accumulate = 1;
    }
    ft__arena_free(arena);
}

/* Who calls a module holds its argument: x is read by the first node alone and lives to the last. */
static void a_module_holds_its_arguments(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    for (int held = 0; held < 2; held++) {
        ft_arena *arena = ft__arena_new(0);
        ft_graph *g = ft__graph_new(arena, FT_BF16);
        ft_ref x = tensor(g, FT_ACTIVATION, 8, 1), up = tensor(g, FT_ACTIVATION, 32, 1),
               act = tensor(g, FT_ACTIVATION, 32, 1), y = tensor(g, FT_ACTIVATION, 8, 1);
        open_block(g, "layer", FT_FORWARD, 1, FT_NONE, -1);
        node(g, FT_FORWARD, "norm", 0, NULL, 1, &x);
        node(g, FT_FORWARD, held ? "mlp.up" : "up", 1, &x, 1, &up);
        node(g, FT_FORWARD, held ? "mlp.act" : "act", 1, &up, 1, &act);
        node(g, FT_FORWARD, held ? "mlp.down" : "down", 1, &act, 1, &y);
        close_block(g, y);
        ft_workload work = {.task = FT_FORWARD_PASS, .dtype = FT_BF16, .accumulate = 1};
        ft_memory m = memory_of(g, &work);
        double live = m.peak_bytes - ft__library_workspace(&h200, false);
        assert_true(live == (32 + 32 + (held ? 8 : 0)) * 1024);
        work.execution = FT_RUN_COMPILE;
        assert_true(memory_of(g, &work).peak_bytes - ft__library_workspace(&h200, false) == 64 * 1024);
        ft__arena_free(arena);
    }
}

/* -- the allocator ----------------------------------------------------------------------------- */

#define MIB 1048576.0

static void blocks_are_cut_as_the_caching_allocator_cuts_them(void **state)
{
    (void)state;
    assert_true(ft__allocated(0) == 0 && ft__allocated(1) == 512 && ft__allocated(513) == 1024);
    ft_packer p = {0};
    /* gpt2-large in fp32 (measured): 25 MiB lie in segments of 26 MiB whose last one is too small to cut off. */
    assert_true(ft__pack(&p, 25 * MIB) == 26 * MIB);
    assert_true(p.reserved == 26 * MIB);
    /* 18.75 MiB lie in 20, and 1.25 MiB are worth cutting off. */
    assert_true(ft__pack(&p, 18.75 * MIB) == 18.75 * MIB);
    assert_true(p.reserved == 46 * MIB);
    /* Below 10 MiB segments of 20 are shared: three of 6.25 leave 1.25. */
    for (int i = 0; i < 3; i++) assert_true(ft__pack(&p, 6.25 * MIB) == 6.25 * MIB);
    assert_true(p.reserved == 66 * MIB);
    assert_true(ft__pack(&p, 6.25 * MIB) == 6.25 * MIB);
    assert_true(p.reserved == 86 * MIB);
    /* Small ones share 2 MiB. */
    for (int i = 0; i < 2; i++) ft__pack(&p, 1 * MIB);
    assert_true(p.reserved == 88 * MIB);
}

/* -- what optimizers keep ---------------------------------------------------------------------- */

static double states_of(ft_optimizer optimizer, bool master, double element, int64_t rows, int64_t cols)
{
    ft_workload work = {.task = FT_TRAIN, .optimizer = optimizer, .master_weights = master, .accumulate = 1};
    ft_tensor t = {
        .rows = rows, .cols = cols, .element_bytes = element, .role = FT_PARAMETER, .trained = true, .copies = 1};
    double parts[FT_STATE_PARTS], sum = 0;
    for (int i = ft__optimizer_states(&work, &t, parts); i-- > 0;) sum += parts[i];
    return sum;
}

static void optimizers_keep_what_the_literature_says(void **state)
{
    (void)state;
    const int64_t rows = 100000, cols = 10000; /* 1 B parameters */
    const double billion = 1e9;
    /* Mixed precision, Adam, fp16 gradients: 2 + 2 + 12 bytes per parameter, 14.90 GiB for a billion (the figure of
     * the ZeRO paper's accounting, Rajbhandari et al. 2020). */
    double adam = states_of(FT_ADAMW, true, 2, rows, cols);
    assert_true(adam == 12 * billion);
    assert_true(fabs((2 * billion + 2 * billion + adam) / GIB - 14.90) < 0.005);
    /* Megatron keeps gradients in fp32: 18 bytes. */
    ft_workload megatron = {.task = FT_TRAIN, .optimizer = FT_ADAMW, .master_weights = true, .accumulate = 1};
    ft_tensor half = {.rows = rows, .cols = cols, .element_bytes = 2, .trained = true, .copies = 1};
    assert_true(2 + ft__gradient_element(&megatron, &half) + adam / billion == 18);
    /* T5-3B: AdamW in fp32 24 GB, 8-bit states 6 GB and their scales, Adafactor next to nothing. */
    assert_true(3 * states_of(FT_ADAMW, false, 4, rows, cols) == 24e9);
    double eight = 3 * states_of(FT_ADAMW_8BIT, false, 4, rows, cols);
    assert_true(eight > 6e9 && eight < 6.2e9);
    assert_true(states_of(FT_ADAFACTOR, false, 4, rows, cols) == 4.0 * (double)(rows + cols));
    assert_true(states_of(FT_ADAFACTOR, false, 4, 1, cols) == 4.0 * (double)cols);
    assert_true(states_of(FT_SGD, false, 4, rows, cols) == 0);
    assert_true(states_of(FT_SGD_MOMENTUM, false, 4, rows, cols) == 4 * billion);
    assert_true(states_of(FT_MUON, false, 2, rows, cols) == 2 * billion);
    assert_true(states_of(FT_MUON, false, 2, 1, cols) == 4.0 * (double)cols);
    assert_true(states_of(FT_NO_OPTIMIZER, true, 2, rows, cols) == 0);
}

/* 175 B parameters in fp32 are 651.92 GiB of weights; eight GPUs of 80 GiB do not hold them. */
static void weights_are_counted_by_copies(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_FP32);
    ft_tensor t = {.rows = 1750000,
                   .cols = 1000,
                   .element_bytes = 4,
                   .dtype = FT_FP32,
                   .role = FT_PARAMETER,
                   .storage = FT_NONE,
                   .block = -1,
                   .copies = 100};
    ft_ref weight = ft__graph_tensor(g, &t), y = tensor(g, FT_ACTIVATION, 1, 1);
    open_block(g, "layers", FT_FORWARD, 100, FT_NONE, -1);
    node(g, FT_FORWARD, "layer", 1, &weight, 1, &y);
    close_block(g, y);
    ft_workload work = {.task = FT_FORWARD_PASS, .dtype = FT_FP32, .accumulate = 1};
    ft_memory m = memory_of(g, &work);
    assert_true(fabs(m.weights_bytes / GIB - 651.92) < 0.1);
    assert_false(m.fits);
    ft__arena_free(arena);
}

/* -- caches ------------------------------------------------------------------------------------ */

static void a_cache_is_there_before_a_decode_step_and_grows_in_a_prefill(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    for (int growing = 0; growing < 2; growing++) {
        ft_graph *g = ft__graph_new(arena, FT_BF16);
        ft_ref x = tensor(g, FT_ACTIVATION, 1, 1), in = tensor(g, FT_ACTIVATION, 1, 1), y, cache, wide;
        open_block(g, "embed", FT_FORWARD, 1, FT_NONE, -1);
        node(g, FT_FORWARD, "embed", 0, NULL, 1, &x);
        close_block(g, x);
        y = tensor(g, FT_ACTIVATION, 1, 1);
        wide = tensor(g, FT_ACTIVATION, 64, 1);
        cache = tensor(g, FT_CACHE, 8, 5);
        open_block(g, "layers", FT_FORWARD, 5, in, -1);
        node(g, FT_FORWARD, "wide", 1, &in, 1, &wide);
        node(g, FT_FORWARD, "write", 1, &wide, 1, &cache);
        node(g, FT_FORWARD, "attend", 2, (ft_ref[]){wide, cache}, 1, &y);
        close_block(g, y);
        ft_workload work = {.task = growing ? FT_PREFILL : FT_DECODE,
                            .dtype = FT_BF16,
                            .accumulate = 1,
                            .cache = growing ? FT_CACHE_DYNAMIC : FT_CACHE_STATIC};
        ft_memory m = memory_of(g, &work);
        assert_true(m.kv_cache_bytes == 5 * 8 * 1024); /* the peak of a prefill is in its last layer */
        assert_true(m.peak_iteration == (growing ? 4 : 1));
        assert_true(m.activations_bytes == (64 + 1 + 1 + 1) * 1024); /* and what was fed in, the layer's input, y */
    }
    ft__arena_free(arena);
}

/* -- what would fit ---------------------------------------------------------------------------- */

/* A made-up model: bytes by what the workload says, and room for `*user` of them. */
static ft_status made_up(const ft_workload *work, void *user, ft_memory *out, ft_error *err)
{
    (void)err;
    double weights = 10 * (ft_dtype_bytes(work->dtype) / 4), each = 4;
    if (work->attention == FT_EAGER) each += 8;
    if (work->recompute == FT_RECOMPUTE_FULL) each /= 4;
    double states = work->lora_rank ? 0.1 : weights * (work->optimizer == FT_ADAMW_8BIT ? 1.5 : 3);
    double bytes = weights + states + each * (double)work->batch;
    *out = (ft_memory){.reserved_bytes = bytes, .capacity_bytes = *(double *)user, .remedy = ""};
    out->fits = bytes <= out->capacity_bytes;
    return FT_OK;
}

static void the_smallest_change_that_fits_is_found(void **state)
{
    (void)state;
    static const struct {
        double room;
        ft_attention_kind attention;
        int64_t batch;
        const char *text;
        int64_t largest, gpus;
    } cases[] = {
        {200, FT_EAGER, 8, "", 8, 1},
        {80, FT_EAGER, 8, "attention: flash", 3, 1},
        {60, FT_FLASH, 8, "batch: 5 accumulated 2 times", 5, 1},
        {50, FT_EAGER, 8, "attention: flash, batch: 2 accumulated 4 times", 0, 1},
        {42, FT_FLASH, 1, "recompute: full", 0, 1},
        {30, FT_FLASH, 1, "dtype: bf16", 0, 1},
        {18, FT_FLASH, 1, "dtype: bf16, optimizer: adamw_8bit", 0, 1},
        {4, FT_FLASH, 1, "at least 11 GPUs of this memory", 0, 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double room = cases[i].room;
        ft_workload work = {.task = FT_TRAIN,
                            .dtype = FT_FP32,
                            .kv_dtype = FT_FP32,
                            .attention = cases[i].attention,
                            .batch = cases[i].batch,
                            .accumulate = 1,
                            .optimizer = FT_ADAMW};
        ft_remedy r;
        assert_int_equal(ft__memory_remedy(&work, made_up, &room, &r, NULL), FT_OK);
        if (strcmp(r.text, cases[i].text)) fail_msg("room %g: \"%s\", expected \"%s\"", room, r.text, cases[i].text);
        assert_int_equal(r.largest_batch, cases[i].largest);
        assert_int_equal(r.gpus, cases[i].gpus);
        if (r.gpus == 1) {
            ft_memory again;
            assert_int_equal(made_up(&r.work, &room, &again, NULL), FT_OK);
            assert_true(again.fits);
        }
    }
}

static void the_largest_batch_fits_and_the_next_does_not(void **state)
{
    (void)state;
    for (int64_t batch = 0; batch <= 300; batch += 7) {
        for (int64_t asked = 1; asked <= 512; asked *= 8) {
            double room = 40 + 4 * (double)batch + 1;
            ft_workload work = {.task = FT_TRAIN, .dtype = FT_FP32, .batch = asked, .accumulate = 1};
            int64_t found = -1;
            assert_int_equal(ft__largest_batch(&work, made_up, &room, &found, NULL), FT_OK);
            assert_int_equal(found, batch);
        }
    }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    ft_device h200 = limit_device("h200_sxm");
    ft_workload work = {.task = FT_TRAIN, .dtype = FT_BF16, .accumulate = 1};
    int failures = 0;
    for (size_t cap = 64; cap < 200000; cap += cap / 4) {
        ft_arena *arena = ft__arena_new(0);
        ft_graph *g = three_layers(arena, 3);
        ft_arena *small = ft__arena_new(cap);
        assert_non_null(small);
        g->arena = small;
        ft_memory m;
        ft_error err;
        ft_status status = ft__step_memory(g, &work, &h200, &m, &err);
        assert_true(status == FT_OK || status == FT_E_MEMORY);
        failures += status != FT_OK;
        ft__arena_free(small);
        ft__arena_free(arena);
    }
    assert_true(failures > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sweep_finds_the_peak_that_walking_every_iteration_finds),
        cmocka_unit_test(the_peak_is_named_and_taken_apart),
        cmocka_unit_test(a_module_holds_its_arguments),
        cmocka_unit_test(blocks_are_cut_as_the_caching_allocator_cuts_them),
        cmocka_unit_test(optimizers_keep_what_the_literature_says),
        cmocka_unit_test(weights_are_counted_by_copies),
        cmocka_unit_test(a_cache_is_there_before_a_decode_step_and_grows_in_a_prefill),
        cmocka_unit_test(the_smallest_change_that_fits_is_found),
        cmocka_unit_test(the_largest_batch_fits_and_the_next_does_not),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
