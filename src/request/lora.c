/* lora.c: reading "lora".
 *
 * Adapters are put beside layers by name, and every package has names of its own for the same product; here they are
 * one table. A name that is two products in some model (gpt2's c_proj is attention's and the feed-forward network's)
 * means both, as it does to peft, which matches the end of a module's path. */
#include "request/lora.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "request/keys.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum {
    Q = FT_TARGET_Q,
    K = FT_TARGET_K,
    V = FT_TARGET_V,
    O = FT_TARGET_O,
    GATE = FT_TARGET_GATE,
    UP = FT_TARGET_UP,
    DOWN = FT_TARGET_DOWN
};

static const struct {
    const char *name;
    unsigned bits;
} targets[] = {
    {"all-linear", FT_TARGET_ALL},
    /* transformers: Llama and its kin; latent attention; BERT, ViT and T5; OPT; GPT-J; BLOOM, Falcon and NeoX */
    {"q_proj", Q},
    {"k_proj", K},
    {"v_proj", V},
    {"o_proj", O},
    {"qkv_proj", Q | K | V},
    {"gate_proj", GATE},
    {"up_proj", UP},
    {"down_proj", DOWN},
    {"gate_up_proj", GATE | UP},
    {"q_a_proj", FT_TARGET_Q_A},
    {"q_b_proj", FT_TARGET_Q_B},
    {"kv_a_proj_with_mqa", FT_TARGET_KV_A},
    {"kv_b_proj", FT_TARGET_KV_B},
    {"query", Q},
    {"key", K},
    {"value", V},
    {"q", Q},
    {"k", K},
    {"v", V},
    {"o", O},
    {"wi", UP},
    {"wi_0", GATE},
    {"wi_1", UP},
    {"wo", DOWN},
    {"out_proj", O | FT_TARGET_MIXER_OUT},
    {"in_proj", FT_TARGET_MIXER_IN},
    {"fc1", UP},
    {"fc2", DOWN},
    {"fc_in", UP},
    {"fc_out", DOWN},
    {"query_key_value", Q | K | V},
    {"dense", O},
    {"dense_h_to_4h", UP},
    {"dense_4h_to_h", DOWN},
    /* GPT-2 and Qwen of 2023 */
    {"c_attn", Q | K | V},
    {"c_proj", O | DOWN},
    {"c_fc", UP},
    {"attn.c_proj", O},
    {"mlp.c_proj", DOWN},
    /* Mixtral's and torchtune's letters; MPT */
    {"w1", GATE},
    {"w2", DOWN},
    {"w3", UP},
    {"output_proj", O},
    {"Wqkv", Q | K | V},
    /* Megatron-Bridge, NeMo */
    {"linear_qkv", Q | K | V},
    {"linear_proj", O},
    {"linear_fc1", GATE | UP},
    {"linear_fc2", DOWN},
    /* litgpt */
    {"lora_query", Q},
    {"lora_key", K},
    {"lora_value", V},
    {"lora_projection", O},
    {"lora_mlp", GATE | UP | DOWN},
    /* diffusers: attention of images and of words, networks, a U-Net's transformers' ends */
    {"to_q", Q},
    {"to_k", K},
    {"to_v", V},
    {"to_out", O},
    {"to_out.0", O},
    {"add_q_proj", Q},
    {"add_k_proj", K},
    {"add_v_proj", V},
    {"to_add_out", O},
    {"ff.net.0.proj", GATE | UP},
    {"ff.net.2", DOWN},
    {"ff_context.net.0.proj", GATE | UP},
    {"ff_context.net.2", DOWN},
    {"proj_mlp", UP},
    {"proj_in", FT_TARGET_OTHER},
    {"proj_out", DOWN | FT_TARGET_OTHER},
};

static ft_status add_target(const char *name, size_t length, unsigned *bits, ft_error *err)
{
    const char *names[COUNT(targets)];
    char said[64];
    snprintf(said, sizeof said, "%.*s", (int)(length < 60 ? length : 60), name);
    for (size_t i = 0; i < COUNT(targets); i++) {
        names[i] = targets[i].name;
        if (!strcmp(said, names[i])) {
            *bits |= targets[i].bits;
            return FT_OK;
        }
    }
    if (!strcmp(said, "embed_tokens") || !strcmp(said, "lm_head") || !strcmp(said, "lora_head"))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "lora.targets", 0, 0,
                           "adapters on \"%s\" are not forecast; \"train_embeddings\" trains embedding and head", said);
    const char *nearest = ft__nearest(said, names, COUNT(names));
    return ft__fail_at(err, FT_E_NAME, "lora.targets", 0, 0,
                       "unknown layer \"%s\"; %s%s%s\"q_proj\", \"linear_qkv\", \"c_attn\", ... or \"all-linear\"",
                       said, nearest ? "did you mean \"" : "expected names as ", nearest ? nearest : "",
                       nearest ? "\"? Names are as " : "");
}

/* An array of names, or, as flags have it, one string with commas. */
static ft_status read_targets(const json_t *value, unsigned *bits, ft_error *err)
{
    const json_t *name;
    size_t i;
    if (json_is_string(value)) {
        const char *at = json_string_value(value);
        while (at) {
            size_t length = strcspn(at, ",");
            FT_TRY(add_target(at, length, bits, err));
            at = at[length] ? at + length + 1 : NULL;
        }
        return FT_OK;
    }
    if (!json_is_array(value) || !json_array_size(value))
        return ft__fail_at(err, FT_E_TYPE, "lora.targets", 0, 0,
                           "\"targets\" must be \"all-linear\" or an array of names: [\"q_proj\", \"v_proj\"]");
    json_array_foreach (value, i, name) {
        if (!json_is_string(name))
            return ft__fail_at(err, FT_E_TYPE, "lora.targets", 0, 0,
                               "\"targets\" must be an array of names; element %zu is not a string", i + 1);
        FT_TRY(add_target(json_string_value(name), strlen(json_string_value(name)), bits, err));
    }
    return FT_OK;
}

ft_status ft__lora_read(const json_t *object, ft_said *said, ft_error *err)
{
    const json_t *l = ft__key_get(object, FT_KEY_ID_LORA);
    if (!l) return FT_OK;
    if (!json_is_object(l))
        return ft__fail_at(err, FT_E_TYPE, "lora", 0, 0,
                           "\"lora\" must be an object: {\"rank\": 16, \"targets\": [\"q_proj\", \"v_proj\"]}");
    FT_TRY(ft__keys_known(l, &(ft_section){FT_SECTION_LORA}, 1, err));
    FT_TRY(ft__said_read(l, FT_SECTION_LORA, said, err));
    int64_t rank = ft__whole_of(said, FT_KEY_ID_ADAPTER_RANK), short_form = ft__whole_of(said, FT_KEY_ID_LORA_RANK);
    bool both = ft__given(said, FT_KEY_ID_ADAPTER_RANK) && ft__given(said, FT_KEY_ID_LORA_RANK);
    if (both && rank != short_form)
        return ft__fail_at(err, FT_E_RANGE, "lora.rank", 0, 0,
                           "\"rank\" is %" PRId64 " and \"lora_rank\" is %" PRId64 ": one of them is enough", rank,
                           short_form);
    if (rank > 0) said->at[FT_KEY_ID_LORA_RANK].whole = rank;
    if (ft__whole_of(said, FT_KEY_ID_LORA_RANK) < 1)
        return ft__fail_at(err, FT_E_MISSING, "lora.rank", 0, 0, "\"lora\" needs a \"rank\": {\"rank\": 16}");
    return FT_OK;
}

/* peft's prepare_model_for_kbit_training, which some scripts call on a model of bitsandbytes' 4 bits: norms, embedding
 * and head become fp32, so that the residual stream is, and Linear4bit gives back the format it was given.
 * With the Trainer's autocast that is amp_*, weights packed. */
static void prepare_kbit(ft_model_request *out)
{
    ft_workload *w = &out->work;
    const ft_parallel *p = &out->parallel;
    ft_stack stack = *ft__stack_of(w, p->zero, p->dp * p->cp);
    const bool prepared = ft__kbit_prepared(w, &stack);
    stack.prepares_kbit = true;
    if (!prepared && (w->stack || p->zero > 1 || !ft__kbit_prepared(w, &stack))) return;
    w->autocast = prepared;
    if (out->remark[0]) return;
    snprintf(out->remark, sizeof out->remark, "%s",
             prepared ? "with 4-bit weights the rest is fp32, as peft's prepare_model_for_kbit_training leaves it; "
                        "\"lora\" {\"dtype\": \"bf16\"} keeps the model as loaded"
                      : "with 4-bit weights the rest is as loaded; \"stack\" \"peft\" is a model after "
                        "prepare_model_for_kbit_training, which takes more memory");
}

/* Frozen layers under FSDP's first wrapper and checkpoints that re-enter autograd: a stack of its own, which a request
 * that names none is told of. */
static void tell_of_checkpoints(ft_model_request *out)
{
    const ft_workload *w = &out->work;
    const ft_parallel *p = &out->parallel;
    if (w->stack || w->task != FT_TRAIN || w->lora_rank < 1 || p->zero < 2 || p->dp * p->cp < 2) return;
    if (w->recompute != FT_RECOMPUTE_FULL || w->execution != FT_RUN_EAGER || out->remark[0]) return;
    snprintf(out->remark, sizeof out->remark, "%s",
             "checkpoints are freed layer by layer; \"stack\" \"fsdp\" is FSDP's first wrapper under "
             "\"use_reentrant\", which keeps them and their gradients until the backward pass ends");
}

/* Layer norms, which the Trainer's autocast raises: the same. */
static void tell_of_autocast(ft_model_request *out)
{
    const ft_workload *w = &out->work;
    if (w->stack || w->task != FT_TRAIN || w->lora_rank < 1 || w->execution != FT_RUN_EAGER || out->remark[0]) return;
    if (w->autocast || ft_dtype_bytes(w->dtype) != 2 || out->arch->norm != FT_LAYERNORM) return;
    if (ft__adapters_of(w).form != FT_ADAPTER_AUTOCAST) return;
    snprintf(
        out->remark, sizeof out->remark, "%s",
        "layer norms and powers run in the model's format; under the Trainer's autocast, \"stack\" \"hf_trainer\", "
        "they run in fp32 and take more memory");
}

ft_status ft__lora_settle(const json_t *object, const ft_said *said, ft_model_request *out, ft_error *err)
{
    static const ft_adapter_form forms[] = {FT_ADAPTER_FP32, FT_ADAPTER_MODEL, FT_ADAPTER_MODEL, FT_ADAPTER_AUTOCAST};
    const json_t *value = ft__key_get(ft__key_get(object, FT_KEY_ID_LORA), FT_KEY_ID_ADAPTER_TARGETS);
    ft_workload *w = &out->work;
    ft_adapters *a = &w->lora;
    int form = ft__word_of(said, FT_KEY_ID_ADAPTER_DTYPE);
    *a = (ft_adapters){.dropout = ft__real_of(said, FT_KEY_ID_ADAPTER_DROPOUT),
                       .dropout_said = ft__given(said, FT_KEY_ID_ADAPTER_DROPOUT),
                       .magnitude = ft__switch_of(said, FT_KEY_ID_ADAPTER_DORA),
                       .embeddings = ft__switch_of(said, FT_KEY_ID_ADAPTER_EMBEDDINGS)};
    if (form >= 0) a->form = forms[form];
    if (value) FT_TRY(read_targets(value, &a->targets, err));
    bool scans = out->arch->design == FT_STATE_SPACE, latent = out->arch->kv_lora > 0;
    unsigned mixer = FT_TARGET_MIXER_IN | FT_TARGET_MIXER_OUT;
    unsigned latents = FT_TARGET_Q_A | FT_TARGET_Q_B | FT_TARGET_KV_A | FT_TARGET_KV_B;
    unsigned here = scans ? mixer : FT_TARGET_ALL & ~mixer & ~(latent ? 0 : latents);
    if (a->targets && !(a->targets & here))
        return ft__fail_at(err, FT_E_NAME, "lora.targets", 0, 0, "\"%s\" has none of these layers",
                           out->arch->model_type);
    if (a->embeddings && out->arch->design != FT_DECODER_ONLY)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "lora.train_embeddings", 0, 0,
                           "\"train_embeddings\" is forecast for decoders, and \"%s\" is not one",
                           out->arch->model_type);
    if (a->magnitude && (out->parallel.tp > 1 || w->weight_bits > 0))
        return ft__fail_at(err, FT_E_UNSUPPORTED, "lora.dora", 0, 0,
                           "DoRA is forecast with whole weights of 16 bits or more: not with \"tp\" or "
                           "\"weights_dtype\"");
    prepare_kbit(out);
    tell_of_checkpoints(out);
    tell_of_autocast(out);
    return FT_OK;
}
