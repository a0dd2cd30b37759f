/* traits.c: the fields of ft_arch by name, and setting one from a value of an architecture file. */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "import/config/architecture.h"

static const char *const designs[] = {"decoder", "encoder",  "encoder_decoder", "speech",    "vit",   "clip",
                                      "resnet",  "convnext", "state_space",     "diffusion", "sound", "joint",
                                      "video",   "unet",     "autoencoder",     NULL};
static const char *const norms[] = {"layernorm", "layernorm_bare", "layernorm_fp32", "layernorm_1p",
                                    "rmsnorm",   "rmsnorm_wide",   "rmsnorm_bare",   NULL};
static const char *const places[] = {"before", "post", "sandwich", "after", NULL};
static const char *const positions[] = {"none", "learned", "rotary", "alibi", "relative", "sinusoidal", NULL};
static const char *const qk_norms[] = {"none", "head", "bare", "own", "full", NULL};
static const char *const routings[] = {"plain", "best_first", "corrected", "mixer", NULL};
static const char *const deltas[] = {"joint", "apart", "channel", NULL};
static const char *const attn_gates[] = {"none", "in_queries", "wide", "head", "low_rank", NULL};
const char *const ft__mixer_words[] = {"attention", "latent", "compressed", "delta",     "mamba2", "mamba",
                                       "lightning", "conv",   "both",       "recurrent", "shared", "rwkv",
                                       "mlstm",     "near",   "hashed",     "none",      NULL};
const char *const ft__feed_words[] = {"dense", "experts", "both", "beside", "none", NULL};
#define mixers ft__mixer_words

static const ft_model_trait traits[] = {
#define FT_TRAIT(kind, field) {#field, FT_KEY_##kind, offsetof(ft_arch, field), NULL},
#define FT_WORD_TRAIT(words, field) {#field, FT_KEY_FLAG, offsetof(ft_arch, field), words},
#include "import/config/traits.h"
};
enum { TRAIT_COUNT = sizeof traits / sizeof *traits };
static const double most_real = 1e15; /* some are numbers of parameters */

const ft_model_trait *ft__model_trait_find(const char *name)
{
    for (size_t i = 0; i < TRAIT_COUNT; i++)
        if (!strcmp(name, traits[i].name)) return &traits[i];
    return NULL;
}

static ft_status expected(const ft_model_trait *trait, const char *what, const char *file, ft_error *err)
{
    return ft__fail_at(err, FT_E_TYPE, file, 0, 0, "trait \"%s\" must be %s", trait->name, what);
}

static ft_status set_word(const ft_model_trait *trait, const json_t *value, void *field, const char *file,
                          ft_error *err)
{
    const char *word = json_string_value(value);
    size_t count = 0;
    if (!word) return expected(trait, "a word", file, err);
    for (; trait->words[count]; count++) {
        if (strcmp(word, trait->words[count]) != 0) continue;
        memcpy(field, &(int){(int)count}, sizeof(int)); /* enums are ints here; the table's words follow their order */
        return FT_OK;
    }
    const char *nearest = ft__nearest(word, trait->words, count);
    return ft__fail_at(err, FT_E_NAME, file, 0, 0, "trait \"%s\" has no value \"%.*s\"; did you mean \"%s\"?",
                       trait->name, (int)ft__utf8_cut(word, 40), word, nearest ? nearest : trait->words[0]);
}

static ft_status set_sizes(const ft_model_trait *trait, const json_t *value, int64_t *field, const char *file,
                           ft_error *err)
{
    size_t count = json_array_size(value);
    if (count < 1 || count > FT_MAX_STAGES) return expected(trait, "a list of 1 to 8 sizes", file, err);
    for (size_t i = 0; i < FT_MAX_STAGES; i++) {
        const json_t *each = json_array_get(value, i);
        if (each && (!json_is_integer(each) || json_integer_value(each) < 1 || json_integer_value(each) > 1 << 20))
            return expected(trait, "a list of sizes from 1 to 2^20", file, err);
        field[i] = each ? json_integer_value(each) : 0;
    }
    return FT_OK;
}

ft_status ft__model_trait_set(const ft_model_trait *trait, const json_t *value, void *arch, const char *file,
                              ft_error *err)
{
    void *field = (char *)arch + trait->offset;
    if (trait->words) return set_word(trait, value, field, file, err);
    ft_reading r = {.where = file, .err = err};
    switch (trait->kind) {
    case FT_KEY_LAYERS:
    case FT_KEY_SIZE:
    case FT_KEY_MAYBE:
    case FT_KEY_FOLLOWS:
        if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > (1LL << 31))
            return expected(trait, "a whole number from 0 to 2^31", file, err);
        *(int64_t *)field = json_integer_value(value);
        return FT_OK;
    case FT_KEY_FLAG:
        if (!json_is_boolean(value)) return expected(trait, "true or false", file, err);
        *(bool *)field = json_is_true(value);
        return FT_OK;
    case FT_KEY_SHARE:
    case FT_KEY_REAL:
        if (!json_is_number(value) || json_number_value(value) < 0 || json_number_value(value) > most_real)
            return expected(trait, "a number from 0 to 1e15", file, err);
        *(double *)field = json_number_value(value);
        return FT_OK;
    case FT_KEY_SIZES: return set_sizes(trait, value, field, file, err);
    case FT_KEY_ACTIVATION:
        if (!json_is_string(value)) return expected(trait, "the name of an activation", file, err);
        return ft__config_activation(&r, trait->name, json_string_value(value), field);
    }
    return FT_OK;
}
