/* words.c: what sizes mean that the file leaves free, and which sizes it fixes.
 *
 * A free size has a word ("batch_size", "sequence_length") or stands where everybody puts that size. Batch and length
 * come from the request. Of images whose sides are free, 224 pixels are the usual; any other free size is taken as 1;
 * both are said in a warning. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "import/onnx/graph.h"

enum { LONGEST_WORD = 128, USUAL_SIDE = 224, MOST_WORDS = 256 };

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(word, *list)) return true;
    return false;
}

/* By its word alone. False: it says nothing. */
static bool by_word(const char *word, ft_onnx_meaning *meaning, int64_t *size)
{
    static const char *const batches[] = {"n", "b", "bs", "bsz", "nb", NULL}, *const lengths[] = {"s", "l", "t", NULL},
                             *const sides[] = {"h", "w", NULL};
    char low[LONGEST_WORD];
    size_t i = 0;
    for (; word[i] && i + 1 < sizeof low; i++) low[i] = (char)tolower((unsigned char)word[i]);
    low[i] = 0;
    *size = 0;
    if (strstr(low, "batch") || is_one_of(low, batches)) {
        *meaning = FT_ONNX_BATCH;
    } else if (strstr(low, "past") || strstr(low, "cache")) {
        *meaning = FT_ONNX_PAST;
    } else if (strstr(low, "seq") || strstr(low, "length") || strstr(low, "token") || is_one_of(low, lengths)) {
        *meaning = FT_ONNX_SEQ;
    } else if (strstr(low, "height") || strstr(low, "width") || strstr(low, "image_size") || is_one_of(low, sides)) {
        *meaning = FT_ONNX_CONSTANT;
        *size = USUAL_SIDE;
    } else if (strstr(low, "channel")) {
        *meaning = FT_ONNX_CONSTANT;
        *size = 3;
    } else {
        return false;
    }
    return true;
}

/* By where it stands: batches come first, lengths second in texts and in what is [batch, length, features]. */
static bool by_place(const ft_onnx_value *v, int axis, ft_onnx_meaning *meaning, int64_t *size)
{
    bool floats = ft__onnx_type_floats(v->type);
    *size = 0;
    if (axis == 0) {
        *meaning = FT_ONNX_BATCH;
    } else if (axis == 1 && ((!floats && v->dims == 2) || (floats && v->dims == 3))) {
        *meaning = FT_ONNX_SEQ;
    } else if (axis >= 2 && v->dims == 4 && floats) {
        *meaning = FT_ONNX_CONSTANT;
        *size = USUAL_SIDE;
    } else {
        return false;
    }
    return true;
}

static const ft_onnx_word *known_word(const ft_onnx *o, const char *word)
{
    for (int32_t i = 0; i < o->word_count; i++)
        if (!strcmp(o->words[i].word, word)) return &o->words[i];
    return NULL;
}

static ft_status keep(ft_onnx *o, ft_onnx_word word, ft_error *err)
{
    if (!o->words) o->words = ft__arena_array(o->arena, MOST_WORDS, sizeof *o->words);
    if (!o->words) return ft__no_memory(err);
    if (o->word_count == MOST_WORDS)
        return ft__fail(err, FT_E_RANGE, "more than %d sizes of its inputs are free", MOST_WORDS);
    o->words[o->word_count++] = word;
    return FT_OK;
}

/* "past_sequence_length + sequence_length": the sum of its words; resolved where it is used. */
static bool is_sum(const char *word) { return strchr(word, '+') != NULL; }

static ft_status settle(ft_onnx *o, ft_onnx_value *v, int axis, ft_error *err)
{
    char name[LONGEST_WORD];
    ft_onnx_size *s = &v->size[axis];
    ft_onnx_word found = {0};
    if (s->word && (is_sum(s->word) || known_word(o, s->word))) return FT_OK;
    if (!s->word) {
        snprintf(name, sizeof name, "axis %d of %.*s", axis + 1, (int)ft__utf8_cut(v->name, 80), v->name);
        s->word = ft__arena_copy(o->arena, name, strlen(name));
        if (!s->word) return ft__no_memory(err);
        if (!by_place(v, axis, &found.meaning, &found.size)) found = (ft_onnx_word){.meaning = FT_ONNX_CONSTANT};
    } else if (!by_word(s->word, &found.meaning, &found.size) && !by_place(v, axis, &found.meaning, &found.size)) {
        found = (ft_onnx_word){.meaning = FT_ONNX_CONSTANT};
    }
    found.word = s->word;
    bool guessed = found.meaning == FT_ONNX_CONSTANT;
    if (guessed && !found.size) found.size = 1;
    if (guessed && o->word_count < 8)
        FT_TRY(ft__onnx_warn(
            o, err,
            "the size \"%.*s\" of input \"%.*s\" is free: taken as %lld; fix it in the file to have it "
            "otherwise",
            (int)ft__utf8_cut(s->word, 60), s->word, (int)ft__utf8_cut(v->name, 60), v->name, (long long)found.size));
    return keep(o, found, err);
}

ft_status ft__onnx_words(ft_onnx *o, ft_arch *arch, ft_error *err)
{
    bool batch = false, seq = false;
    for (int32_t i = 0; i < o->input_count; i++) {
        ft_onnx_value *v = &o->values[o->inputs[i]];
        for (int axis = 0; axis < v->dims; axis++)
            if (v->size[axis].fixed < 0) FT_TRY(settle(o, v, axis, err));
    }
    for (int32_t i = 0; i < o->word_count; i++) {
        batch |= o->words[i].meaning == FT_ONNX_BATCH;
        seq |= o->words[i].meaning == FT_ONNX_SEQ;
    }
    arch->fixed_batch = arch->fixed_seq = 0;
    for (int32_t i = 0; i < o->input_count; i++) {
        const ft_onnx_value *v = &o->values[o->inputs[i]];
        bool text = v->dims == 2 && !ft__onnx_type_floats(v->type);
        if (!batch && !arch->fixed_batch && v->dims > 0 && v->size[0].fixed > 0) arch->fixed_batch = v->size[0].fixed;
        if (!seq && !arch->fixed_seq && text && v->size[1].fixed > 0) arch->fixed_seq = v->size[1].fixed;
    }
    if (!batch && !arch->fixed_batch) arch->fixed_batch = 1; /* nothing comes in, or scalars */
    arch->samples = !seq && !arch->fixed_seq;
    return FT_OK;
}
