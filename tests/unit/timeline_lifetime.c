/* When tensors die: against an allocator that walks every iteration, and what Python and compilers do about it. */
#include "random_op.h"
#include "small_graph.h"

#include "memory/lifetime.h"

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

static int32_t last_forward(const ft_graph *g)
{
    int32_t last = 0;
    for (int32_t b = 0; b < g->block_count; b++)
        if (g->blocks[b].phase == FT_FORWARD) last = b;
    return last;
}

/* What node n reads in iteration i of block b, its results included. Python holds a layer's input until the layer
 * returns, and (last in the list) what fed the layers until the model does. */
static int reads_of(const ft_graph *g, bool held, int32_t b, int64_t i, int32_t n, ft_ref out[16], bool *fed)
{
    const ft_block *block = &g->blocks[b];
    const ft_node *x = &g->nodes[n];
    int count = 0;
    for (int k = 0; k < x->in_count; k++) out[count++] = x->in[k];
    for (int k = 0; k < x->out_count; k++) out[count++] = x->out[k];
    bool returns = n == block->first + block->count - 1 && block->phase == FT_FORWARD;
    if (held && returns && block->repeat > 1) out[count++] = block->carry_in;
    *fed = held && returns && b == last_forward(g) && i == block->repeat - 1;
    if (*fed) out[count++] = g->blocks[1].carry_in;
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
                    bool fed;
                    int count = reads_of(g, held, b, i, n, reads, &fed);
                    for (int o = 0; pass == 1 && o < x->out_count; o++) {
                        place at = where(&p, x->out[o], b, i);
                        bool *alive = &p.alive[at.tensor][at.copy];
                        if (!*alive && g->tensors[at.tensor].role != FT_PARAMETER)
                            live += ft__tensor_bytes(&g->tensors[at.tensor]);
                        *alive = true;
                    }
                    if (live > peak) peak = live;
                    for (int k = 0; k < count; k++) {
                        bool first = fed && k == count - 1; /* what fed the layers is the first one's carry */
                        place at = first ? where(&p, reads[k], 1, 0) : where(&p, reads[k], b, i);
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
    static const char *const names[FORWARD] = {"embed", "layers", "rest"};
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

static void the_sweep_finds_the_peak_that_walking_every_iteration_finds(void **state)
{
    (void)state;
    random_source r = {11};
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
        double expected = plain_peak(g, held);
        ft_memory m = memory_of(g, &work);
        if (m.peak_bytes != expected) fail_msg("graph %d: %.0f bytes, walked %.0f", i, m.peak_bytes, expected);
        ft__arena_free(arena);
    }
}

/* Who calls a module holds its argument: x is read by the first node alone and lives to the last. */
static void a_module_holds_its_arguments(void **state)
{
    (void)state;
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
        double live = m.peak_bytes;
        assert_true(live == (32 + 32 + (held ? 8 : 0)) * 1024);
        work.execution = FT_RUN_COMPILE;
        assert_true(memory_of(g, &work).peak_bytes == 64 * 1024);
        ft__arena_free(arena);
    }
}

/* Each thread takes the BLAS's workspace with its first product, and none where there is no product. */
static void a_thread_that_multiplies_has_a_workspace(void **state)
{
    (void)state;
    const ft_device h200 = limit_device("h200_sxm");
    const double handle = ft__library_workspace(&h200, false);
    assert_true(ft__library_workspace(&h200, true) == 2 * handle);
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    ft_ref x = tensor(g, FT_ACTIVATION, 8, 1), y = tensor(g, FT_ACTIVATION, 8, 1),
           back = tensor(g, FT_ACTIVATION, 8, 1);
    open_block(g, "layer", FT_FORWARD, 1, FT_NONE, -1);
    node(g, FT_FORWARD, "first", 0, NULL, 1, &x);
    node(g, FT_FORWARD, "second", 1, &x, 1, &y);
    close_block(g, y);
    open_block(g, "layer", FT_BACKWARD, 1, FT_NONE, 0);
    node(g, FT_BACKWARD, "second", 1, &x, 1, &back);
    close_block(g, back);
    ft_workload work = {.task = FT_TRAIN, .dtype = FT_BF16, .accumulate = 1, .optimizer = FT_NO_OPTIMIZER};
    const double none = memory_of(g, &work).peak_bytes;
    g->nodes[2].verb = FT_DO_MATMUL;
    assert_true(memory_of(g, &work).peak_bytes == none + handle);
    g->nodes[0].verb = g->nodes[1].verb = FT_DO_LINEAR;
    assert_true(memory_of(g, &work).peak_bytes == none + 2 * handle);
    ft__arena_free(arena);
}

/* Compiled elementwise work writes over an operand that nobody reads any more. */
static void a_compiler_writes_over_dead_operands(void **state)
{
    (void)state;
    ft_arena *arena = ft__arena_new(0);
    ft_graph *g = ft__graph_new(arena, FT_BF16);
    ft_ref x = tensor(g, FT_ACTIVATION, 64, 1), y = tensor(g, FT_ACTIVATION, 64, 1);
    open_block(g, "head", FT_FORWARD, 1, FT_NONE, -1);
    node(g, FT_FORWARD, "lm_head", 0, NULL, 1, &x);
    node(g, FT_FORWARD, "softcap", 1, &x, 1, &y);
    g->nodes[1].verb = FT_DO_POINTWISE;
    close_block(g, y);
    for (int compiled = 0; compiled < 2; compiled++) {
        ft_workload work = {.task = FT_FORWARD_PASS,
                            .dtype = FT_BF16,
                            .accumulate = 1,
                            .execution = compiled ? FT_RUN_COMPILE : FT_RUN_EAGER};
        ft_memory m = memory_of(g, &work);
        assert_true(m.peak_bytes == (compiled ? 64 : 128) * 1024);
    }
    ft__arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sweep_finds_the_peak_that_walking_every_iteration_finds),
        cmocka_unit_test(a_module_holds_its_arguments),
        cmocka_unit_test(a_thread_that_multiplies_has_a_workspace),
        cmocka_unit_test(a_compiler_writes_over_dead_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
