/* Scaling rooflines: the figures of "How to Scale Your Model" (Austin et al. 2025), its chapter on GPUs, and what must
 * hold for any figures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/gpu.h"
#include "explain/scaling.h"
#include "model/stack.h"
#include "report/text/scale_screen.h"

/* Llama-3-70B, and DeepSeek-V3's experts. */
static const ft_arch dense = {.model_type = "llama",
                              .design = FT_DECODER_ONLY,
                              .layers = 80,
                              .hidden = 8192,
                              .ffn = 28672,
                              .heads = 64,
                              .kv_heads = 8,
                              .head_dim = 128,
                              .gated = true};
static const ft_arch sparse = {.model_type = "deepseek_v3",
                               .design = FT_DECODER_ONLY,
                               .layers = 61,
                               .hidden = 7168,
                               .ffn = 18432,
                               .heads = 128,
                               .kv_heads = 128,
                               .head_dim = 192,
                               .gated = true,
                               .experts = 256,
                               .topk = 8,
                               .moe_ffn = 2048};

typedef struct setting {
    ft_device device;
    ft_cluster cluster;
    ft_workload work;
    ft_parallel parallel;
    ft_scaling_case c;
} setting;

static void set_up(setting *s, const ft_arch *arch, const char *gpu, const char *cluster, int64_t gpus)
{
    ft_error err = {0};
    memset(s, 0, sizeof *s);
    assert_int_equal(FT_OK, ft__catalogue_find(gpu, &s->device, &err));
    json_t *object = cluster ? json_loads(cluster, 0, NULL) : NULL;
    if (ft__cluster_read(object, &s->device, gpus, &s->cluster, &err) != FT_OK) fail_msg("%s", err.message);
    json_decref(object);
    s->work = (ft_workload){.task = FT_TRAIN, .dtype = FT_BF16, .batch = 1, .seq = 4096, .accumulate = 1};
    s->parallel = (ft_parallel){.dp = gpus, .tp = 1, .pp = 1, .vpp = 1, .cp = 1, .ep = 1, .zero = 3};
    s->c = (ft_scaling_case){.arch = arch,
                             .device = &s->device,
                             .cluster = &s->cluster,
                             .work = &s->work,
                             .parallel = &s->parallel,
                             .parameters = arch->experts ? 671e9 : 70.6e9,
                             .active_parameters = arch->experts ? 37.5e9 : 70.6e9};
}

static ft_scaling closed(const setting *s)
{
    ft_scaling out;
    ft_error err = {0};
    if (ft__scaling_of(&s->c, &out, &err) != FT_OK) fail_msg("%s", err.message);
    return out;
}

static void near(double got, double expected, double share)
{
    if (!(fabs(got - expected) <= share * fabs(expected))) fail_msg("got %.8g, expected %.8g", got, expected);
}

static void an_h100_needs_2500_tokens_for_fsdp_and_cuts_tensors_8_ways(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &dense, "h100_sxm", NULL, 512);
    ft_scaling x = closed(&s);
    near(x.data.inside, 2199, 0.001);  /* 989.4e12 / 450e9 */
    near(x.data.outside, 2473, 0.001); /* 989.4e12 / 400e9: eight NICs of 50 GB/s */
    near(x.data.outside, 2500, 0.02);
    near(x.data.fsdp, x.data.outside, 1e-9);
    near(x.data.ddp, x.data.outside, 1e-9);
    near(x.data.reduced_outside, x.data.outside / 2, 1e-9);
    assert_true(x.tensor.domain == 8 && x.tensor.limit == 8);
    near(x.tensor.inside, 28672 * 450e9 / 989.4e12, 1e-6);      /* 13.04 */
    near(x.tensor.outside, 8 + 28672 * 400e9 / 989.4e12, 1e-6); /* two nodes: F > (Y - 8) C/W */
    near(ft__scaling_tensor_ratio(&x, 8, false), 8 / x.tensor.inside, 1e-9);
    assert_true(ft__scaling_tensor_ratio(&x, 32, false) > 2);
    assert_true(ft__scaling_tensor_ratio(&x, 1, false) == 0);
}

static void a_gb200_rack_is_one_domain_of_72(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &dense, "gb200", NULL, 576);
    ft_scaling x = closed(&s);
    assert_int_equal(72, x.tensor.domain);
    near(x.data.inside, 2500e12 / 900e9, 1e-6);
    near(x.data.outside, x.data.inside, 1e-9); /* 72 NICs carry more than the links of one GPU */
    near(x.tensor.inside, 28672 * 900e9 / 2500e12, 1e-6);
    assert_true(x.tensor.outside > 72);
    /* An MLP wide enough is cut over the whole rack, and over no more. */
    ft_arch wide = dense;
    wide.ffn = 262144;
    s.c.arch = &wide;
    assert_true(closed(&s).tensor.limit == 72);
}

static void mixtures_of_experts_need_e_over_k_times_the_tokens(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &sparse, "h100_sxm", NULL, 512);
    ft_scaling x = closed(&s);
    near(x.data.sparsity, 32, 1e-9);
    near(x.data.sparse_outside, 32 * x.data.outside, 1e-9);
    near(x.data.fsdp, x.data.outside * 671 / 37.5, 1e-6);
}

/* Both domains: few ways, F > a (Z - 8)/k; many, F > 8 a. */
static void experts_have_two_domains(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &sparse, "h100_sxm", NULL, 512);
    ft_scaling x = closed(&s);
    double alpha = x.data.outside;
    assert_true(x.expert.any && !x.expert.wide);
    near(x.expert.few, 8 + 8 * 2048 / alpha, 1e-9); /* 14.6: two nodes */
    near(x.expert.wide_ffn, 8 * alpha, 1e-9);       /* 19,788 */
    /* At the limits the exchange takes as long as the products, on either side of it less and more. */
    ft_arch odd = sparse;
    s.c.arch = &odd;
    odd.moe_ffn = (int64_t)lround(alpha); /* few = 8 + k: between two and three nodes */
    x = closed(&s);
    near(ft__scaling_expert_ratio(&x, &odd, 16), 1, 0.01);
    assert_true(ft__scaling_expert_ratio(&x, &odd, 32) > 1);
    odd.moe_ffn = 20000;
    x = closed(&s);
    assert_true(x.expert.wide && isinf(x.expert.wide_limit));
    for (int64_t z = 2; z <= 256; z *= 2) assert_true(ft__scaling_expert_ratio(&x, &odd, z) < 1);
    odd.moe_ffn = 19000; /* a little too narrow: free up to d^2 a / (d a - F) */
    x = closed(&s);
    near(x.expert.wide_limit, 64 * alpha / (8 * alpha - 19000), 1e-9);
    near(ft__scaling_expert_ratio(&x, &odd, (int64_t)lround(x.expert.wide_limit)), 1, 0.01);
}

static void model_parallel_over_nodes_needs_fewer_tokens(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &dense, "h100_sxm", NULL, 512);
    double alone = closed(&s).data.fsdp;
    const struct {
        int64_t tp, pp;
        double share;
    } cases[] = {
        {2, 1, 1},    {8, 1, 1},
        {16, 1, 0.5}, {32, 1, 0.25}, /* in a node it does nothing, over m nodes an m-th is left */
        {1, 4, 0.25}, {8, 4, 0.25},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.parallel.tp = cases[i].tp;
        s.parallel.pp = cases[i].pp;
        s.parallel.dp = 4096 / (cases[i].tp * cases[i].pp);
        near(closed(&s).data.fsdp, alone * cases[i].share, 1e-9);
    }
}

static void gradients_travel_as_the_stack_sends_them(void **state)
{
    (void)state;
    static const struct {
        const char *stack;
        double ddp, fsdp; /* times what gradients of 2 bytes need */
    } cases[] = {{"megatron", 2, 1}, {"llm_c", 1, 1}, {"torchtitan", 2, 1.5}};
    setting s;
    set_up(&s, &dense, "h100_sxm", NULL, 512);
    ft_scaling plain = closed(&s);
    s.work.master_weights = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ft__stack_find(cases[i].stack, &s.work.stack, NULL), FT_OK);
        near(closed(&s).data.ddp, cases[i].ddp * plain.data.ddp, 1e-9);
        near(closed(&s).data.fsdp, cases[i].fsdp * plain.data.fsdp, 1e-9);
    }
}

static void number_formats_and_recomputation_count(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &dense, "h100_sxm", NULL, 512);
    ft_scaling plain = closed(&s);
    s.work.master_weights = true; /* gradients are kept in 4 bytes; FSDP's travel as they are made */
    ft_scaling master = closed(&s);
    near(master.data.ddp, 2 * plain.data.ddp, 1e-9);
    near(master.data.fsdp, plain.data.fsdp, 1e-9);
    near(master.data.zero1, plain.data.zero1, 1e-9);
    near(master.data.outside, plain.data.outside, 1e-9);
    s.work.recompute = FT_RECOMPUTE_FULL; /* 6 FLOPs going back instead of 4 */
    near(closed(&s).data.ddp, 2 * plain.data.ddp * 4 / 6, 1e-9);
    s.work.dtype = FT_FP8;
    near(closed(&s).data.inside, 2 * plain.data.inside, 0.001);
}

static void a_pipeline_sends_little_and_waits(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &dense, "h100_sxm", NULL, 512);
    assert_true(closed(&s).pipeline.hop == 0);
    s.parallel.pp = 8;
    s.parallel.dp = 64;
    s.work.accumulate = 16;
    ft_scaling x = closed(&s);
    double hop = 2 * 8192 / 50e9 / (2 * 70.6e9 / 8 / 989.4e12); /* bytes per token over a NIC, FLOPs of a stage */
    near(x.pipeline.hop, hop, 1e-9);
    near(x.pipeline.share, hop * (16 + 8 - 2) / 16, 1e-9);
    near(x.pipeline.bubble, 7.0 / 16, 1e-9);
    s.parallel.tp = 8;
    s.parallel.dp = 8;
    near(closed(&s).pipeline.hop, 8 * hop,
         1e-9); /* each of eight sends the same activations, for an eighth of the work */
    s.parallel.sp = true;
    near(closed(&s).pipeline.hop, hop, 1e-9);
}

static void one_domain_has_no_outside(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &dense, "h100_sxm", NULL, 8);
    ft_scaling x = closed(&s);
    assert_true(x.nic_rate == 0);
    near(x.data.outside, x.data.inside, 1e-9);
    near(x.tensor.limit, x.tensor.inside, 1e-9);
}

static void narrow_networks_need_more_tokens(void **state)
{
    (void)state;
    setting s;
    set_up(&s, &dense, "h100_sxm", "{\"interconnect\":\"ethernet_100\"}", 512);
    double ethernet = closed(&s).data.outside;
    set_up(&s, &dense, "h100_sxm", "{\"interconnect\":\"ib_ndr400\"}", 512);
    double infiniband = closed(&s).data.outside;
    near(ethernet, 4 * infiniband, 1e-6);
    set_up(&s, &dense, "h100_sxm", "{\"interconnect\":\"ib_ndr400\",\"oversubscription\":2}", 512);
    near(closed(&s).data.outside, 2 * infiniband, 1e-6);
}

static void what_has_no_roofline_is_refused(void **state)
{
    (void)state;
    setting s;
    ft_scaling x;
    ft_error err;
    set_up(&s, &dense, "a100_sxm_80gb", NULL, 64);
    s.work.dtype = FT_FP8;
    assert_int_equal(FT_E_UNSUPPORTED, ft__scaling_of(&s.c, &x, &err));
    assert_string_equal("dtype", err.where);
    ft_arch picture = dense;
    picture.design = FT_RESNET;
    picture.model_type = "resnet";
    s.c.arch = &picture;
    assert_int_equal(FT_E_UNSUPPORTED, ft__scaling_of(&s.c, &x, &err));
    assert_non_null(strstr(err.message, "resnet"));
}

static void a_crossing_lies_between_the_degrees_around_it(void **state)
{
    (void)state;
    const ft_scale_degree d[] = {
        {.degree = 2, .timeline = 0.2}, {.degree = 4, .timeline = 0.5}, {.degree = 8, .timeline = 1.5}};
    near(ft__scale_crossing(d, 3), 6, 1e-9);
    assert_true(ft__scale_crossing(d, 2) == 0);
    assert_true(ft__scale_crossing(NULL, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_h100_needs_2500_tokens_for_fsdp_and_cuts_tensors_8_ways),
        cmocka_unit_test(a_gb200_rack_is_one_domain_of_72),
        cmocka_unit_test(mixtures_of_experts_need_e_over_k_times_the_tokens),
        cmocka_unit_test(experts_have_two_domains),
        cmocka_unit_test(model_parallel_over_nodes_needs_fewer_tokens),
        cmocka_unit_test(gradients_travel_as_the_stack_sends_them),
        cmocka_unit_test(number_formats_and_recomputation_count),
        cmocka_unit_test(a_pipeline_sends_little_and_waits),
        cmocka_unit_test(one_domain_has_no_outside),
        cmocka_unit_test(narrow_networks_need_more_tokens),
        cmocka_unit_test(what_has_no_roofline_is_refused),
        cmocka_unit_test(a_crossing_lies_between_the_degrees_around_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
