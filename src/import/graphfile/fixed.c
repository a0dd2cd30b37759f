/* fixed.c: which sizes a graph file fixes, and which it takes from the request.
 *
 * A file whose sizes are numbers all through holds one batch of one length, whatever a request says: its rates count
 * what is in it, and another batch cannot be had of it. Where the file does not say how many that is ("batch",
 * "seq"), the first axis of its first input is the batch, and the second axis of tokens (whole numbers in two axes)
 * their length, as everybody writes them. Without tokens there is no length: rates count samples. */
#include <string.h>

#include "base/json.h"
#include "import/graphfile/graphfile.h"
#include "model/picture_size.h"

enum { LARGEST_EDGE = 65536 };
static const int64_t LARGEST = (int64_t)1 << 40; /* as of any size of the file */

typedef struct words {
    bool batch, seq;
} words;

/* The words of a formula. What is no formula is not looked at further: its reader refuses it. */
static void look_at_formula(const char *s, words *out)
{
    while (s && *s) {
        size_t n = strcspn(s, "*/+-");
        if (n == 5 && !strncmp(s, "batch", n)) out->batch = true;
        if (n == 3 && !strncmp(s, "seq", n)) out->seq = true;
        s += n + (s[n] != 0);
    }
}

static void look_at_size(const json_t *value, words *out)
{
    look_at_formula(json_string_value(value), out);
    for (size_t i = 0; i < json_array_size(value); i++)
        look_at_formula(json_string_value(json_array_get(value, i)), out);
}

/* Names of tensors and modules may be any text, "batch" too. */
static bool holds_names(const char *key)
{
    static const char *const keys[] = {"op", "name", "in", "out", "module", "like"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i])) return true;
    return false;
}

static words words_of(const json_t *inputs, const json_t *blocks)
{
    words found = {0};
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)inputs, key, value) {
        look_at_size(json_object_get(value, "shape"), &found);
    }
    for (size_t b = 0; b < json_array_size(blocks); b++) {
        const json_t *block = json_array_get(blocks, b), *nodes = json_object_get(block, "nodes");
        look_at_size(json_object_get(block, "repeat"), &found);
        for (size_t n = 0; n < json_array_size(nodes) && !(found.batch && found.seq); n++)
            json_object_foreach (json_array_get(nodes, n), key, value) {
                if (!holds_names(key)) look_at_size(value, &found);
            }
    }
    return found;
}

static int64_t axis_of(const json_t *input, size_t axis)
{
    json_int_t size = json_integer_value(json_array_get(json_object_get(input, "shape"), axis));
    return size > 0 ? size : 0;
}

static bool is_text(const json_t *input)
{
    const char *type = json_string_value(json_object_get(input, "dtype"));
    return type && (!strncmp(type, "int", 3) || !strncmp(type, "uint", 4)) &&
           json_array_size(json_object_get(input, "shape")) == 2;
}

/* "tokens": what the length counts, of a file that was exported over an image's or a video's tokens. */
static ft_status read_tokens(const json_t *file, const char *where, ft_arch *out, ft_error *err)
{
    static const char *const keys[] = {"pixels", "span", "row", "height", "width", "frames"};
    const json_t *said = json_object_get(file, "tokens");
    if (!said) return FT_OK;
    if (!json_is_object(said))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0,
                           "\"tokens\" of a graph file must be an object: pixels, height, width and what else it has");
    FT_TRY(ft__json_known_keys(said, keys, sizeof keys / sizeof *keys, where, err));
    FT_TRY(ft__json_whole(said, "pixels", FT_REQUIRED, 1, LARGEST_EDGE, &out->token_pixels, where, err));
    FT_TRY(ft__json_whole(said, "height", FT_REQUIRED, 1, LARGEST_EDGE, &out->usual_height, where, err));
    FT_TRY(ft__json_whole(said, "width", FT_REQUIRED, 1, LARGEST_EDGE, &out->usual_width, where, err));
    FT_TRY(ft__json_whole(said, "span", FT_OPTIONAL, 1, LARGEST_EDGE, &out->token_span, where, err));
    FT_TRY(ft__json_whole(said, "row", FT_OPTIONAL, 1, LARGEST_EDGE, &out->token_row, where, err));
    FT_TRY(ft__json_whole(said, "frames", FT_OPTIONAL, 1, LARGEST_EDGE, &out->usual_frames, where, err));
    return ft__token_size_settle(out, (ft_picture_size){0}, err);
}

ft_status ft__graphfile_sizes(const json_t *file, const char *where, ft_arch *out, ft_error *err)
{
    const json_t *inputs = json_object_get(file, "inputs");
    words used = words_of(inputs, json_object_get(file, "blocks"));
    int64_t batch = 0, seq = 0;
    FT_TRY(ft__json_whole(file, "batch", FT_OPTIONAL, 1, LARGEST, &batch, where, err));
    FT_TRY(ft__json_whole(file, "seq", FT_OPTIONAL, 1, LARGEST, &seq, where, err));
    out->usual_batch = batch;
    out->usual_seq = seq;
    const char *name;
    json_t *input;
    json_object_foreach ((json_t *)(uintptr_t)inputs, name, input) {
        if (!batch) batch = axis_of(input, 0);
        if (!seq && is_text(input)) seq = axis_of(input, 1);
    }
    out->fixed_batch = used.batch ? 0 : batch > 0 ? batch : 1; /* 1: nothing comes in, or nothing of a shape */
    out->fixed_seq = used.seq ? 0 : seq;
    out->samples = !used.seq && !seq;
    return read_tokens(file, where, out, err);
}
