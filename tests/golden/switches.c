/* Switches turn the right way: precision, attention, recomputation, optimizers, adapters, quantised weights and caches,
 * experts. A sign, not a size: sizes are held by the measured models. */
#include "switching.h"

static outcome train(const char *more)
{
    return outcome_of(
        golden_ask("{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"batch\":2,\"seq\":"
                   "2048%s}",
                   more));
}

static double fused_ms(int batch, const char *dtype)
{
    return golden_value("step_ms",
                        "{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"batch\":%d,"
                        "\"seq\":2048,\"execution\":\"fused\",\"dtype\":\"%s\"}",
                        batch, dtype);
}

static double prompt_host_ms(const char *dtype)
{
    return golden_value("host_ms",
                        "{\"task\":\"prefill\",\"model\":\"llama-3.1-8b\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":128,"
                        "\"execution\":\"fused\",\"dtype\":\"%s\"}",
                        dtype);
}

static void precision(void **state)
{
    (void)state;
    outcome bf16 = train(""), fp32 = train(",\"dtype\":\"fp32\""), tf32 = train(",\"dtype\":\"tf32\""),
            amp = train(",\"dtype\":\"amp_bf16\""), fp8 = train(",\"dtype\":\"fp8\"");
    less("time in fp8 and bf16, cast by the library's own kernels", fused_ms(8, "fp8"), fused_ms(8, "bf16"));
    /* A billion parameters on an H800 are slower in fp8 (TransformerEngine issue 836): its Python paces small steps. */
    less("time in bf16 and fp8 where modules pace it", fused_ms(1, "bf16"), fused_ms(1, "fp8"));
    /* One launch more a layer, of 14: what attention wrote is narrowed. */
    double engine = prompt_host_ms("bf16") * (1 + 32.0 / 459);
    golden_near("an engine's host, which has no such modules", prompt_host_ms("fp8"), engine, 0.03);
    /* torchao's casts are plain operators: 2048 x 4096 x 4096 on our H200 takes 0.27 ms eager, 0.09 in bf16. */
    less("eager bf16 and fp8", bf16.ms, fp8.ms);
    less("time in bf16 and autocast", bf16.ms, amp.ms);
    less("time in autocast and tf32", amp.ms, tf32.ms);
    less("time in tf32 and fp32", tf32.ms, fp32.ms);
    less("peak in bf16 and autocast", bf16.peak, amp.peak);
    less("peak in autocast and fp32", amp.peak, fp32.peak);
    golden_near("weights of autocast and fp32", amp.weights, fp32.weights, 1e-6);
    golden_near("twice the bytes of bf16", fp32.weights, 2 * bf16.weights, 0.01);
}

static void attention(void **state)
{
    (void)state;
    outcome flash = train(""), eager = train(",\"attention\":\"eager\"");
    less("time with flash attention", flash.ms, eager.ms);
    less("peak with flash attention", flash.peak, eager.peak);
    /* What eager attention keeps grows with the square of the sequence, what flash keeps with the sequence. */
#define OF(seq, how)                                                                                \
    golden_value("memory.peak_bytes",                                                               \
                 "{\"task\":\"memory\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"seq\":%d," \
                 "\"optimizer\":\"none\",\"attention\":\"%s\"}",                                    \
                 seq, how)
    double flash_growth = OF(8192, "flash") / OF(4096, "flash"), eager_growth = OF(8192, "eager") / OF(4096, "eager");
#undef OF
    golden_holds(flash_growth < 2.05 && eager_growth > 2.5, "peaks grow by %g and %g", flash_growth, eager_growth);
}

static double expert_ms(int gpus, const char *how)
{
    return golden_value("comm.expert_ms",
                        "{\"task\":\"train\",\"model\":\"qwen3-30b-a3b\",\"gpu\":\"h100_sxm\",\"batch\":4,"
                        "\"seq\":4096,\"execution\":\"fused\",\"master_weights\":true,\"parallel\":{\"dp\":%d,"
                        "\"ep\":%d,\"zero\":1,\"expert_dispatch\":\"%s\"}}",
                        gpus, gpus, how);
}

/* Eight picks among 128 experts fall into 5.33 of 8 ranks, and into both of two nodes: of eight copies that is what
 * travels, and the network, which is slower by far, carries two. */
static void a_token_travels_once(void **state)
{
    (void)state;
    golden_near("within a node", expert_ms(8, "once") / expert_ms(8, "copies"), 5.33 / 8, 0.05);
    golden_near("between two", expert_ms(16, "once") / expert_ms(16, "copies"), 2.0 / 8, 0.1);
}

static void recomputation(void **state)
{
    (void)state;
    outcome none = train(",\"attention\":\"eager\""),
            selective = train(",\"attention\":\"eager\",\"recompute\":\"selective\""),
            full = train(",\"attention\":\"eager\",\"recompute\":\"full\"");
    less("time with none and selective", none.ms, selective.ms);
    less("time with selective and full", selective.ms, full.ms);
    less("peak with selective and none", selective.peak, none.peak);
    less("peak with full and selective", full.peak, selective.peak);
    /* With flash attention there are no scores to drop: PyTorch's policy drops more, Megatron's nothing. */
    outcome kept = train(""), some = train(",\"recompute\":\"selective\""), least = train(",\"recompute\":\"full\""),
            fused = train(",\"execution\":\"fused\""),
            megatron = train(",\"execution\":\"fused\",\"recompute\":\"selective\"");
    less("activations with selective and none", some.activations, kept.activations);
    less("activations with full and selective", least.activations, some.activations);
    less("kernels with none and selective", kept.busy, some.busy);
    less("kernels with selective and full", some.busy, least.busy);
    less("a policy's Python: time with full and selective where the host sets the pace", least.ms, some.ms);
    golden_near("Megatron's activations", megatron.activations, fused.activations, 1e-9);
    golden_near("Megatron's time", megatron.ms, fused.ms, 1e-9);
    /* Its modules drop what they make, and beside another word than selective they say nothing. */
    outcome norms = train(",\"execution\":\"fused\",\"recompute_modules\":[\"layernorm\"]"),
            mlps = train(",\"execution\":\"fused\",\"recompute_modules\":[\"layernorm\",\"mlp\"]"),
            said = train(",\"execution\":\"fused\",\"recompute\":\"none\",\"recompute_modules\":[\"mlp\"]");
    less("activations without norms", norms.activations, fused.activations);
    less("activations without feed-forwards", mlps.activations, norms.activations);
    less("kernels with norms again", fused.busy, norms.busy);
    less("kernels with feed-forwards again", norms.busy, mlps.busy);
    golden_near("modules that are left alone", said.ms, fused.ms, 1e-9);
    /* One forward pass more on top of three: about a third. */
    double a = train("").busy, b = train(",\"recompute\":\"full\"").busy;
    golden_holds(b / a > 1.15 && b / a < 1.4, "full recomputation: %g times as long", b / a);
}

static void optimizers(void **state)
{
    (void)state;
    outcome adamw = train(""), foreach = train(",\"optimizer\":\"adamw_foreach\""),
            small = train(",\"optimizer\":\"adamw_8bit\""), momentum = train(",\"optimizer\":\"sgd_momentum\""),
            sgd = train(",\"optimizer\":\"sgd\""), none = train(",\"optimizer\":\"none\""),
            factored = train(",\"optimizer\":\"adafactor\""), muon = train(",\"optimizer\":\"muon\""),
            master = train(",\"master_weights\":true"), clipped = train(",\"clip_grad\":true");
    golden_near("two states in bf16", adamw.optimizer, 2 * adamw.weights, 0.01);
    golden_near("one state in bf16", momentum.optimizer, adamw.weights, 0.01);
    golden_near("muon's one state", muon.optimizer, adamw.weights, 0.01);
    golden_near("8-bit states", small.optimizer, adamw.optimizer / 2, 0.05);
    golden_near("masters: three times fp32", master.optimizer, 6 * adamw.weights, 0.01);
    assert_true(sgd.optimizer == 0 && none.optimizer == 0);
    less("adafactor's states", factored.optimizer, 0.01 * adamw.optimizer);
    less("time of none and sgd", none.ms, sgd.ms);
    less("time of sgd and adamw", sgd.ms, adamw.ms);
    less("time of fused and foreach", adamw.ms, foreach.ms);
    less("time of adamw and muon", adamw.ms, muon.ms);
    less("time without and with clipping", adamw.ms, clipped.ms);
    less("time without and with masters", adamw.ms, master.ms);
}

/* Experts in fp32 run one by one, and so do the sums of their gradients: eight micro-batches are eight times one, not
 * every expert's sum as large as that of all. */
static void experts_add_up_one_by_one(void **state)
{
    (void)state;
    double ms[2];
    for (int i = 0; i < 2; i++)
        ms[i] = golden_value("backward_ms",
                             "{\"task\":\"train\",\"model\":\"qwen3-30b-a3b\",\"gpu\":\"b300_sxm\",\"batch\":1,"
                             "\"seq\":4096,\"dtype\":\"fp32\",\"execution\":\"compile\",\"global_batch\":%d}",
                             i ? 8 : 1);
    golden_near("backward passes", ms[1] / ms[0], 8, 0.1);
}

static void accumulation(void **state)
{
    (void)state;
    outcome one = train(""), four = train(",\"global_batch\":8"),
            large = outcome_of(golden_ask(
                "{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"batch\":8,\"seq\":2048}"));
    golden_holds(four.busy > 3.5 * one.busy && four.busy < 4 * one.busy, "four micro-batches: %g of %g ms", four.busy,
                 one.busy);
    less("peak of four micro-batches and of one that is as large", four.peak, large.peak);
    golden_near("gradients that stay, beside bf16 weights", four.gradients, one.weights, 0.01);
}

static void execution(void **state)
{
    (void)state;
    outcome eager = train(""), fused = train(",\"execution\":\"fused\""),
            compiled = train(",\"execution\":\"compile\""), ideal = train(",\"execution\":\"ideal\"");
    less("busy of fused and eager", fused.busy, eager.busy);
    less("busy of compiled and eager", compiled.busy, eager.busy);
    less("peak of compiled and eager", compiled.peak, eager.peak);
    golden_near("ideal is busy all the time", ideal.ms, ideal.busy, 1e-6);
    golden_near("ideal runs eager's kernels", ideal.busy, eager.busy, 1e-6);
}

/* Hand-fused kernels are another way to run the same model, but for words that Megatron fills up to 128. */
static void fused_is_the_same_model(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt2",       "llama-3-8b",    "olmo-2-7b", "olmo-3-7b",  "qwen3-8b",
                                         "gemma-2-9b", "qwen3-30b-a3b", "phi3-mini", "bloom-560m", "gpt-oss-20b"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        double busy[2], parameters[2];
        for (int fused = 0; fused < 2; fused++) {
            json_t *a = golden_ask("{\"task\":\"train\",\"model\":\"%s\",\"gpu\":\"h100_sxm\",\"batch\":2,\"seq\":1024,"
                                   "\"execution\":\"%s\"}",
                                   models[i], fused ? "fused" : "eager");
            busy[fused] = golden_figure(a, "busy_ms");
            parameters[fused] = golden_figure(a, "parameters");
            json_decref(a);
        }
        less(models[i], busy[1], busy[0]);
        golden_near(models[i], parameters[1], parameters[0], 5e-4);
    }
}

/* Frozen weights have no gradients and no states; four bits of them take a quarter. */
static void adapters(void **state)
{
    (void)state;
#define TUNE(more)                                                                                                     \
    outcome_of(golden_ask("{\"task\":\"train\",\"model\":\"llama-3-8b\",\"gpu\":\"h200_sxm\",\"batch\":1,\"seq\":512," \
                          "\"recompute\":\"full\"%s}",                                                                 \
                          more))
    outcome whole = TUNE(""), lora = TUNE(",\"lora_rank\":16"),
            qlora = TUNE(",\"lora_rank\":16,\"weights_dtype\":\"nf4\",\"stack\":\"peft\""),
            loaded = TUNE(",\"lora\":{\"rank\":16,\"dtype\":\"bf16\"},\"weights_dtype\":\"nf4\""),
            gptq = TUNE(",\"lora_rank\":16,\"weights_dtype\":\"int4\""),
            wide = TUNE(",\"lora\":{\"rank\":16,\"dtype\":\"fp32\"}"),
            narrow = TUNE(",\"lora\":{\"rank\":16,\"dtype\":\"bf16\"}"),
            few = TUNE(",\"lora\":{\"rank\":16,\"targets\":[\"q_proj\",\"v_proj\"]}"),
            dora = TUNE(",\"lora\":{\"rank\":16,\"dora\":true}"),
            drops = TUNE(",\"lora\":{\"rank\":16,\"dropout\":0.1}"),
            tables = TUNE(",\"lora\":{\"rank\":16,\"train_embeddings\":true}");
#undef TUNE
    less("adapters in the model's format and under autocast", narrow.busy, lora.busy);
    less("adapters under autocast and in fp32", lora.busy, wide.busy);
    less("states of adapters in 16 bits", narrow.optimizer, 0.55 * lora.optimizer);
    less("adapters beside two products of seven", few.busy, lora.busy);
    less("their states", few.optimizer, 0.3 * lora.optimizer);
    less("LoRA and DoRA", lora.busy, dora.busy);
    less("dropout before adapters", lora.busy, drops.busy);
    less("states of tables that are trained too", 2.0 * 2 * 2 * 128256.0 * 4096.0, tables.optimizer);
    /* AutoGPTQ's operators go over every weight several times; bitsandbytes' kernel once. Dequantised copies wait for
     * the layer's backward pass. */
    less("4 bits unpacked by a kernel and by operators", qlora.busy, gptq.busy);
    less("whole weights and unpacked ones", lora.busy, qlora.busy);
    less("what unpacking holds", loaded.peak - loaded.weights, gptq.peak - gptq.weights);
    /* peft's k-bit preparation: embedding and head twice as wide, and a 16-bit copy of the head under autocast */
    less("tables of a prepared model", 2.0 * 2 * 128256.0 * 4096.0, qlora.weights - loaded.weights);
    less("a prepared model's copy of its head", 2 * 128256.0 * 4096.0,
         qlora.peak - qlora.weights - loaded.peak + loaded.weights);
    less("LoRA's peak", lora.peak, 0.5 * whole.peak);
    less("LoRA's states", lora.optimizer, 0.05 * whole.optimizer);
    less("QLoRA's peak", loaded.peak, 0.65 * lora.peak);
    less("QLoRA's weights", loaded.weights, 0.4 * lora.weights);
    less("QLoRA's peak, prepared", qlora.peak, 0.8 * lora.peak);
}

/* What most requests leave out, each the way it is meant to turn. */
static void of_a_step(void **state)
{
    (void)state;
    outcome plain = train(""), narrow = train(",\"loss\":\"narrow\""), fused = train(",\"loss\":\"fused\""),
            parts = train(",\"loss\":\"chunked\""), linear = train(",\"loss\":\"fused_linear\""),
            written = train(",\"loss\":\"fused_linear\",\"stack\":\"pytorch\""),
            chosen = train(",\"loss_positions\":64"), ema = train(",\"ema\":true"),
            bf16 = train(",\"master_weights\":true"),
            small = train(",\"master_weights\":true,\"moments_dtype\":\"bf16\""), packed = train(",\"packing\":256"),
            mixed = train(",\"packing\":[128,384]"), lamb = train(",\"optimizer\":\"lamb\""),
            capped = train(",\"power_cap_w\":350"), full = train(",\"recompute\":\"full\""),
            some = train(",\"recompute\":\"full\",\"recompute_layers\":8"),
            qkv = train(",\"remat_policy\":[\"save_qkv_proj\"]"), names = train(",\"remat_policy\":[\"minimal\"]"),
            nothing = train(",\"remat_policy\":[\"full\"]");
    less("a loss in the logits' format", narrow.ms, plain.ms);
    less("its peak", narrow.peak, plain.peak);
    less("a loss in one kernel", fused.peak, narrow.peak);
    less("a loss with the head", linear.peak, fused.peak);
    less("fp32 logits in parts", parts.peak, 0.9 * plain.peak);
    less("which are whole in 16 bits", linear.peak, parts.peak);
    golden_near("the same kernels", parts.busy, plain.busy, 0.01);
    less("Liger's other kernels", linear.busy, 0.95 * written.busy);
    less("products in chunks, whose sums are read and written every time", 1.05 * narrow.busy, written.busy);
    golden_near("an average of the weights", ema.optimizer, plain.optimizer + plain.weights, 0.01);
    less("its update", plain.busy, ema.busy);
    golden_near("moments of 16 bits beside fp32 copies: 12 bytes and 8", small.optimizer, bf16.optimizer * 8 / 12,
                0.01);
    less("their update", small.busy, bf16.busy);
#define SHORT "{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"batch\":1,\"seq\":128%s}"
    outcome late = outcome_of(golden_ask(SHORT, "")),
            dropped = outcome_of(golden_ask(SHORT, ",\"optimizer_in_backward\":true"));
#undef SHORT
    less("gradients that are dropped", dropped.gradients, 0.01 * late.gradients);
    less("their peak", dropped.peak, 0.9 * late.peak);
    less("documents in sequences", packed.ms, plain.ms);
    less("longer ones among them: 320 by tokens", packed.ms, mixed.ms);
    less("LAMB's norms", plain.busy, lamb.busy);
    golden_near("LAMB's states", lamb.optimizer, plain.optimizer, 1e-9);
    less("a board held to half", plain.busy, capped.busy);
    less("a tenth of the positions: head and loss", chosen.busy, plain.busy);
    less("their logits", chosen.peak, plain.peak);
    less("half of the layers again: time", plain.busy, some.busy);
    less("half of the layers again: less than all", some.busy, full.busy);
    less("half of the layers again: memory", some.peak, plain.peak);
    less("and more than all", full.peak, some.peak);
    golden_near("a policy that keeps nothing", nothing.busy, full.busy, 1e-9);
    less("a policy that keeps queries, keys and values", qkv.busy, full.busy);
    less("one that keeps all products", names.busy, qkv.busy);
    less("its memory", qkv.peak, names.peak);
    less("and theirs", full.peak, qkv.peak);
}

/* With the batch a step goes from fitting through a tight fit to none; what is likely falls all the way. */
static void verdicts(void **state)
{
    (void)state;
    static const char *const words[] = {"fits", "tight", "no"};
    int at = 0, seen[3] = {0};
    double before = 1;
    for (int batch = 2; batch <= 12; batch++) {
        json_t *a = golden_ask("{\"task\":\"train\",\"model\":\"llama-3.2-1b\",\"gpu\":\"h100_sxm\",\"batch\":%d,"
                               "\"seq\":4096}",
                               batch);
        const json_t *m = json_object_get(a, "memory");
        const char *verdict = json_string_value(json_object_get(m, "verdict"));
        double chance = json_number_value(json_object_get(m, "chance_fits"));
        while (at < 3 && strcmp(verdict, words[at]) != 0) at++;
        golden_holds(at < 3, "batch %d: \"%s\" comes back", batch, verdict);
        golden_holds(chance <= before, "batch %d: %g is likelier than %g", batch, chance, before);
        golden_holds((at == 2) == !json_is_true(json_object_get(m, "fits")), "batch %d: fits beside %s", batch,
                     verdict);
        golden_holds((at == 0) == !json_object_get(m, "remedy"), "batch %d: a remedy beside %s", batch, verdict);
        before = chance;
        if (at < 3) seen[at]++;
        json_decref(a);
    }
    golden_holds(seen[0] > 0 && seen[1] > 0 && seen[2] > 0, "fits %d, tight %d, no %d", seen[0], seen[1], seen[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precision),
        cmocka_unit_test(attention),
        cmocka_unit_test(a_token_travels_once),
        cmocka_unit_test(recomputation),
        cmocka_unit_test(optimizers),
        cmocka_unit_test(accumulation),
        cmocka_unit_test(experts_add_up_one_by_one),
        cmocka_unit_test(execution),
        cmocka_unit_test(fused_is_the_same_model),
        cmocka_unit_test(adapters),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(of_a_step),
    };
    return cmocka_run_group_tests(tests, golden_open, golden_close);
}
