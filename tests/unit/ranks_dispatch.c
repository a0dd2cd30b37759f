/* How often a token travels to its experts: as a draw of its experts says, of its groups first where a router has them.
 * */
#include "ranks_rig.h"

static double sent(const char *model, int64_t groups, int64_t picked, bool once, int64_t ranks)
{
    ft_arch arch = open_model(model);
    arch.expert_groups = groups;
    arch.picked_groups = picked;
    ft_workload work = train_work(1, 1024);
    work.execution = FT_RUN_FUSED;
    ft_parallel parallel = layout_of(1, 1, 1, ranks, ranks);
    parallel.dispatch_once = once;
    ft_cluster cluster = connected_nodes(ranks);
    ft_ranks r = {.arch = &arch, .work = &work, .parallel = &parallel, .cluster = &cluster};
    ft_group group = {.size = ranks, .stride = 1};
    double share = ft__ranks_dispatched(&r, &group);
    ft__arch_release(&arch);
    return share;
}

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

/* 256 experts, of which a token picks 8, over the 8 ranks of a node: a rank is missed by 8 draws out of the others'
 * 224. */
static void once_to_a_rank(void **state)
{
    (void)state;
    double missed = 1;
    for (int i = 0; i < 8; i++) missed *= (224.0 - i) / (256.0 - i);
    assert_true(near(sent("deepseek-v3", 1, 1, true, 8), 1 - missed));
    assert_true(near(sent("deepseek-v3", 1, 1, false, 8), 1));
}

/* Over 8 nodes a router that picks among 4 of 8 groups reaches 4 nodes at most; among all groups it is as without. */
static void groups_keep_it_to_their_nodes(void **state)
{
    (void)state;
    double missed = 1;
    for (int i = 0; i < 8; i++) missed *= (96.0 - i) / (128.0 - i);
    assert_true(near(sent("deepseek-v3", 8, 4, true, 64), 4 * (1 - missed) / 8));
    assert_true(near(sent("deepseek-v3", 8, 8, true, 64), sent("deepseek-v3", 1, 1, true, 64)));
    assert_true(near(sent("deepseek-v3", 8, 1, true, 64), 1.0 / 8)); /* all of a token's experts in one node */
}

/* More groups are no fewer places, on few nodes and on many, but for what the mean of a draw hides; a config says how
 * many there are. */
static void more_groups_reach_no_less(void **state)
{
    (void)state;
    for (int64_t ranks = 8; ranks <= 256; ranks *= 2)
        for (int64_t picked = 2; picked <= 8; picked++)
            assert_true(sent("deepseek-v3", 8, picked, true, ranks) >=
                        sent("deepseek-v3", 8, picked - 1, true, ranks) - 1e-3);
    ft_arch arch = open_model("deepseek-v3");
    assert_int_equal(arch.expert_groups, 8);
    assert_int_equal(arch.picked_groups, 4);
    ft__arch_release(&arch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_to_a_rank),
        cmocka_unit_test(groups_keep_it_to_their_nodes),
        cmocka_unit_test(more_groups_reach_no_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
