/* What the host needs per operator: by who issues it, cheaper where nothing is launched, and what the user says
 * where the user says something. */
#include "kernel_limits.h"

#include "kernel/host.h"

static ft_node node(ft_verb verb, ft_phase phase, bool runs)
{
    ft_node n = {.verb = verb, .phase = phase, .name = "", .count = 1, .traffic = 1};
    ft__op_init(runs ? "add" : "nothing", &n.op);
    if (runs) n.op.u.elementwise.numel = 1024;
    return n;
}

static void every_verb_costs_something_and_a_view_little(void **state)
{
    (void)state;
    ft_issuer host = {.dispatch = FT_DISPATCH_EAGER};
    ft_node view = node(FT_DO_VIEW, FT_FORWARD, false);
    for (int verb = 0; verb < FT_VERB_COUNT; verb++)
        for (int phase = 0; phase < FT_PHASE_COUNT; phase++)
            for (int gradients = 0; gradients < 2; gradients++) {
                host.gradients = gradients;
                ft_node n = node((ft_verb)verb, (ft_phase)phase, true);
                double us = ft__host_node_us(&host, &n);
                if (!(us > 0 && us < 1000)) fail_msg("%s costs the host %g us", ft__verb_name((ft_verb)verb), us);
            }
    ft_node add = node(FT_DO_POINTWISE, FT_FORWARD, true);
    assert_true(ft__host_node_us(&host, &view) < 0.5 * ft__host_node_us(&host, &add));
}

static void recording_gradients_is_never_cheaper(void **state)
{
    (void)state;
    ft_issuer plain = {.dispatch = FT_DISPATCH_EAGER}, recorded = {.dispatch = FT_DISPATCH_EAGER, .gradients = true};
    for (int verb = 0; verb < FT_VERB_COUNT; verb++) {
        ft_node n = node((ft_verb)verb, FT_FORWARD, true);
        assert_true(ft__host_node_us(&recorded, &n) >= ft__host_node_us(&plain, &n));
    }
}

static void views_behind_an_operator_are_counted(void **state)
{
    (void)state;
    ft_issuer host = {.dispatch = FT_DISPATCH_EAGER};
    ft_node n = node(FT_DO_LINEAR, FT_FORWARD, true);
    double once = ft__host_node_us(&host, &n);
    n.host_ops = 5;
    assert_true(ft__host_node_us(&host, &n) > once);
}

/* Autocast lowers an operand within the call that wants it, and autograd undoes casts: no Python asks for either. */
static void casts_of_autocast_cost_as_in_a_loop(void **state)
{
    (void)state;
    ft_issuer plain = {.dispatch = FT_DISPATCH_EAGER, .gradients = true}, lowers = plain;
    lowers.lowers = true;
    ft_node low = node(FT_DO_POINTWISE, FT_FORWARD, true), wide = low, back = node(FT_DO_POINTWISE, FT_BACKWARD, true);
    low.op.kind = wide.op.kind = back.op.kind = FT_OP_ELEMENTWISE;
    low.op.name = "cast_bf16";
    wide.op.name = back.op.name = "cast_fp32";
    assert_true(ft__host_node_us(&lowers, &low) == ft__host_loop_us(&lowers));
    assert_true(ft__host_node_us(&lowers, &back) == ft__host_loop_us(&lowers));
    assert_true(ft__host_node_us(&plain, &low) > 2 * ft__host_loop_us(&plain));
    assert_true(ft__host_node_us(&lowers, &wide) == ft__host_node_us(&plain, &wide)); /* a model's own */
}

/* A library's kernels within one call have no Python of their own; an optimizer's has a loop over its tensors. */
static void loops_cost_by_the_kernel_and_by_the_tensor(void **state)
{
    (void)state;
    ft_issuer host = {.dispatch = FT_DISPATCH_EAGER}, told = {.dispatch = FT_DISPATCH_EAGER, .us_per_op = 5},
              graph = {.dispatch = FT_DISPATCH_GRAPH};
    ft_node sort = node(FT_DO_OTHER, FT_BACKWARD, true);
    double apart = ft__host_node_us(&host, &sort);
    sort.inside = true;
    assert_true(ft__host_node_us(&host, &sort) == ft__host_loop_us(&host) && apart > 2 * ft__host_loop_us(&host));

    ft_node few = node(FT_DO_OPTIMIZER, FT_UPDATE, true), many, lists;
    few.op = (ft_op){.kind = FT_OP_OPTIMIZER, .name = "adamw_fused"};
    few.op.u.optimizer.tensors = 100;
    many = lists = few;
    many.op.u.optimizer.tensors = 300;
    lists.op.name = "adamw_foreach";
    const ft_host *usual = ft__host_usual();
    double each = (ft__host_node_us(&host, &many) - ft__host_node_us(&host, &few)) / 200;
    assert_true(fabs(each - usual->update.fused_us - usual->update.zero_us) < 1e-9);
    assert_true(ft__host_node_us(&host, &lists) >
                ft__host_node_us(&host, &few) + 100 * (usual->update.foreach_us - usual->update.fused_us));
    assert_true(ft__host_calls(&lists) > 1 && ft__host_calls(&few) == 1);

    /* A norm of all gradients: a part for each, and one that a single tensor pays as well. */
    ft_node clip = few, lone;
    clip.at = FT_AT(CLIP_GRAD_NORM);
    clip.op.name = "clip_grad_norm";
    lone = clip;
    lone.op.u.optimizer.tensors = 1;
    each = (ft__host_node_us(&host, &clip) - ft__host_node_us(&host, &lone)) / 99;
    assert_true(fabs(each - usual->update.clip_us) < 1e-9);
    assert_true(ft__host_node_us(&host, &lone) > usual->update.clip_call_us && usual->update.clip_call_us > 0);
    assert_true(ft__host_node_us(&told, &many) > ft__host_node_us(&told, &few));
    assert_true(ft__host_node_us(&graph, &many) == 0);
}

static void what_the_user_says_holds(void **state)
{
    (void)state;
    ft_issuer host = {.dispatch = FT_DISPATCH_EAGER, .us_per_op = 5};
    ft_node n = node(FT_DO_LINEAR, FT_FORWARD, true), view = node(FT_DO_VIEW, FT_FORWARD, false);
    assert_true(ft__host_node_us(&host, &n) == 5);
    assert_true(ft__host_node_us(&host, &view) < 1);
    assert_true(ft__host_module_us(&host, 100) == 0);
}

static void less_of_the_host_from_eager_to_none(void **state)
{
    (void)state;
    ft_node n = node(FT_DO_POINTWISE, FT_FORWARD, true);
    double before = INFINITY, gap = INFINITY;
    for (int d = 0; d < FT_DISPATCH_COUNT; d++) {
        ft_issuer host = {.dispatch = (ft_dispatch)d};
        double us = ft__host_node_us(&host, &n);
        assert_true(us <= before && ft__host_gap_us(&host) <= gap);
        /* A compiler's wrapper is Python again: its calls are fewer than an interpreter's in C++, not quicker. */
        if (d != FT_DISPATCH_SCRIPT) before = us;
        gap = ft__host_gap_us(&host);
    }
    ft_issuer none = {.dispatch = FT_DISPATCH_NONE}, graph = {.dispatch = FT_DISPATCH_GRAPH};
    assert_true(before == 0 && gap == 0 && ft__host_latency_us(&none) == 0);
    assert_true(ft__host_pass_us(&none, FT_FORWARD) == 0 && ft__host_module_us(&none, 9) == 0);
    assert_true(ft__host_pass_us(&graph, FT_FORWARD) > 0);
}

/* Transformer Engine's Python around a product in fewer than 16 bits: going forward and back, by the table and by one
 * figure, of products alone, and of none that a compiler or a graph issues. */
static void modules_that_quantise_cost_several_products(void **state)
{
    (void)state;
    ft_node low = node(FT_DO_LINEAR, FT_FORWARD, true), wide, other = node(FT_DO_POINTWISE, FT_FORWARD, true);
    low.op.kind = FT_OP_GEMM;
    low.op.dtype = FT_FP8;
    wide = low;
    wide.op.dtype = FT_BF16;
    other.op.dtype = FT_FP8;
    for (int dispatch = 0; dispatch < FT_DISPATCH_COUNT; dispatch++) {
        const bool python = dispatch == FT_DISPATCH_EAGER;
        ft_issuer plain = {.dispatch = (ft_dispatch)dispatch, .gradients = true}, engine = plain;
        engine.low_product_calls = 7;
        for (int given = 0; given < 2; given++, plain.us_per_op = engine.us_per_op = 10) {
            low.phase = given ? FT_BACKWARD : FT_FORWARD;
            const double once = ft__host_node_us(&plain, &low), several = ft__host_node_us(&engine, &low);
            assert_float_equal(several, python ? 7 * once : once, 1e-9 * several);
            assert_true(ft__host_node_us(&engine, &wide) == ft__host_node_us(&plain, &wide));
            assert_true(ft__host_node_us(&engine, &other) == ft__host_node_us(&plain, &other));
        }
    }
}

/* A product of many experts is so many plain ones, in any format; one that quantises too costs what is more. */
static void grouped_products_cost_several(void **state)
{
    (void)state;
    ft_node grouped = node(FT_DO_MATMUL, FT_FORWARD, true), plain;
    grouped.op.kind = FT_OP_GEMM;
    grouped.op.dtype = FT_BF16;
    plain = grouped;
    grouped.at = FT_AT(MOE_GATE_UP);
    plain.at = FT_AT(ATTN_QKV_PROJ);
    ft_issuer bare = {.dispatch = FT_DISPATCH_EAGER, .gradients = true}, engine = bare;
    engine.grouped_product_calls = 13;
    engine.low_product_calls = 7;
    const double once = ft__host_node_us(&bare, &grouped);
    assert_float_equal(ft__host_node_us(&engine, &grouped), 13 * once, 1e-9);
    assert_true(ft__host_node_us(&engine, &plain) == ft__host_node_us(&bare, &plain));
    grouped.op.dtype = FT_FP8;
    assert_float_equal(ft__host_node_us(&engine, &grouped), 13 * once, 1e-9);
    engine.low_product_calls = 20;
    assert_float_equal(ft__host_node_us(&engine, &grouped), 20 * once, 1e-9);
    /* Hooks go by their number, and nobody but Python runs them. */
    assert_float_equal(ft__host_hooks_us(&bare, 40), 40 * ft__host_module_us(&bare, 1), 1e-9);
    bare.dispatch = FT_DISPATCH_GRAPH;
    assert_true(ft__host_hooks_us(&bare, 40) == 0);
}

static void checkpoints_cost_the_host(void **state)
{
    (void)state;
    const ft_host *at = ft__host_find("h200_vm");
    ft_issuer host = {.dispatch = FT_DISPATCH_EAGER, .host = at},
              fast = {.dispatch = FT_DISPATCH_EAGER, .us_per_op = 10, .host = at},
              megatron = {.dispatch = FT_DISPATCH_EAGER, .lean_hooks = true, .host = at},
              compiled = {.dispatch = FT_DISPATCH_COMPILED, .host = at}, usual = {.dispatch = FT_DISPATCH_EAGER};
    double forward = ft__host_checkpoint_us(&host, FT_FORWARD), again = ft__host_checkpoint_us(&host, FT_RECOMPUTE);
    assert_true(forward > 200 && forward < 1100 && again > 400 && again < 1600); /* measured per layer */
    assert_true(ft__host_checkpoint_us(&megatron, FT_RECOMPUTE) < again / 2);
    /* Machines whose steps are published ran a transformers that re-entered autograd, without hooks. */
    assert_true(ft__host_checkpoint_us(&usual, FT_FORWARD) < ft__host_checkpoint_us(&megatron, FT_FORWARD));
    assert_true(ft__host_checkpoint_us(&usual, FT_RECOMPUTE) < ft__host_checkpoint_us(&megatron, FT_RECOMPUTE));
    assert_true(ft__host_checkpoint_us(&fast, FT_FORWARD) < forward / 3);
    assert_true(ft__host_checkpoint_us(&compiled, FT_FORWARD) == 0);
    /* What re-enters goes forward without autograd. */
    assert_true(ft__host_reenters(&usual) && ft__host_reenters(&megatron));
    assert_false(ft__host_reenters(&host) || ft__host_reenters(&compiled));
    /* A policy is asked of every operator, in Python. */
    double asked = ft__host_policy_us(&host, 72);
    assert_true(asked > 1500 && asked < 2500);
    assert_true(ft__host_policy_us(&megatron, 72) == 0 && ft__host_policy_us(&compiled, 72) == 0);
    assert_true(ft__host_policy_us(&fast, 72) < asked / 3);
    assert_true(ft__host_checkpoint_us(&host, FT_BACKWARD) == 0 && ft__host_checkpoint_us(&host, FT_UPDATE) == 0);
}

static void wrappers_cost_by_the_parameter(void **state)
{
    (void)state;
    const ft_host *at = ft__host_find("h200_vm");
    ft_issuer host = {.host = at, .dispatch = FT_DISPATCH_EAGER},
              compiled = {.host = at, .dispatch = FT_DISPATCH_COMPILED};
    ft_issuer megatron = {.host = at, .dispatch = FT_DISPATCH_EAGER, .lean_hooks = true},
              none = {.host = at, .dispatch = FT_DISPATCH_NONE};
    ft_issuer graph = {.host = at, .dispatch = FT_DISPATCH_GRAPH};
    ft_issuer fast = {.host = at, .dispatch = FT_DISPATCH_EAGER, .us_per_op = 10};
    double forward = ft__host_wrapper_us(&host, FT_WRAPPER_UNITS, FT_FORWARD, 12);
    double backward = ft__host_wrapper_us(&host, FT_WRAPPER_UNITS, FT_BACKWARD, 12);
    /* A layer of GPT-2 under fully_shard: 1.0 and 2.1 ms on the H200's machine. */
    assert_true(forward > 800 && forward < 1600 && backward > 1600 && backward < 2500);
    assert_true(ft__host_wrapper_us(&host, FT_WRAPPER_UNITS, FT_FORWARD, 24) == 2 * forward);
    assert_true(ft__host_wrapper_us(&host, FT_WRAPPER_COPIES, FT_FORWARD, 12) == 0);
    assert_true(ft__host_wrapper_us(&host, FT_WRAPPER_COPIES, FT_BACKWARD, 12) < backward / 4);
    assert_true(ft__host_wrapper_us(&compiled, FT_WRAPPER_UNITS, FT_FORWARD, 12) == forward);
    assert_true(ft__host_wrapper_us(&megatron, FT_WRAPPER_UNITS, FT_FORWARD, 12) == 0);
    assert_true(ft__host_wrapper_us(&graph, FT_WRAPPER_UNITS, FT_FORWARD, 12) == forward);
    assert_true(ft__host_wrapper_us(&none, FT_WRAPPER_UNITS, FT_FORWARD, 12) == 0);
    assert_true(ft__host_wrapper_us(&fast, FT_WRAPPER_UNITS, FT_FORWARD, 12) == forward / 4);
    /* A layer of Llama under DeepSpeed's zero 3: 3.0 to 4.1 and 3.3 to 7.0 ms; running again costs, FSDP's does not. */
    double modules = ft__host_wrapper_us(&host, FT_WRAPPER_MODULES, FT_FORWARD, 9);
    double back = ft__host_wrapper_us(&host, FT_WRAPPER_MODULES, FT_BACKWARD, 9);
    assert_true(modules > 2600 && modules < 4200 && back > 3300 && back < 7000);
    assert_true(ft__host_wrapper_us(&host, FT_WRAPPER_MODULES, FT_RECOMPUTE, 9) > 0);
    assert_true(ft__host_wrapper_us(&host, FT_WRAPPER_UNITS, FT_RECOMPUTE, 9) == 0);
}

static void plans_are_made_where_cudnn_answers(void **state)
{
    (void)state;
    ft_issuer host = {.dispatch = FT_DISPATCH_EAGER}, graph = {.dispatch = FT_DISPATCH_GRAPH};
    ft_device h200 = limit_device("h200_sxm"), a100 = limit_device("a100_pcie_40gb");
    assert_true(ft__host_plan_us(&host, &h200) > 1e4);
    assert_true(ft__host_plan_us(&graph, &h200) == 0);
    assert_true(ft__host_plan_us(&host, &a100) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_costs_something_and_a_view_little),
        cmocka_unit_test(recording_gradients_is_never_cheaper),
        cmocka_unit_test(views_behind_an_operator_are_counted),
        cmocka_unit_test(loops_cost_by_the_kernel_and_by_the_tensor),
        cmocka_unit_test(what_the_user_says_holds),
        cmocka_unit_test(less_of_the_host_from_eager_to_none),
        cmocka_unit_test(casts_of_autocast_cost_as_in_a_loop),
        cmocka_unit_test(modules_that_quantise_cost_several_products),
        cmocka_unit_test(grouped_products_cost_several),
        cmocka_unit_test(checkpoints_cost_the_host),
        cmocka_unit_test(wrappers_cost_by_the_parameter),
        cmocka_unit_test(plans_are_made_where_cudnn_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
