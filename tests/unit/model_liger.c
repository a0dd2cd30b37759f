/* Liger's kernels: a gated activation in one kernel each way, head and loss in chunks of rows. */
#include <math.h>

#include "layout_models.h"

typedef struct rig {
    ft_arena *arena;
    ft_arch arch;
    ft_workload work;
} rig;

static rig begin(const char *stack)
{
    rig r = {.arena = ft__arena_new(0), .arch = open_model("llama-3.2-1b"), .work = train_work(4, 2048)};
    ft_error err;
    r.work.execution = FT_RUN_EAGER;
    if (ft__stack_find(stack, &r.work.stack, &err) != FT_OK) fail_msg("%s", err.message);
    r.work.loss = r.work.stack->loss;
    return r;
}

static ft_graph *graph_of(rig *r)
{
    ft_graph *g = NULL;
    ft_error err;
    if (ft__model_graph(&r->arch, &r->work, r->arena, &g, &err) != FT_OK) fail_msg("%s", err.message);
    return g;
}

static void end(rig *r)
{
    ft__arch_release(&r->arch);
    ft__arena_free(r->arena);
}

/* The only kernel of an activation's site in a phase; NULL: there are several, or none. */
static const ft_node *alone(const ft_graph *g, ft_phase phase)
{
    const ft_node *found = NULL;
    int count = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        if (ft__node_site(n) != FT_SITE_MLP_ACT || n->phase != phase || !ft__node_runs(n)) continue;
        found = n;
        count++;
    }
    return count == 1 ? found : NULL;
}

static void a_gate_is_one_kernel_each_way(void **state)
{
    rig r = begin("liger");
    (void)state;
    const ft_graph *g = graph_of(&r);
    const double matrix = 4 * 2048 * 8192.0 * 2;
    const ft_node *there = alone(g, FT_FORWARD), *back = alone(g, FT_BACKWARD);
    assert_non_null(there);
    assert_non_null(back);
    assert_true(fabs(there->op.u.elementwise.bytes / (3 * matrix) - 1) < 1e-9); /* gate, up; their product */
    assert_true(fabs(back->op.u.elementwise.bytes / (5 * matrix) - 1) < 1e-9);
    assert_int_equal(back->out_count, 2);
    for (int i = 0; i < 2; i++) /* gradients lie where gate and up lay */
        assert_int_equal(g->tensors[back->out[i]].storage, g->tensors[there->in[i]].storage);
    end(&r);
}

static void without_it_an_activation_is_several(void **state)
{
    rig r = begin("hf_trainer");
    (void)state;
    const ft_graph *g = graph_of(&r);
    assert_null(alone(g, FT_FORWARD));
    assert_null(alone(g, FT_BACKWARD));
    end(&r);
}

static void head_and_loss_run_in_chunks_before_anything_goes_back(void **state)
{
    rig r = begin("liger");
    (void)state;
    const ft_graph *g = graph_of(&r);
    /* 128256 words over 2048 are 63 chunks at most; 8192 rows in powers of two: 32 of 256. */
    int products = 0, losses = 0, waits = 0, whole = 0;
    for (int32_t i = 0; i < g->node_count; i++) {
        const ft_node *n = &g->nodes[i];
        const ft_op *op = &n->op;
        if (ft__node_site(n) == FT_SITE_LM_HEAD && op->kind == FT_OP_GEMM) {
            assert_int_equal(n->phase, FT_FORWARD);
            assert_true(n->count == 32);
            assert_true(op->u.gemm.m == 256 || op->u.gemm.k == 256);
            assert_true(!(n->manner & FT_MANNER_ADDS) == (op->u.gemm.k != 256)); /* the weight's gradient adds up */
            products++;
        }
        if (ft__node_site(n) != FT_SITE_LOSS) continue;
        waits += n->verb == FT_DO_SYNC;
        losses += n->op.kind == FT_OP_ROW && n->count == 32;
        whole += n->op.kind == FT_OP_ROW && n->count != 32;
    }
    assert_int_equal(products, 3);
    assert_int_equal(losses, 1);
    assert_int_equal(whole, 0);
    assert_int_equal(waits, 2);
    end(&r);
}

static void few_rows_are_chunks_too(void **state)
{
    rig r = begin("liger");
    (void)state;
    r.work.batch = 1;
    r.work.seq = 128;
    const ft_graph *g = graph_of(&r);
    for (int32_t i = 0; i < g->node_count; i++)
        if (ft__node_site(&g->nodes[i]) == FT_SITE_LM_HEAD && g->nodes[i].op.kind == FT_OP_GEMM)
            assert_true(g->nodes[i].count == 32); /* of four */
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_is_one_kernel_each_way),
        cmocka_unit_test(without_it_an_activation_is_several),
        cmocka_unit_test(head_and_loss_run_in_chunks_before_anything_goes_back),
        cmocka_unit_test(few_rows_are_chunks_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
