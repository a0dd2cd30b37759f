/* Versions of PyTorch and TorchScript: what each changes goes the right way, and nothing changes where none is
 * named. */
#include "switching.h"

static outcome train(const char *gpu, const char *more)
{
    return outcome_of(golden_ask("{\"task\":\"train\",\"model\":\"gpt2\",\"gpu\":\"%s\",\"batch\":8,\"seq\":1024,"
                                 "\"attention\":\"sdpa\",\"optimizer\":\"adamw_foreach\",\"clip_grad\":true%s}",
                                 gpu, more));
}

static double value(const char *key, const char *more)
{
    return golden_value(key,
                        "{\"task\":\"forward\",\"model\":\"bert-base\",\"gpu\":\"a100_sxm_80gb\",\"batch\":1,"
                        "\"seq\":128,\"attention\":\"eager\"%s}",
                        more);
}

#define IN(version) ",\"pytorch\":\"" version "\""

static void versions_of_pytorch(void **state)
{
    (void)state;
    outcome today = train("h100_sxm", ""), second = train("h100_sxm", IN("2.4")), first = train("h100_sxm", IN("2.1")),
            before = train("h100_sxm", IN("1.13"));
    golden_near("the version that was measured", train("h100_sxm", IN("2.11")).ms, today.ms, 1e-9);
    less("cuDNN's attention after FlashAttention-2", today.ms, second.ms);
    less("FlashAttention-2 after what was before", second.ms, first.ms);
    less("fused attention after scores written out", first.ms, before.ms);
    /* Attention apart: tensors one after the other, and gradients that stay. */
    outcome lists = outcome_of(golden_ask("{\"task\":\"train\",\"model\":\"resnet-50\",\"gpu\":\"a100_sxm_80gb\","
                                          "\"batch\":64,\"optimizer\":\"sgd_momentum\"}"));
    outcome apart = outcome_of(golden_ask("{\"task\":\"train\",\"model\":\"resnet-50\",\"gpu\":\"a100_sxm_80gb\","
                                          "\"batch\":64,\"optimizer\":\"sgd_momentum\"" IN("1.13") "}"));
    less("an update over lists", lists.ms, apart.ms);
    golden_holds(apart.peak > lists.peak + 4e7, "gradients stay: %g and %g bytes", lists.peak, apart.peak);
    /* Where FlashAttention-2 is today's choice as well nothing is different. */
    golden_near("an A100", train("a100_sxm_80gb", IN("2.4")).ms, train("a100_sxm_80gb", "").ms, 1e-9);
    /* T5's learned biases go the way of scores written out, in fp32 since 2.5 alone. */
    const char *t5 = "{\"task\":\"train\",\"model\":\"t5-base\",\"gpu\":\"a100_sxm_80gb\",\"batch\":32,\"seq\":512,"
                     "\"attention\":\"sdpa\"%s}";
    outcome wide = outcome_of(golden_ask(t5, IN("2.5"))), own = outcome_of(golden_ask(t5, IN("2.4")));
    less("scores in 16 bits", own.ms, wide.ms);
    golden_holds(own.peak < wide.peak, "scores in 16 bits: %g and %g bytes", own.peak, wide.peak);
    /* Experts in a Python loop until transformers 5, which came with 2.10. */
    const char *moe =
        "{\"task\":\"%s\",\"model\":\"olmoe-1b-7b\",\"gpu\":\"a100_sxm_80gb\",\"batch\":1,\"seq\":1024%s}";
    golden_near("experts together", golden_value("launches", moe, "train", IN("2.10")),
                golden_value("launches", moe, "train", ""), 1e-9);
    golden_holds(golden_value("launches", moe, "train", IN("2.9")) > 10 * golden_value("launches", moe, "train", ""),
                 "sixty-four experts one by one");
    golden_holds(golden_value("launches", moe, "decode", IN("2.9")) < 5 * golden_value("launches", moe, "decode", ""),
                 "of them eight for one token");
    golden_near("their weights", golden_value("parameters", moe, "train", IN("2.9")),
                golden_value("parameters", moe, "train", ""), 1e-9);
    /* fp32 means TF32 off whatever the version's default: the answer says which that was. */
    golden_near("fp32 of 1.11", value("step_ms", ",\"dtype\":\"fp32\"" IN("1.11")),
                value("step_ms", ",\"dtype\":\"fp32\""), 1e-9);
}

static void scripted(void **state)
{
    (void)state;
#define RUN(how) ",\"execution\":\"" how "\""
    less("the host without Python", value("host_ms", RUN("torchscript")), value("host_ms", RUN("eager")));
    less("a compiler's wrapper", value("host_ms", RUN("compile")), value("host_ms", RUN("torchscript")));
    less("kernels that are joined", value("busy_ms", RUN("torchscript")), value("busy_ms", RUN("eager")));
    less("with reductions too", value("busy_ms", RUN("torchscript") IN("1.13")), value("busy_ms", RUN("torchscript")));
    less("fewer launches", value("launches", RUN("torchscript") IN("1.13")), value("launches", RUN("torchscript")));
    less("and than as written", value("launches", RUN("torchscript")), value("launches", RUN("eager")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(versions_of_pytorch), cmocka_unit_test(scripted)};
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
