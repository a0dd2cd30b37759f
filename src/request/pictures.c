/* pictures.c: pictures beside each sequence, for models that see. */
#include "request/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { USUAL_EDGE = 1024 };

static bool in_range(int64_t height, int64_t width, ft_picture_size *out)
{
    const ft_key_row *k = &ft__keys[FT_KEY_ID_IMAGE_SIZE];
    const int64_t least = (int64_t)k->low, most = (int64_t)k->high;
    if (height < least || width < least || height > most || width > most) return false;
    out->height = height;
    out->width = width;
    return true;
}

/* "768x1024", or one number for both. */
static bool read_text(const char *text, ft_picture_size *out)
{
    char *end;
    long first = strtol(text, &end, 10), second = first;
    if (end == text) return false;
    if (*end == 'x' || *end == 'X') {
        const char *rest = end + 1;
        second = strtol(rest, &end, 10);
        if (end == rest) return false;
    }
    return !*end && in_range(first, second, out);
}

static bool read_size(const json_t *size, ft_picture_size *out)
{
    int64_t height, width;
    if (json_is_string(size)) return read_text(json_string_value(size), out);
    if (ft__json_is_whole(size, &height)) return in_range(height, height, out);
    return json_array_size(size) == 2 && ft__json_is_whole(json_array_get(size, 0), &height) &&
           ft__json_is_whole(json_array_get(size, 1), &width) && in_range(height, width, out);
}

ft_status ft__picture_size_read(const ft_said *said, ft_picture_size *out, ft_error *err)
{
    const json_t *size = said->at[FT_KEY_ID_IMAGE_SIZE].json;
    out->frames = ft__whole_of(said, FT_KEY_ID_FRAMES);
    if (!size || read_size(size, out)) return FT_OK;
    char text[64] = "this";
    const char *said_so = json_string_value(size);
    if (said_so) snprintf(text, sizeof text, "\"%.*s\"", (int)ft__utf8_cut(said_so, 40), said_so);
    if (json_is_integer(size)) snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(size));
    return ft__fail_at(err, FT_E_RANGE, "image_size", 0, 0,
                       "%s is not a height and width in pixels from 1 to %.0f, like \"768x1024\", [768, 1024] or 1024",
                       text, ft__keys[FT_KEY_ID_IMAGE_SIZE].high);
}

/* What a model reads or makes that a request has no usual word for. */
static void remark_beside(const ft_said *said, ft_model_request *out)
{
    const ft_arch *a = out->arch;
    if (a->protein.reader.layers > 0 && !ft__given(said, FT_KEY_ID_SOURCE))
        snprintf(out->remark, sizeof out->remark,
                 "a protein of %lld residues is read with each sequence; \"source_tokens\" sets how many",
                 (long long)a->protein.usual);
    if (a->actor.size.layers < 1) return;
    if (out->work.task == FT_DECODE)
        snprintf(out->remark, sizeof out->remark,
                 "a decoding step is one denoising step over %lld actions; %lld of them make an answer (\"osl\")",
                 (long long)a->actor.actions, (long long)a->actor.steps);
    else if (ft__whole_of(said, FT_KEY_ID_IMAGES) < 1)
        snprintf(out->remark, sizeof out->remark,
                 "\"images\" is 0: %s acts on what cameras see, and its tower does not run", a->model_type);
}

void ft__pictures_settle(const ft_said *said, ft_model_request *out)
{
    ft_workload *w = &out->work;
    const ft_arch *a = out->arch;
    const ft_picture_size size = out->pictures_of;
    w->image_height = w->image_width = a->tower_size > 0 ? a->tower_size : USUAL_EDGE;
    remark_beside(said, out);
    if (a->tower_layers < 1) return;
    if (size.height > 0 && a->tower_size < 1) {
        w->image_height = size.height;
        w->image_width = size.width;
    }
    w->images = ft__whole_of(said, FT_KEY_ID_IMAGES);
    if (a->tower_source) { /* words alone stand in the sequence, and there is always something to look at */
        if (w->images < 1) w->images = 1;
        return;
    }
    w->seq += w->images * ft__picture_tokens(a, w->image_height, w->image_width);
}
