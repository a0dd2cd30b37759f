/* Layouts that cannot be, in words; and Megatron's groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "layout_models.h"
#include "request/parallel.h"

/* -- refusals ---------------------------------------------------------------------------------- */

static void refused(const char *model, const char *layout, ft_attention_kind attention, ft_status code,
                    const char *where, const char *message)
{
    ft_error err = {0};
    json_t *object = NULL;
    char text[512];
    ft_parallel p;
    snprintf(text, sizeof text, "{\"parallel\": %s}", layout);
    assert_int_equal(ft__json_parse(text, strlen(text), "", &object, &err), FT_OK);
    ft_arch arch = open_model(model);
    ft_workload work = train_work(1, 4096);
    work.attention = attention;
    ft_said said;
    ft__said_init(&said);
    ft_status status = ft__parallel_read(object, &said, &err);
    if (status == FT_OK) status = ft__parallel_settle(&said, &p, &err);
    if (status == FT_OK) status = ft__parallel_fits_model(&p, &arch, &work, &err);
    if (status != code || strcmp(err.message, message) || strcmp(err.where, where))
        fail_msg("%s: %d, %s: %s", layout, (int)status, err.where, err.message);
    json_decref(object);
    ft__arch_release(&arch);
}

static void what_cannot_be_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *model, *layout;
        ft_status code;
        const char *where, *message;
    } cases[] = {
        {"llama-3-8b", "3", FT_E_TYPE, "parallel", "\"parallel\" must be an object: {\"tp\": 2, \"dp\": 4}"},
        {"llama-3-8b", "{\"tp\": 0}", FT_E_RANGE, "parallel.tp",
         "\"tp\" must be a whole number from 1 to 1000000, got 0"},
        {"llama-3-8b", "{\"dp\": -4}", FT_E_RANGE, "parallel.dp",
         "\"dp\" must be a whole number from 1 to 1000000, got -4"},
        {"llama-3-8b", "{\"zero\": 4}", FT_E_RANGE, "parallel.zero",
         "\"zero\" must be a whole number from 0 to 3, got 4"},
        {"llama-3-8b", "{\"tpp\": 4}", FT_E_KEY, "parallel.tpp", "unknown key \"tpp\"; did you mean \"tp\"?"},
        {"llama-3-8b", "{\"tp\": 3}", FT_E_RANGE, "parallel.tp",
         "\"tp\" 3 does not divide the model's 32 attention heads; 2 or 4 would"},
        {"llama-3-8b", "{\"tp\": 64}", FT_E_RANGE, "parallel.tp",
         "\"tp\" 64 does not divide the model's 32 attention heads; 32 would"},
        {"qwen2.5-7b", "{\"tp\": 7}", FT_E_RANGE, "parallel.tp",
         "\"tp\" 7 over 4 key-value heads: each must be held by as many ranks; 4 or 28 would do"},
        {"qwen2.5-7b", "{\"tp\": 14}", FT_E_RANGE, "parallel.tp",
         "\"tp\" 14 over 4 key-value heads: each must be held by as many ranks; 4 or 28 would do"},
        {"phi-3-medium", "{\"tp\": 3}", FT_E_RANGE, "parallel.tp",
         "\"tp\" 3 does not divide the model's 40 attention heads; 2 or 5 would"},
        {"phi-4", "{\"tp\": 16, \"sp\": true}", FT_E_RANGE, "parallel.tp",
         "\"tp\" 16 does not divide the model's 40 attention heads; 2 would"},
        {"llama-3-8b", "{\"tp\": 2, \"sp\": true, \"cp\": 3}", FT_E_RANGE, "parallel.cp",
         "\"cp\" 3 needs a sequence that 6 divides, two slices per rank; got 4096, for which 2 or 4 would do"},
        {"llama-3-8b", "{\"pp\": 40}", FT_E_RANGE, "parallel.pp",
         "40 stages of 1 chunk are more than the model's 32 layers; \"pp\" can be at most 32"},
        {"llama-3-8b", "{\"pp\": 16, \"vpp\": 4}", FT_E_RANGE, "parallel.pp",
         "16 stages of 4 chunks are more than the model's 32 layers; \"pp\" can be at most 8"},
        {"llama-3-8b", "{\"pp\": 3, \"vpp\": 5}", FT_E_RANGE, "parallel.vpp",
         "pp * vpp = 15 divides neither the model's 32 layers nor 33, the loss counted as one, nor 34, the embedding "
         "too; \"vpp\" 1 or 11 would do"},
        {"llama-3.1-405b", "{\"pp\": 8, \"vpp\": 5}", FT_E_RANGE, "parallel.vpp",
         "pp * vpp = 40 divides neither the model's 126 layers nor 127, the loss counted as one, nor 128, the "
         "embedding "
         "too; \"vpp\" 4 or 8 would do"},
        {"llama-3.1-405b", "{\"pp\": 8, \"vpp\": 15}", FT_E_RANGE, "parallel.vpp",
         "pp * vpp = 120 divides neither the model's 126 layers nor 127, the loss counted as one, nor 128, the "
         "embedding too; \"vpp\" 8 or 16 would do"},
        {"llama-3.1-405b", "{\"pp\": 16, \"vpp\": 9}", FT_E_RANGE, "parallel.pp",
         "16 stages of 9 chunks are more than the model's 126 layers; \"pp\" can be at most 14"},
        {"llama-3.1-405b", "{\"pp\": 128}", FT_E_RANGE, "parallel.pp",
         "128 stages of 1 chunk are more than the model's 126 layers; \"pp\" can be at most 126"},
        {"llama-3-8b", "{\"pp\": 2, \"vpp\": 40}", FT_E_RANGE, "parallel.pp",
         "2 stages of 40 chunks are more than the model's 32 layers; with \"vpp\" 1 \"pp\" can be at most 32"},
        {"llama-3-8b", "{\"vpp\": 2}", FT_E_RANGE, "parallel.vpp", "\"vpp\" 2 needs a pipeline: \"pp\" is 1"},
        {"llama-3-8b", "{\"pp\": 2, \"vpp\": 2, \"schedule\": \"1f1b\"}", FT_E_RANGE, "parallel.vpp",
         "\"vpp\" 2 needs the schedule \"interleaved\"; \"1f1b\" has one chunk per stage"},
        {"llama-3-8b", "{\"pp\": 2, \"schedule\": \"1f2b\"}", FT_E_NAME, "parallel.schedule",
         "unknown schedule \"1f2b\"; did you mean \"1f1b\"?"},
        {"mixtral-8x7b", "{\"ep\": 2, \"dp\": 2, \"expert_dispatch\": \"twice\"}", FT_E_NAME,
         "parallel.expert_dispatch", "unknown expert_dispatch \"twice\"; it is one of copies, once"},
        {"mixtral-8x7b", "{\"dp\": 2, \"ep\": 2, \"pp\": 2, \"expert_overlap\": true}", FT_E_RANGE,
         "parallel.expert_overlap",
         "\"expert_overlap\" in a pipeline needs the schedule \"interleaved\" with \"vpp\" 2 or more, or \"dualpipe\"; "
         "it is \"1f1b\""},
        {"mixtral-8x7b", "{\"dp\": 2, \"ep\": 2, \"expert_overlap\": \"yes\"}", FT_E_TYPE, "parallel.expert_overlap",
         "\"expert_overlap\" must be true or false, got the string \"yes\""},
        {"llama-3-8b", "{\"cp\": 3}", FT_E_RANGE, "parallel.cp",
         "\"cp\" 3 needs a sequence that 6 divides, two slices per rank; got 4096, for which 2 or 4 would do"},
        {"llama-3-8b", "{\"tp\": 8, \"cp\": 8, \"ulysses\": true}", FT_E_RANGE, "parallel.cp",
         "ulysses trades tokens for heads: \"cp\" 8 does not divide the 4 heads of a tensor rank; 4 would"},
        {"llama-3-8b", "{\"tp\": 8, \"cp\": 8, \"cp_kind\": \"ulysses\"}", FT_E_RANGE, "parallel.cp",
         "ulysses trades tokens for heads: \"cp\" 8 does not divide the 4 heads of a tensor rank; 4 would"},
        {"llama-3-8b", "{\"cp\": 2, \"cp_kind\": \"rings\"}", FT_E_NAME, "parallel.cp_kind",
         "unknown cp_kind \"rings\"; did you mean \"ring\"?"},
        {"llama-3-8b", "{\"cp\": 2, \"cp_kind\": \"p2p\"}", FT_E_NAME, "parallel.cp_kind",
         "unknown cp_kind \"p2p\"; it is one of ring, ulysses, gather, pytorch"},
        {"llama-3-8b", "{\"cp\": 2, \"cp_kind\": true}", FT_E_TYPE, "parallel.cp_kind",
         "\"cp_kind\" must be a string, got true"},
        {"llama-3-8b", "{\"cp\": 2, \"cp_kind\": \"gather\", \"ulysses\": true}", FT_E_RANGE, "parallel.ulysses",
         "\"ulysses\" is true and \"cp_kind\" is \"gather\": one of them is enough"},
        {"llama-3-8b", "{\"cp\": 2, \"cp_kind\": \"ulysses\", \"ulysses\": false}", FT_E_RANGE, "parallel.ulysses",
         "\"ulysses\" is false and \"cp_kind\" is \"ulysses\": one of them is enough"},
        {"llama-3-8b", "{\"ep\": 2, \"dp\": 2}", FT_E_RANGE, "parallel.ep", "\"ep\" 2: the model has no experts"},
        {"mixtral-8x7b", "{\"ep\": 16, \"dp\": 16}", FT_E_RANGE, "parallel.ep",
         "\"ep\" 16 is more than the model's 8 experts; it can be at most that"},
        {"mixtral-8x7b", "{\"ep\": 3, \"dp\": 3}", FT_E_RANGE, "parallel.ep",
         "\"ep\" 3 does not divide the model's 8 experts; 1 would"},
        {"mixtral-8x7b", "{\"ep\": 3, \"dp\": 12}", FT_E_RANGE, "parallel.ep",
         "\"ep\" 3 does not divide the model's 8 experts; 2 or 4 would"},
        {"switch-base-8", "{\"ep\": 2, \"dp\": 2}", FT_E_UNSUPPORTED, "parallel.ep",
         "\"ep\" is forecast for decoder-only models; the experts of this one are held by every \"dp\" rank"},
        {"mixtral-8x7b", "{\"ep\": 4, \"dp\": 2}", FT_E_RANGE, "parallel.ep",
         "experts are spread over data and context ranks: \"ep\" 4 must divide dp * cp = 2; 2 would"},
        {"mixtral-8x7b", "{\"ep\": 4, \"dp\": 2, \"tp\": 2}", FT_E_RANGE, "parallel.ep",
         "experts are spread over data and context ranks: \"ep\" 4 must divide dp * cp = 2; 2 would, or with \"etp\" 1 "
         "and \"sp\" over tensor ranks too"},
        {"mixtral-8x7b", "{\"ep\": 8, \"dp\": 2, \"tp\": 2, \"etp\": 1, \"sp\": true}", FT_E_RANGE, "parallel.ep",
         "whole experts are spread over all ranks of a stage: \"ep\" 8 must divide dp * cp * tp = 4; 4 would"},
        {"mixtral-8x7b", "{\"ep\": 2, \"dp\": 2, \"tp\": 4, \"etp\": 2}", FT_E_RANGE, "parallel.etp",
         "\"etp\" 2: an expert is cut over all tensor ranks (4) or over none (1)"},
        {"mixtral-8x7b", "{\"ep\": 4, \"dp\": 2, \"tp\": 2, \"etp\": 1}", FT_E_RANGE, "parallel.etp",
         "\"etp\" 1 beside \"tp\" 2 needs \"sp\": every tensor rank sends tokens of its own"},
        {"llama-3-8b", "{\"dp\": 8, \"zero\": 3, \"shard\": 3}", FT_E_RANGE, "parallel.shard",
         "\"shard\" 3 does not divide the 8 ranks that hold the same parameters (dp * cp); 2 or 4 would"},
        {"mixtral-8x7b", "{\"dp\": 12, \"ep\": 2, \"zero\": 1, \"shard\": 4}", FT_E_RANGE, "parallel.shard",
         "\"shard\" 4 does not divide the 6 ranks that hold the same experts; 3 or 6 would"},
        {"llama-3-8b", "{\"dp\": 8, \"shard\": 2}", FT_E_RANGE, "parallel.shard",
         "\"shard\" 2 says over how many ranks \"zero\" shards; \"zero\" is 0"},
        {"llama-3-8b", "{\"dp\": 1000000, \"tp\": 8, \"pp\": 2}", FT_E_RANGE, "parallel",
         "1.6e+07 ranks are more than any cluster has"},
        {"resnet-50", "{\"tp\": 2}", FT_E_UNSUPPORTED, "parallel",
         "\"tp\" and \"cp\" are forecast for decoder-only and BERT-like models; this one takes \"dp\" and \"zero\""},
        {"vit-b-16", "{\"cp\": 2}", FT_E_UNSUPPORTED, "parallel",
         "\"tp\" and \"cp\" are forecast for decoder-only and BERT-like models; this one takes \"dp\", \"pp\" and "
         "\"zero\""},
        {"t5-base", "{\"pp\": 2}", FT_E_UNSUPPORTED, "parallel.pp",
         "\"pp\" is forecast for models that are one chain of layers; \"t5\" takes \"dp\" and \"zero\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].model, cases[i].layout, FT_FLASH, cases[i].code, cases[i].where, cases[i].message);
    refused("llama-3-8b", "{\"cp\": 2}", FT_EAGER, FT_E_UNSUPPORTED, "parallel.cp",
            "context parallelism needs fused attention: \"attention\" must be \"flash\" or \"sdpa\"");
}

/* -- groups ------------------------------------------------------------------------------------ */

/* Sixteen GPUs, tp 2, pp 4, dp 2: the example of Megatron-LM's documentation. */
static void groups_are_megatrons(void **state)
{
    (void)state;
    ft_parallel p = layout_of(2, 4, 1, 1, 2);
    int64_t size, stride, ranks[16];
    static const int64_t tensor[8][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}};
    static const int64_t data[8][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}};
    static const int64_t pipeline[4][4] = {{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}};
    for (int64_t n = 0; n < 8; n++) {
        assert_true(ft__parallel_members(&p, FT_AXIS_TENSOR, n, ranks));
        assert_memory_equal(ranks, tensor[n], sizeof tensor[n]);
        assert_true(ft__parallel_members(&p, FT_AXIS_DATA, n, ranks));
        assert_memory_equal(ranks, data[n], sizeof data[n]);
    }
    for (int64_t n = 0; n < 4; n++) {
        assert_true(ft__parallel_members(&p, FT_AXIS_PIPELINE, n, ranks));
        assert_memory_equal(ranks, pipeline[n], sizeof pipeline[n]);
    }
    assert_false(ft__parallel_members(&p, FT_AXIS_TENSOR, 8, ranks));
    assert_false(ft__parallel_members(&p, FT_AXIS_PIPELINE, 4, ranks));
    assert_false(ft__parallel_members(&p, FT_AXIS_DATA, -1, ranks));
    /* Whole experts over tensor and data ranks: Megatron-Core's folding, neighbours first. */
    p.ep = 4;
    p.etp = 1;
    static const int64_t expert[4][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}};
    for (int64_t n = 0; n < 4; n++) {
        assert_true(ft__parallel_members(&p, FT_AXIS_EXPERT, n, ranks));
        assert_memory_equal(ranks, expert[n], sizeof expert[n]);
    }
    ft__parallel_group(&p, FT_AXIS_PIPELINE, &size, &stride);
    assert_int_equal(size, 4);
    assert_int_equal(stride, 4);
}

/* Every axis' groups name every rank once. */
static void every_rank_is_in_one_group(void **state)
{
    (void)state;
    ft_parallel p = layout_of(2, 3, 2, 4, 4);
    for (int axis = 0; axis < FT_AXIS_COUNT; axis++) {
        bool seen[48] = {false};
        int64_t ranks[48], size, stride, n = 0;
        ft__parallel_group(&p, (ft_axis)axis, &size, &stride);
        while (ft__parallel_members(&p, (ft_axis)axis, n, ranks)) {
            for (int64_t i = 0; i < size; i++) {
                assert_true(ranks[i] >= 0 && ranks[i] < 48 && !seen[ranks[i]]);
                seen[ranks[i]] = true;
            }
            n++;
        }
        assert_int_equal(n * size, 48);
    }
}

/* Megatron routes llama4's tokens; transformers has no use for experts on other ranks. */
static void experts_that_see_everything_stay_together(void **state)
{
    ft_parallel p = {.tp = 1, .cp = 1, .dp = 2, .pp = 1, .vpp = 1, .ep = 2};
    ft_arch arch = open_model("llama-4-scout");
    ft_workload work = train_work(1, 4096);
    ft_error err = {0};
    (void)state;
    work.execution = FT_RUN_FUSED;
    assert_int_equal(ft__parallel_fits_model(&p, &arch, &work, &err), FT_OK);
    work.execution = FT_RUN_EAGER;
    assert_int_equal(ft__parallel_fits_model(&p, &arch, &work, &err), FT_E_UNSUPPORTED);
    assert_string_equal(err.where, "parallel.ep");
    assert_string_equal(err.message, "transformers' llama4 sends every token through every expert: \"ep\" needs "
                                     "\"execution\" \"fused\"");
    ft__arch_release(&arch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_that_see_everything_stay_together),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(groups_are_megatrons),
        cmocka_unit_test(every_rank_is_in_one_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
