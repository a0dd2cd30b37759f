/* schema.c: requests and answers as JSON Schema (draft 2020-12).
 *
 * Requests are what the table of keys says, row by row; of answers there is a list of their keys in
 * data/schema/answers.json, whose definitions the build puts into the library. What a schema cannot say (keys that
 * exclude each other, names of the catalogues, files) is the reader's to refuse, so that a request may be valid here
 * and still not be answered.
 */
#include "report/json/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/json_write.h"
#include "request/tasks.h"
#include "request/words.h"

/* -- one key ----------------------------------------------------------------------------------- */

static void add_type(ft_text *out, const char *type) { ft__json_member_text(out, "type", type); }

static void add_limits(ft_text *out, const ft_key_row *k)
{
    if (!(k->low < k->high)) return;
    ft__json_member_number(out, "minimum", k->low, 15);
    ft__json_member_number(out, "maximum", k->high, 15);
}

static void add_words(ft_text *out, const char *const *words, size_t count)
{
    ft__json_member_list(out, "enum");
    for (size_t i = 0; i < count; i++) ft__json_add_text(out, words[i]);
    ft__json_close_list(out);
}

static void add_number(ft_text *out, const ft_key_row *k, const char *type)
{
    ft__json_open(out);
    add_type(out, type);
    add_limits(out, k);
    ft__json_close(out);
}

static void add_word(ft_text *out, const char *const *words, size_t count)
{
    ft__json_open(out);
    add_words(out, words, count);
    ft__json_close(out);
}

static void add_plain(ft_text *out, const char *type)
{
    ft__json_open(out);
    add_type(out, type);
    ft__json_close(out);
}

static void add_reference(ft_text *out, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "#/$defs/%s", name);
    ft__json_open(out);
    ft__json_member_text(out, "$ref", path);
    ft__json_close(out);
}

/* One of `alone`, or a list of such: `add` writes the one. */
typedef void (*add_one)(ft_text *out, const ft_key_row *k);

static void one_whole(ft_text *out, const ft_key_row *k) { add_number(out, k, "integer"); }
static void one_word(ft_text *out, const ft_key_row *k) { add_word(out, k->words, k->word_count); }
static void one_text(ft_text *out, const ft_key_row *k)
{
    (void)k;
    add_plain(out, "string");
}
/* A name, a path or an object. */
static void one_named(ft_text *out, const ft_key_row *k)
{
    (void)k;
    ft__json_open(out);
    ft__json_member_list(out, "type");
    ft__json_add_text(out, "string");
    ft__json_add_text(out, "object");
    ft__json_close_list(out);
    ft__json_close(out);
}

static void add_list(ft_text *out, const ft_key_row *k, add_one add)
{
    ft__json_open(out);
    add_type(out, "array");
    ft__json_key(out, "items");
    add(out, k);
    ft__json_close(out);
}

static void add_either(ft_text *out, const ft_key_row *k, add_one add, bool automatic)
{
    static const char *const words[] = {"auto"};
    ft__json_member_list(out, "anyOf");
    if (automatic) add_word(out, words, 1);
    add(out, k);
    add_list(out, k, add);
    ft__json_close_list(out);
}

/* The section that is an object's own; FT_SECTION_COUNT: none. */
static ft_section section_inside(const ft_key_row *k)
{
    if (k->section == FT_SECTION_DISAGGREGATED) return FT_SECTION_SIDE;
    for (int s = 0; s < FT_SECTION_COUNT; s++)
        if (!strcmp(ft__section_name((ft_section)s), k->key)) return (ft_section)s;
    return FT_SECTION_COUNT;
}

static const char *object_name(ft_section section, char room[48])
{
    snprintf(room, 48, "request.%s", ft__section_title(section));
    return room;
}

/* Of a list of objects with keys of their own. */
static void one_object(ft_text *out, const ft_key_row *k)
{
    ft_section inside = section_inside(k);
    char name[48];
    if (inside < FT_SECTION_COUNT)
        add_reference(out, object_name(inside, name));
    else
        one_named(out, k);
}

static void add_section(ft_text *out, const ft_key_row *k)
{
    ft_section inside = section_inside(k);
    ft__json_member_list(out, "anyOf");
    char name[48];
    if (inside < FT_SECTION_COUNT)
        add_reference(out, object_name(inside, name));
    else
        add_plain(out, "object");
    if (k->flag || inside == FT_SECTION_CLUSTER) add_plain(out, "string"); /* as it is typed; a file */
    ft__json_close_list(out);
}

/* Numbers that words may stand for. */
static void add_counted(ft_text *out, const ft_key_row *k)
{
    ft__json_member_list(out, "anyOf");
    one_whole(out, k);
    one_word(out, k);
    ft__json_close_list(out);
}

static void add_pair(ft_text *out, const ft_key_row *k)
{
    ft__json_member_list(out, "anyOf");
    ft__json_open(out);
    add_type(out, "array");
    ft__json_key(out, "items");
    add_number(out, k, "number");
    ft__json_member_whole(out, "minItems", 2);
    ft__json_member_whole(out, "maxItems", 2);
    ft__json_close(out);
    add_plain(out, "string");
    ft__json_close_list(out);
}

static void add_extent(ft_text *out, const ft_key_row *k)
{
    ft__json_member_list(out, "anyOf");
    one_whole(out, k);
    ft__json_open(out);
    add_type(out, "array");
    ft__json_key(out, "items");
    one_whole(out, k);
    ft__json_member_whole(out, "minItems", 2);
    ft__json_member_whole(out, "maxItems", 2);
    ft__json_close(out);
    add_plain(out, "string");
    ft__json_close_list(out);
}

static void add_value(ft_text *out, const ft_key_row *k)
{
    switch (k->type) {
    case FT_KEY_WHOLE:
        if (k->word_count) {
            add_counted(out, k);
            return;
        }
        add_type(out, "integer");
        add_limits(out, k);
        return;
    case FT_KEY_REAL:
    case FT_KEY_SHARE:
        add_type(out, "number");
        add_limits(out, k);
        return;
    case FT_KEY_SWITCH: add_type(out, "boolean"); return;
    case FT_KEY_WORD: add_words(out, k->words, k->word_count); return;
    case FT_KEY_NAMES:
        add_type(out, "array");
        ft__json_key(out, "items");
        one_word(out, k);
        return;
    case FT_KEY_TEXT: add_type(out, "string"); return;
    case FT_KEY_DTYPE: add_type(out, "string"); return; /* ours, and what others call them */
    case FT_KEY_WHOLES: add_either(out, k, one_whole, false); return;
    case FT_KEY_TRIED: add_either(out, k, one_whole, true); return;
    case FT_KEY_TRIED_WORDS: add_either(out, k, one_word, true); return;
    case FT_KEY_PAIR: add_pair(out, k); return;
    case FT_KEY_EXTENT: add_extent(out, k); return;
    case FT_KEY_TEXTS: add_either(out, k, one_text, false); return;
    case FT_KEY_OBJECTS:
        add_type(out, "array");
        ft__json_key(out, "items");
        one_object(out, k);
        return;
    case FT_KEY_GPU:
    case FT_KEY_GPUS: add_either(out, k, one_named, false); return;
    case FT_KEY_NAMED:
        ft__json_member_list(out, "type");
        ft__json_add_text(out, "string");
        ft__json_add_text(out, "object");
        ft__json_close_list(out);
        return;
    case FT_KEY_SECTION: add_section(out, k); return;
    case FT_KEY_ANY:
    case FT_KEY_TYPE_COUNT: return;
    }
}

static void add_default(ft_text *out, const ft_key_row *k)
{
    char room[32];
    const char *text = ft__key_standard(k, room);
    if (!*text) return;
    if (k->type == FT_KEY_WORD || k->type == FT_KEY_DTYPE)
        ft__json_member_text(out, "default", text);
    else
        ft__json_member_written(out, "default", text);
}

static void add_key(ft_text *out, const ft_key_row *k)
{
    ft__json_key(out, k->key);
    ft__json_open(out);
    if (k->docs || k->help) ft__json_member_text(out, "description", k->docs ? k->docs : k->help);
    add_value(out, k);
    add_default(out, k);
    ft__json_close(out);
}

/* -- objects and requests ---------------------------------------------------------------------- */

static void add_object(ft_text *out, ft_section section)
{
    char name[48];
    ft__json_key(out, object_name(section, name));
    ft__json_open(out);
    add_type(out, "object");
    ft__json_member_open(out, "properties");
    for (int i = 0; i < FT_KEY_COUNT; i++)
        if (ft__keys[i].section == section) add_key(out, &ft__keys[i]);
    ft__json_close(out);
    ft__json_member_flag(out, "additionalProperties", false);
    ft__json_close(out);
}

static void add_needed(ft_text *out, const char *words)
{
    ft__json_member_list(out, "required");
    ft__json_add_text(out, "task");
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ') {
        char key[32];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(at, " "), at);
        ft__json_add_text(out, key);
    }
    ft__json_close_list(out);
}

/* Keys of the task's sections, each once: of two rows of one name the later one's. */
static void add_request(ft_text *out, ft_ask task)
{
    const ft_task_row *t = &ft__tasks[task];
    char name[48];
    snprintf(name, sizeof name, "request.%s", ft__ask_words[task]);
    ft__json_key(out, name);
    ft__json_open(out);
    add_type(out, "object");
    ft__json_member_open(out, "properties");
    for (int i = 0; i < FT_KEY_COUNT; i++) {
        const ft_key_row *k = &ft__keys[i];
        if (ft__task_key(task, k->key) != (ft_key_id)i) continue;
        if (i == FT_KEY_ID_TASK) {
            ft__json_key(out, "task");
            add_word(out, &ft__ask_words[task], 1);
        } else {
            add_key(out, k);
        }
    }
    ft__json_close(out);
    add_needed(out, t->needed);
    ft__json_member_flag(out, "additionalProperties", t->open);
    ft__json_close(out);
}

static bool is_wanted(ft_ask wanted, ft_ask task) { return wanted == FT_ASK_COUNT || wanted == task; }

static const char *answer_of(ft_ask task)
{
    bool step = task == FT_ASK_TRAIN || task == FT_ASK_FORWARD || task == FT_ASK_PREFILL || task == FT_ASK_DECODE ||
                task == FT_ASK_MEMORY;
    return step ? "step" : ft__ask_words[task];
}

/* Of tasks that share an answer each has its name. */
static void add_answers(ft_text *out, ft_ask wanted)
{
    for (int t = 0; t < FT_ASK_COUNT; t++) {
        char name[48], of[48];
        snprintf(name, sizeof name, "answer.%s", ft__ask_words[t]);
        snprintf(of, sizeof of, "answer.%s", answer_of((ft_ask)t));
        if (!is_wanted(wanted, (ft_ask)t) || !strcmp(name, of)) continue;
        ft__json_key(out, name);
        add_reference(out, of);
    }
}

ft_status ft__schema(ft_text *out, const char *task, ft_error *err)
{
    int word = FT_ASK_COUNT;
    if (task) FT_TRY(ft__request_word_said(task, "task", "task", ft__ask_words, FT_ASK_COUNT, &word, err));
    ft_ask wanted = (ft_ask)word;
    ft__json_open(out);
    ft__json_member_text(out, "$schema", "https://json-schema.org/draft/2020-12/schema");
    ft__json_member_text(out, "title", "Requests and answers of Foretell");
    ft__json_member_list(out, "oneOf");
    for (int t = 0; t < FT_ASK_COUNT; t++) {
        char name[48];
        snprintf(name, sizeof name, "request.%s", ft__ask_words[t]);
        if (is_wanted(wanted, (ft_ask)t)) add_reference(out, name);
    }
    ft__json_close_list(out);
    ft__json_member_open(out, "$defs");
    for (int t = 0; t < FT_ASK_COUNT; t++)
        if (is_wanted(wanted, (ft_ask)t)) add_request(out, (ft_ask)t);
    for (int s = 0; s < FT_SECTION_COUNT; s++)
        if (*ft__section_name((ft_section)s)) add_object(out, (ft_section)s);
    add_answers(out, wanted);
    ft__json_rest(out, ft__answer_definitions[0]);
    for (size_t i = 1; ft__answer_definitions[i]; i++) ft__text_add(out, ft__answer_definitions[i]);
    ft__json_close(out);
    return FT_OK;
}
