/* wire.c: from a mapped file to the few bytes of it that matter.
 *
 * Weights are most of an ONNX file. protobuf's wire format says how long each field is before the field comes, so that
 * they can be stepped over: of a file of 10 GB some hundred KiB of names, shapes and attributes are read. The table
 * below says for each message which fields are taken, entered, or taken only while they are short. Nothing recurses
 * without end: subgraphs, the only thing that could, are replaced by an empty field that says they were there.
 *
 * Lengths of entered messages are written as five-byte varints, which the format allows, and filled in afterwards. */
#include "import/onnx/wire.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FIELD = 26, LENGTH_BYTES = 5, LONGEST_TEXT = 4096 };
static const size_t most_kept = (size_t)256 << 20; /* of names and attributes: a hundred thousand nodes take 20 MiB */

typedef enum message {
    MODEL,
    GRAPH,
    FUNCTION,
    NODE,
    ATTRIBUTE,
    TENSOR,
    SPARSE,
    VALUE,
    TYPE,
    TENSOR_TYPE,
    SHAPE,
    DIMENSION,
    OPSET,
    MESSAGES
} message;
typedef enum way {
    DROP,
    TAKE,  /* numbers, and text that is not absurdly long */
    SHORT, /* contents of a tensor: while they are short */
    MARK,  /* an empty field in its place */
    ENTER  /* + the message inside */
} way;

#define IN(inside) (ENTER + (inside))
static const uint8_t ways[MESSAGES][MOST_FIELD] = {
    [MODEL] = {[1] = TAKE, [2] = TAKE, [7] = IN(GRAPH), [8] = IN(OPSET), [25] = IN(FUNCTION)},
    [GRAPH] = {[1] = IN(NODE),
               [2] = TAKE,
               [5] = IN(TENSOR),
               [11] = IN(VALUE),
               [12] = IN(VALUE),
               [13] = IN(VALUE),
               [15] = IN(SPARSE)},
    [FUNCTION] = {[1] = TAKE,
                  [4] = TAKE,
                  [5] = TAKE,
                  [6] = TAKE,
                  [7] = IN(NODE),
                  [10] = TAKE,
                  [11] = IN(ATTRIBUTE),
                  [13] = TAKE},
    [NODE] = {[1] = TAKE, [2] = TAKE, [3] = TAKE, [4] = TAKE, [5] = IN(ATTRIBUTE), [7] = TAKE, [8] = TAKE},
    [ATTRIBUTE] = {[1] = TAKE,
                   [2] = TAKE,
                   [3] = TAKE,
                   [4] = SHORT,
                   [5] = IN(TENSOR),
                   [6] = MARK,
                   [7] = SHORT,
                   [8] = SHORT,
                   [9] = SHORT,
                   [11] = MARK,
                   [20] = TAKE,
                   [21] = TAKE,
                   [22] = IN(SPARSE)},
    [TENSOR] = {[1] = TAKE,
                [2] = TAKE,
                [4] = SHORT,
                [5] = SHORT,
                [7] = SHORT,
                [8] = TAKE,
                [9] = SHORT,
                [10] = SHORT,
                [11] = SHORT},
    [SPARSE] = {[1] = IN(TENSOR), [3] = TAKE},
    [VALUE] = {[1] = TAKE, [2] = IN(TYPE)},
    [TYPE] = {[1] = IN(TENSOR_TYPE), [4] = MARK, [5] = MARK, [7] = MARK, [8] = MARK, [9] = MARK},
    [TENSOR_TYPE] = {[1] = TAKE, [2] = IN(SHAPE)},
    [SHAPE] = {[1] = IN(DIMENSION)},
    [DIMENSION] = {[1] = TAKE, [2] = TAKE},
    [OPSET] = {[1] = TAKE, [2] = TAKE},
};
#undef IN

typedef struct trimmer {
    const uint8_t *file;
    uint8_t *out;
    size_t length, room;
    ft_error *err;
} trimmer;

static ft_status broken(const trimmer *t, const uint8_t *at, const char *what)
{
    return ft__fail(t->err, FT_E_FORMAT, "not an ONNX file, or a damaged one: %s at byte %zu", what,
                    (size_t)(at - t->file));
}

static ft_status put(trimmer *t, const void *bytes, size_t count)
{
    if (count > most_kept || t->length + count > most_kept)
        return ft__fail(t->err, FT_E_RANGE, "its graph takes more than %zu MiB without the weights", most_kept >> 20);
    if (t->length + count > t->room) {
        size_t room = t->room ? 2 * t->room : (size_t)64 << 10;
        while (room < t->length + count) room *= 2;
        uint8_t *wider = realloc(t->out, room);
        if (!wider) return ft__no_memory(t->err);
        t->out = wider;
        t->room = room;
    }
    if (count) memcpy(t->out + t->length, bytes, count);
    t->length += count;
    return FT_OK;
}

/* NULL when there is none before `end`, or one of more than 64 bits. */
static const uint8_t *varint(const uint8_t *at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 70 && at < end; shift += 7, at++) {
        *out |= shift < 64 ? (uint64_t)(*at & 0x7F) << shift : 0;
        if (!(*at & 0x80)) return at + 1;
    }
    return NULL;
}

static ft_status put_length(trimmer *t, size_t at, size_t value)
{
    for (int i = 0; i < LENGTH_BYTES; i++, value >>= 7)
        t->out[at + (size_t)i] = (uint8_t)((value & 0x7F) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    return FT_OK;
}

/* Where a field ends: NULL when it does not, or is of a kind that the format has no more. */
static const uint8_t *field_end(unsigned kind, const uint8_t *at, const uint8_t *end, const uint8_t **body)
{
    uint64_t value;
    *body = at;
    switch (kind) {
    case 0: return varint(at, end, &value);
    case 1: return end - at >= 8 ? at + 8 : NULL;
    case 5: return end - at >= 4 ? at + 4 : NULL;
    case 2:
        at = varint(at, end, &value);
        *body = at;
        return at && value <= (uint64_t)(end - at) ? at + value : NULL;
    default: return NULL;
    }
}

static ft_status trim(trimmer *t, message inside, const uint8_t *at, const uint8_t *end)
{
    size_t loose = 0; /* elements of contents that came one by one */
    while (at < end) {
        const uint8_t *start = at, *after_key, *body;
        uint64_t key;
        at = varint(at, end, &key);
        if (!at) return broken(t, start, "a field without a number");
        after_key = at;
        uint64_t number = key >> 3;
        unsigned kind = (unsigned)(key & 7);
        const uint8_t *next = field_end(kind, at, end, &body);
        if (!number || number > 536870911) return broken(t, start, "a field of no possible number");
        if (!next) return broken(t, start, "a field that runs past the end of its message");
        at = next;
        unsigned how = number < MOST_FIELD ? ways[inside][number] : (unsigned)DROP;
        size_t size = (size_t)(next - body);
        if (how == DROP) continue;
        if (how == SHORT && (kind == 2 ? size > FT_ONNX_KEPT : ++loose > FT_ONNX_KEPT / 4)) continue;
        if (how == TAKE && kind == 2 && size > LONGEST_TEXT)
            return broken(t, start, "a name or a shape of more than 4096 bytes");
        if (how == TAKE || how == SHORT) {
            FT_TRY(put(t, start, (size_t)(next - start)));
            continue;
        }
        if (kind != 2) return broken(t, start, "a number where a message must be");
        static const uint8_t empty[LENGTH_BYTES] = {0};
        FT_TRY(put(t, start, (size_t)(after_key - start)));
        size_t length_at = t->length;
        FT_TRY(put(t, empty, how == MARK ? 1 : LENGTH_BYTES));
        if (how == MARK) continue;
        FT_TRY(trim(t, (message)(how - ENTER), body, next));
        FT_TRY(put_length(t, length_at, t->length - length_at - LENGTH_BYTES));
    }
    return FT_OK;
}

ft_status ft__onnx_trim(const uint8_t *file, size_t length, ft_arena *arena, const uint8_t **out, size_t *out_length,
                        ft_error *err)
{
    trimmer t = {.file = file, .err = err};
    ft_status status = trim(&t, MODEL, file, file + length);
    uint8_t *copy = status == FT_OK ? ft__arena_alloc(arena, t.length + 1) : NULL;
    if (copy && t.length) memcpy(copy, t.out, t.length);
    free(t.out);
    if (status != FT_OK) return status;
    if (!copy) return ft__no_memory(err);
    *out = copy;
    *out_length = t.length;
    return FT_OK;
}
