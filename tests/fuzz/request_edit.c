/* request_edit.c: libFuzzer's custom mutator for requests (LLVMFuzzerCustomMutator).
 *
 * Bytes that are a JSON object become another one: a few keys are set to what the table of keys allows them, to the
 * ends of their limits and one past them, to values of another type; keys go, tasks change, a key of another task comes
 * in. One time in eight, and where the bytes are no object, libFuzzer's own mutations do their work: the JSON reader
 * and broken text stay in reach. All that decides is the seed, so a run can be repeated.
 */
#include "request_edit.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "request/tasks.h"
#include "request/words.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

bool fuzz_leads_to_a_file(const json_t *value)
{
    const char *text = json_string_value(value), *key;
    json_t *inner, *readable = (json_t *)(uintptr_t)value;
    size_t i;
    if (text) return strchr(text, '/') || strstr(text, ".json");
    json_array_foreach (value, i, inner)
        if (fuzz_leads_to_a_file(inner)) return true;
    json_object_foreach (readable, key, inner)
        if (fuzz_leads_to_a_file(inner)) return true;
    return false;
}

/* -- dice -------------------------------------------------------------------------------------- */

typedef struct dice {
    uint64_t state;
} dice;

/* 0 to sides - 1 (splitmix64). */
static uint64_t roll(dice *d, uint64_t sides)
{
    uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % sides;
}

#define ONE_OF(d, array) (array)[roll(d, sizeof(array) / sizeof *(array))]

/* -- values ------------------------------------------------------------------------------------ */

static json_t *whole(dice *d, const ft_key_row *row)
{
    int64_t low = row->low > -9e18 ? (int64_t)row->low : INT64_MIN,
            high = row->high < 9e18 ? (int64_t)row->high : INT64_MAX;
    if (row->word_count && roll(d, 4) == 0) return json_string(row->words[roll(d, row->word_count)]);
    switch (roll(d, 8)) {
    case 0: return json_integer(low);
    case 1: return json_integer(high);
    case 2: return json_integer(low > INT64_MIN ? low - 1 : low);
    case 3: return json_integer(high < INT64_MAX ? high + 1 : high);
    case 4: return json_integer((int64_t)(UINT64_C(1) << roll(d, 63)));
    default: return json_integer((int64_t)roll(d, 17));
    }
}

static json_t *real(dice *d, const ft_key_row *row)
{
    static const double some[] = {0, -0.0, 0.1, 0.5, 1, 1.5, 2, 10, 1e3, 1e-300, 5e-324, 1e18, 1e308, -1};
    switch (roll(d, 6)) {
    case 0: return json_real(isfinite(row->low) ? row->low : 0);
    case 1: return json_real(isfinite(row->high) ? row->high : 1e300);
    case 2: return json_real(isfinite(row->low) ? nextafter(row->low, -INFINITY) : 0);
    case 3: return json_real(isfinite(row->high) ? nextafter(row->high, INFINITY) : 1);
    default: return json_real(ONE_OF(d, some));
    }
}

/* One of the row's words, now and then with a letter that is not its own. */
static json_t *word(dice *d, const ft_key_row *row)
{
    char text[64];
    if (!row->word_count) return json_string("auto");
    const char *known = row->words[roll(d, row->word_count)];
    if (roll(d, 10) || strlen(known) >= sizeof text || !*known) return json_string(known);
    strcpy(text, known);
    text[roll(d, strlen(text))] = (char)('a' + roll(d, 26));
    return json_string(text);
}

static json_t *gpu(dice *d)
{
    static const char *const names[] = {"h100_sxm", "h200_sxm", "t4", "mi300x", "b200", "a100_sxm_80gb", "l4", "h100"};
    static const char *const figures[] = {"memory_gbps", "memory_gib", "sms", "boost_mhz", "tdp_w", "l2_mib"};
    json_t *name = json_string(ONE_OF(d, names));
    if (roll(d, 6)) return name;
    return json_pack("{s:o, s:I}", "base", name, ONE_OF(d, figures), (json_int_t)roll(d, 10000));
}

static json_t *named(dice *d)
{
    static const char *const names[] = {"gpt2",     "llama-3-8b",  "mixtral-8x7b", "t5-small",        "resnet-50",
                                        "vit-b-16", "pytorch",     "vllm",         "megatron",        "bert-base",
                                        "h200_vm",  "mamba2-130m", "dgx_h100",     "deepseek-v2-lite"};
    static const char *const types[] = {"llama", "gpt2", "mixtral", "qwen3", "bert", "mamba2", "t5", "nobody"};
    if (roll(d, 5)) return json_string(ONE_OF(d, names));
    return json_pack("{s:s, s:I, s:I, s:I, s:I}", "model_type", ONE_OF(d, types), "hidden_size",
                     (json_int_t)(64 << roll(d, 8)), "num_hidden_layers", (json_int_t)roll(d, 50),
                     "num_attention_heads", (json_int_t)(1 << roll(d, 7)), "vocab_size", (json_int_t)roll(d, 200000));
}

static json_t *value(dice *d, const ft_key_row *row);

static json_t *several(dice *d, const ft_key_row *row, json_t *(*one)(dice *, const ft_key_row *))
{
    json_t *list = json_array();
    for (uint64_t i = roll(d, 4); list && i-- > 0;) json_array_append_new(list, one(d, row));
    return list;
}

static json_t *text(dice *d, const ft_key_row *row)
{
    static const char *const some[] = {
        "",  "auto",  "a",  "batch=1:8:x2", "n=128:1024:128", "all-linear", "q_proj",       "Ω",
        "8", "1e999", "4%", "30d",          "\\u0000",        "aws",        "h100_sxm=2.1", "ib 400"};
    (void)row;
    return json_string(ONE_OF(d, some));
}

static json_t *gpu_row(dice *d, const ft_key_row *row)
{
    (void)row;
    return gpu(d);
}

static json_t *request_row(dice *d, const ft_key_row *row)
{
    (void)row;
    return json_pack("{s:s, s:o, s:s}", "task", ONE_OF(d, ft__ask_words), "gpu", gpu(d), "model", "gpt2");
}

static json_t *anything(dice *d)
{
    switch (roll(d, 8)) {
    case 0: return json_null();
    case 1: return json_true();
    case 2: return json_integer((int64_t)roll(d, UINT64_MAX));
    case 3: return json_real(1e-7);
    case 4: return json_array();
    case 5: return json_object();
    case 6: return json_string("auto");
    default: return json_pack("[i, s, {s:n}]", 1, "b", "c");
    }
}

static json_t *value(dice *d, const ft_key_row *row)
{
    if (roll(d, 24) == 0) return anything(d);
    switch (row->type) {
    case FT_KEY_WHOLE: return whole(d, row);
    case FT_KEY_REAL:
    case FT_KEY_SHARE: return real(d, row);
    case FT_KEY_SWITCH: return json_boolean(roll(d, 2));
    case FT_KEY_WORD: return word(d, row);
    case FT_KEY_NAMES: return several(d, row, word);
    case FT_KEY_TEXT: return text(d, row);
    case FT_KEY_DTYPE: return json_string(ft_dtype_name((ft_dtype)roll(d, FT_DTYPE_COUNT)));
    case FT_KEY_TRIED:
        if (roll(d, 4) == 0) return json_string("auto");
        return roll(d, 2) ? several(d, row, whole) : whole(d, row);
    case FT_KEY_WHOLES: return roll(d, 2) ? several(d, row, whole) : whole(d, row);
    case FT_KEY_TRIED_WORDS: return roll(d, 2) ? several(d, row, word) : word(d, row);
    case FT_KEY_PAIR: return json_pack("[o, o]", real(d, row), real(d, row));
    case FT_KEY_EXTENT:
        if (roll(d, 3) == 0) return json_pack("[o, o]", whole(d, row), whole(d, row));
        return roll(d, 2) ? whole(d, row) : text(d, row);
    case FT_KEY_TEXTS: return roll(d, 2) ? several(d, row, text) : text(d, row);
    case FT_KEY_OBJECTS: return several(d, row, request_row);
    case FT_KEY_GPU: return gpu(d);
    case FT_KEY_GPUS: return roll(d, 2) ? several(d, row, gpu_row) : gpu(d);
    case FT_KEY_NAMED: return named(d);
    case FT_KEY_SECTION: return json_object();
    case FT_KEY_ANY:
    case FT_KEY_TYPE_COUNT: break;
    }
    return anything(d);
}

/* -- edits ------------------------------------------------------------------------------------- */

/* A key that the request's task has, at its top or in an object inside it; one time in thirty any key there is. */
static ft_key_id pick(dice *d, const json_t *request)
{
    ft_ask task = FT_ASK_TRAIN;
    ft__request_task(request, &task, NULL);
    const ft_task_row *t = &ft__tasks[task];
    ft_key_id id = (ft_key_id)roll(d, FT_KEY_COUNT);
    for (int tries = 0; tries < 60 && roll(d, 30); tries++, id = (ft_key_id)roll(d, FT_KEY_COUNT)) {
        const char *inside = ft__section_name(ft__keys[id].section);
        for (size_t s = 0; s < t->count; s++)
            if (ft__keys[id].section == t->sections[s]) return id;
        if (*inside && json_is_object(json_object_get(request, inside))) return id;
    }
    return id;
}

/* The n-th member, counted through objects inside; *key lives as long as its object. */
static json_t *holder(json_t *object, uint64_t *n, const char **key)
{
    json_t *inner, *found;
    const char *name;
    json_object_foreach (object, name, inner) {
        if ((*n)-- == 0) {
            *key = name;
            return object;
        }
        if (json_is_object(inner) && (found = holder(inner, n, key))) return found;
    }
    return NULL;
}

static void edit(dice *d, json_t *request)
{
    const char *key = NULL, *other = NULL;
    uint64_t place = roll(d, 12), from = roll(d, 12);
    json_t *at = holder(request, &place, &key), *copied;
    switch (roll(d, 10)) {
    case 0:
        if (at) json_object_del(at, key);
        break;
    case 1: json_object_set_new(request, "task", json_string(ONE_OF(d, ft__ask_words))); break;
    case 2: /* a value of one key under another */
        if (at && (copied = holder(request, &from, &other)))
            json_object_set_new(at, key, json_deep_copy(json_object_get(copied, other)));
        break;
    case 3: /* a letter of a text */
        if (at && json_is_string(json_object_get(at, key))) {
            char room[256];
            size_t length = json_string_length(json_object_get(at, key));
            if (length > sizeof room / 2) break;
            memcpy(room, json_string_value(json_object_get(at, key)), length);
            length = LLVMFuzzerMutate((uint8_t *)room, length, sizeof room);
            json_object_set_new(at, key, json_stringn(room, length)); /* left as it is where that is not UTF-8 */
        }
        break;
    default: {
        ft_key_id id = pick(d, request);
        ft__key_put(request, id, value(d, &ft__keys[id]));
    }
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    dice d = {seed};
    json_t *request = NULL;
    if (roll(&d, 8) == 0 || ft__json_parse((const char *)data, size, "", &request, NULL) != FT_OK ||
        !json_is_object(request)) {
        json_decref(request);
        return LLVMFuzzerMutate(data, size, most);
    }
    for (uint64_t edits = 1 + roll(&d, 4); edits-- > 0;) edit(&d, request);
    size_t length = json_dumpb(request, (char *)data, most, JSON_COMPACT);
    json_decref(request);
    /* What does not fit was cut: bytes all the same, and rare. */
    return length == 0 ? LLVMFuzzerMutate(data, size, most) : length < most ? length : most;
}
