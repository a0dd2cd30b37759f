/* head.c: what stands on top of a model. `architectures` names the class that was saved: BertForMaskedLM,
 * T5EncoderModel, ViTForImageClassification. Without it, or with a class of somebody's own, a model has the head that
 * its kind is trained with. */
#include <string.h>

#include "base/json.h"
#include "import/config/type.h"

typedef enum head {
    HEAD_USUAL,
    HEAD_NONE,
    HEAD_LANGUAGE,
    HEAD_MASKED,
    HEAD_PRETRAINING,
    HEAD_LABELS,
    HEAD_TOKEN_LABELS,
    HEAD_ENCODER
} head;

static bool ends(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static head head_of(const char *class)
{
    static const struct {
        const char *end;
        head head;
    } known[] = {
        {"LMHeadModel", HEAD_LANGUAGE},
        {"ForCausalLM", HEAD_LANGUAGE},
        {"ForConditionalGeneration", HEAD_LANGUAGE},
        {"ForMaskedLM", HEAD_MASKED},
        {"ForPreTraining", HEAD_PRETRAINING},
        {"ForSequenceClassification", HEAD_LABELS},
        {"ForImageClassification", HEAD_LABELS},
        {"ForTokenClassification", HEAD_TOKEN_LABELS},
        {"ForQuestionAnswering", HEAD_TOKEN_LABELS},
        {"EncoderModel", HEAD_ENCODER},
        /* Whole models by the names that their authors gave them (config.json of THUDM/chatglm3-6b,
         * OpenGVLab/InternVL2-8B, nvidia/NVLM-D-72B, Qwen/Qwen2.5-Omni-7B). */
        {"ChatGLMModel", HEAD_LANGUAGE},
        {"ChatModel", HEAD_LANGUAGE},
        {"NVLM_D_Model", HEAD_LANGUAGE},
        {"OmniModel", HEAD_LANGUAGE},
        {"Model", HEAD_NONE},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ends(class, known[i].end)) return known[i].head;
    return HEAD_USUAL;
}

static ft_status read_class(const ft_reading *r, head *out)
{
    const json_t *list = json_object_get(r->whole, "architectures");
    *out = HEAD_USUAL;
    if (!list || json_is_null(list)) return FT_OK;
    const json_t *first = json_is_array(list) ? json_array_get(list, 0) : list;
    if (json_is_array(list) && !first) return FT_OK;
    if (!json_is_string(first))
        return ft__config_fail(r, FT_E_TYPE, "architectures", "\"architectures\" must be a list of class names");
    *out = head_of(json_string_value(first));
    return FT_OK;
}

/* num_labels, or as many as id2label names; the library's default is two. */
static ft_status read_labels(const ft_reading *r, int64_t *out)
{
    const json_t *names = json_object_get(r->whole, "id2label");
    *out = json_is_object(names) && json_object_size(names) ? (int64_t)json_object_size(names) : 2;
    if (json_is_null(json_object_get(r->whole, "num_labels"))) return FT_OK;
    return ft__json_whole(r->whole, "num_labels", FT_OPTIONAL, 1, 10000000, out, r->where, r->err);
}

static ft_status labels(const ft_reading *r, ft_arch *a, bool pooler)
{
    a->lm_head = a->mlm_head = false;
    a->pooler = pooler;
    return read_labels(r, &a->labels);
}

/* Bert's kind. A causal one is a decoder with the same head, whose loss copies the logits to fp32. */
static ft_status encoder_head(const ft_reading *r, ft_arch *a, head top)
{
    switch (top) {
    case HEAD_LABELS: return labels(r, a, true);
    case HEAD_TOKEN_LABELS: return labels(r, a, false);
    case HEAD_NONE:
    case HEAD_ENCODER:
        a->mlm_head = false;
        a->pooler = strcmp(a->model_type, "distilbert") != 0 && strcmp(a->model_type, "clip_text_model") != 0;
        return FT_OK;
    case HEAD_PRETRAINING: a->pooler = true; return FT_OK;
    case HEAD_LANGUAGE: a->loss_fp32 = true; return FT_OK;
    case HEAD_USUAL: a->loss_fp32 |= a->causal; return FT_OK;
    case HEAD_MASKED: break;
    }
    return FT_OK;
}

static ft_status text_head(const ft_reading *r, ft_arch *a, head top)
{
    if (top == HEAD_LABELS || top == HEAD_TOKEN_LABELS) return labels(r, a, false);
    if (top == HEAD_NONE || top == HEAD_ENCODER) a->lm_head = false;
    if (top == HEAD_ENCODER) a->decoder_layers = a->sparse_decoder_layers = 0;
    return FT_OK;
}

ft_status ft__config_head(const ft_reading *r, ft_arch *a)
{
    head top;
    FT_TRY(read_class(r, &top));
    switch (a->design) {
    case FT_DECODER_ONLY:
    case FT_STATE_SPACE:
    case FT_ENCODER_DECODER:
    case FT_SPEECH: return text_head(r, a, top);
    case FT_ENCODER_ONLY: return encoder_head(r, a, top);
    case FT_VIT:
    case FT_RESNET:
    case FT_CONVNEXT:
        if (top != HEAD_NONE && !(top == HEAD_USUAL && a->backbone)) return labels(r, a, false);
        a->pooler = a->design == FT_VIT && !a->backbone;
        return FT_OK;
    case FT_SOUND: return text_head(r, a, top);
    case FT_CLIP:
    case FT_DIFFUSION:
    case FT_JOINT:
    case FT_VIDEO:
    case FT_UNET:
    case FT_AUTOENCODER:
    case FT_CUSTOM:
    case FT_DESIGN_COUNT: break;
    }
    return FT_OK;
}
