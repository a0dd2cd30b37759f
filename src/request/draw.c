/* draw.c: reading requests for pictures. What a picture of figures is made of comes from other programs' pages: every
 * list is bounded, and a colour is one of a few words, so that nothing of the request becomes markup. */
#include "request/draw.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "request/keys.h"
#include "request/tasks.h"

enum { WHERE = 96 };

/* A list under `key`, NULL where there is none; `count` is its length. */
static ft_status list_of(const json_t *object, const char *key, const char *where, size_t most, const json_t **out,
                         size_t *count, ft_error *err)
{
    const json_t *list = json_object_get(object, key);
    char path[WHERE + 32];
    *out = list;
    *count = list ? json_array_size(list) : 0;
    if (!list) return FT_OK;
    snprintf(path, sizeof path, "%s.%s", where, key);
    if (!json_is_array(list)) return ft__fail_at(err, FT_E_TYPE, path, 0, 0, "\"%s\" must be a list", key);
    if (*count <= most) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, path, 0, 0, "\"%s\" has %zu elements; %zu at most", key, *count, most);
}

/* Numbers as many as `wanted`, or, where that is 0, as there are. NULL where the key is missing. */
static ft_status numbers_of(const json_t *object, const char *key, const char *where, ft_arena *arena, size_t *wanted,
                            const double **out, ft_error *err)
{
    const json_t *list;
    size_t count, i;
    *out = NULL;
    FT_TRY(list_of(object, key, where, FT_DRAWN_POINTS, &list, &count, err));
    if (!list) return FT_OK;
    char path[WHERE + 32];
    snprintf(path, sizeof path, "%s.%s", where, key);
    if (*wanted && count != *wanted)
        return ft__fail_at(err, FT_E_RANGE, path, 0, 0, "\"%s\" has %zu numbers; \"x\" has %zu", key, count, *wanted);
    double *at = ft__arena_array(arena, count + 1, sizeof *at);
    const json_t *each;
    if (!at) return ft__no_memory(err);
    json_array_foreach (list, i, each) {
        if (!json_is_number(each))
            return ft__fail_at(err, FT_E_TYPE, path, 0, 0, "\"%s\" must be a list of numbers; element %zu is not one",
                               key, i + 1);
        at[i] = json_number_value(each);
        if (!isfinite(at[i]))
            return ft__fail_at(err, FT_E_RANGE, path, 0, 0, "element %zu of \"%s\" is out of range", i + 1, key);
    }
    *wanted = count;
    *out = at;
    return FT_OK;
}

static ft_status rings_of(const json_t *object, const char *where, ft_arena *arena, size_t wanted, const bool **out,
                          ft_error *err)
{
    const json_t *list, *each;
    size_t count, i;
    FT_TRY(list_of(object, "hollow", where, FT_DRAWN_POINTS, &list, &count, err));
    if (!list) return FT_OK;
    bool *at = ft__arena_array(arena, count + 1, sizeof *at);
    if (!at) return ft__no_memory(err);
    json_array_foreach (list, i, each) at[i] = json_is_true(each);
    *out = at;
    if (count == wanted) return FT_OK;
    return ft__fail_at(err, FT_E_RANGE, where, 0, 0, "\"hollow\" has %zu elements; \"x\" has %zu", count, wanted);
}

static ft_status read_curve(const json_t *object, const char *where, ft_arena *arena, ft_drawn_curve *out,
                            ft_error *err)
{
    static const char *const known[] = {"name", "x", "y", "low", "high", "hollow", "dots", "line", "steps", "thin"};
    *out = (ft_drawn_curve){.name = "", .line = true};
    if (!json_is_object(object)) return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "a curve must be an object");
    FT_TRY(ft__json_known_keys(object, known, sizeof known / sizeof *known, where, err));
    FT_TRY(ft__json_string(object, FT_KEY(DRAWN_NAME), FT_OPTIONAL, &out->name, where, err));
    FT_TRY(numbers_of(object, "x", where, arena, &out->count, &out->x, err));
    FT_TRY(numbers_of(object, "y", where, arena, &out->count, &out->y, err));
    if (!out->x || !out->y || !out->count)
        return ft__fail_at(err, FT_E_MISSING, where, 0, 0, "a curve needs \"x\" and \"y\", lists of numbers");
    FT_TRY(numbers_of(object, "low", where, arena, &out->count, &out->low, err));
    FT_TRY(numbers_of(object, "high", where, arena, &out->count, &out->high, err));
    FT_TRY(rings_of(object, where, arena, out->count, &out->hollow, err));
    FT_TRY(ft__json_bool(object, "dots", FT_OPTIONAL, &out->dots, where, err));
    FT_TRY(ft__json_bool(object, "line", FT_OPTIONAL, &out->line, where, err));
    FT_TRY(ft__json_bool(object, "steps", FT_OPTIONAL, &out->steps, where, err));
    return ft__json_bool(object, "thin", FT_OPTIONAL, &out->thin, where, err);
}

static ft_status read_row(const json_t *object, const char *where, ft_drawn_row *out, ft_error *err)
{
    static const char *const known[] = {"name", "value", "text", "look"};
    int look = FT_LOOK_COUNT;
    *out = (ft_drawn_row){.name = "", .text = ""};
    if (!json_is_object(object)) return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "a row must be an object");
    FT_TRY(ft__json_known_keys(object, known, sizeof known / sizeof *known, where, err));
    FT_TRY(ft__json_string(object, FT_KEY(DRAWN_NAME), FT_OPTIONAL, &out->name, where, err));
    FT_TRY(ft__json_string(object, "text", FT_OPTIONAL, &out->text, where, err));
    FT_TRY(ft__json_number(object, "value", FT_REQUIRED, 0, 1e300, &out->value, where, err));
    FT_TRY(ft__request_word_in(object, where, "look", ft__look_words, FT_LOOK_COUNT, &look, err));
    out->look = look < FT_LOOK_COUNT ? ft__look_words[look] : "f0";
    return FT_OK;
}

static ft_status read_figures(const json_t *object, const char *where, ft_arena *arena, ft_drawn_picture *out,
                              ft_error *err)
{
    const json_t *curves, *rows;
    char path[WHERE];
    FT_TRY(list_of(object, "curves", where, FT_DRAWN_CURVES, &curves, &out->curve_count, err));
    FT_TRY(list_of(object, "rows", where, FT_DRAWN_ROWS, &rows, &out->row_count, err));
    out->curves = ft__arena_array(arena, out->curve_count + 1, sizeof *out->curves);
    out->rows = ft__arena_array(arena, out->row_count + 1, sizeof *out->rows);
    if (!out->curves || !out->rows) return ft__no_memory(err);
    for (size_t i = 0; i < out->curve_count; i++) {
        snprintf(path, sizeof path, "%.48s.curves[%zu]", where, i);
        FT_TRY(read_curve(json_array_get(curves, i), path, arena, &out->curves[i], err));
    }
    for (size_t i = 0; i < out->row_count; i++) {
        snprintf(path, sizeof path, "%.48s.rows[%zu]", where, i);
        FT_TRY(read_row(json_array_get(rows, i), path, &out->rows[i], err));
    }
    bool curves_lack = out->what == FT_DRAWN_AS_CURVES && !out->curve_count;
    if (!curves_lack && !(out->what == FT_DRAWN_AS_BARS && !out->row_count)) return FT_OK;
    return ft__fail_at(err, FT_E_MISSING, where, 0, 0, "\"%s\" is missing: the figures that are drawn",
                       curves_lack ? "curves" : "rows");
}

static ft_status read_window(const ft_said *said, const char *where, double out[2], ft_error *err)
{
    const json_t *pair = said->at[FT_KEY_ID_DRAWN_WINDOW].json;
    if (!pair) return FT_OK;
    for (size_t i = 0; i < 2; i++) out[i] = json_number_value(json_array_get(pair, i));
    bool fine = json_is_array(pair) && json_array_size(pair) == 2 && json_is_number(json_array_get(pair, 0)) &&
                json_is_number(json_array_get(pair, 1)) && out[0] >= 0 && out[1] > out[0];
    return fine ? FT_OK
                : ft__fail_at(err, FT_E_TYPE, where, 0, 0, "\"window_ms\" must be two numbers, [from, to] in ms");
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    if (!length || length > 40 || !isalpha((unsigned char)name[0])) return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-') return false;
    return true;
}

static ft_status read_picture(const json_t *object, const char *where, ft_arena *arena, ft_drawn_picture *out,
                              ft_error *err)
{
    static const ft_section section = FT_SECTION_PICTURE;
    ft_said said;
    if (!json_is_object(object)) return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "a picture must be an object");
    FT_TRY(ft__keys_known_at(object, &section, 1, where, err));
    ft__said_init(&said);
    FT_TRY(ft__said_read_at(object, section, where, &said, err));
    if (!ft__given(&said, FT_KEY_ID_DRAWN))
        return ft__fail_at(err, FT_E_MISSING, where, 0, 0, "\"what\" is missing: what is drawn");
    *out = (ft_drawn_picture){.what = (ft_drawn)ft__word_of(&said, FT_KEY_ID_DRAWN),
                              .name = said.at[FT_KEY_ID_DRAWN_NAME].text,
                              .title = said.at[FT_KEY_ID_DRAWN_TITLE].text,
                              .x = ft__given(&said, FT_KEY_ID_DRAWN_X) ? said.at[FT_KEY_ID_DRAWN_X].text : "",
                              .y = ft__given(&said, FT_KEY_ID_DRAWN_Y) ? said.at[FT_KEY_ID_DRAWN_Y].text : "",
                              .width = (double)ft__whole_of(&said, FT_KEY_ID_DRAWN_WIDTH),
                              .height = (double)ft__whole_of(&said, FT_KEY_ID_DRAWN_HEIGHT),
                              .embed = ft__switch_of(&said, FT_KEY_ID_DRAWN_EMBED),
                              .plain = ft__switch_of(&said, FT_KEY_ID_DRAWN_PLAIN),
                              .log_x = ft__switch_of(&said, FT_KEY_ID_DRAWN_LOG_X),
                              .log_y = ft__switch_of(&said, FT_KEY_ID_DRAWN_LOG_Y),
                              .zero = ft__switch_of(&said, FT_KEY_ID_DRAWN_ZERO),
                              .has_at = ft__given(&said, FT_KEY_ID_DRAWN_AT),
                              .at = ft__real_of(&said, FT_KEY_ID_DRAWN_AT),
                              .limit = ft__real_of(&said, FT_KEY_ID_DRAWN_LIMIT),
                              .limit_name = said.at[FT_KEY_ID_DRAWN_LIMIT_NAME].text,
                              .rings = said.at[FT_KEY_ID_DRAWN_RINGS].text,
                              .whole = ft__real_of(&said, FT_KEY_ID_DRAWN_WHOLE)};
    if (out->name && !is_name(out->name))
        return ft__fail_at(err, FT_E_RANGE, where, 0, 0,
                           "\"name\" must be a letter and up to 39 letters, digits and hyphens");
    FT_TRY(read_window(&said, where, out->window_ms, err));
    return read_figures(object, where, arena, out, err);
}

/* Pictures of a step need a step; of kernels there is one, of an engine under load its own. */
static ft_status check_what(const ft_draw_request *r, const ft_drawn_picture *p, const char *where, ft_error *err)
{
    bool figures = p->what == FT_DRAWN_AS_CURVES || p->what == FT_DRAWN_AS_BARS;
    const char *word = ft__drawn_words[p->what];
    if (figures) return FT_OK;
    if (!r->of)
        return ft__fail_at(err, FT_E_MISSING, where, 0, 0, "\"%s\" needs \"of\": the request that is drawn", word);
    bool served = p->what >= FT_DRAWN_AS_WAITS && p->what <= FT_DRAWN_AS_CACHE;
    if (served != (r->ask == FT_ASK_SERVE))
        return ft__fail_at(err, FT_E_UNSUPPORTED, where, 0, 0,
                           served ? "\"%s\" can be drawn of \"serve\" alone"
                                  : "of \"serve\", \"waits\", \"tokens\", \"queue\" and \"cache\" can be drawn, not "
                                    "\"%s\"",
                           word);
    if (r->ask == FT_ASK_KERNEL && p->what != FT_DRAWN_AS_ROOFLINE)
        return ft__fail_at(err, FT_E_UNSUPPORTED, where, 0, 0, "of a kernel, a \"roofline\" can be drawn, not a \"%s\"",
                           word);
    if (r->ask == FT_ASK_MEMORY && p->what != FT_DRAWN_AS_MEMORY && p->what != FT_DRAWN_AS_PEAK)
        return ft__fail_at(err, FT_E_UNSUPPORTED, where, 0, 0,
                           "\"memory\" has no times: \"memory\" and \"peak\" can be drawn, not \"%s\"", word);
    return FT_OK;
}

ft_status ft__draw_request_read(const json_t *object, ft_arena *arena, ft_draw_request *out, ft_error *err)
{
    *out = (ft_draw_request){.of = ft__key_get(object, FT_KEY_ID_DRAW_OF)};
    const json_t *list;
    bool step = false;
    ft_said said;
    FT_TRY(ft__task_keys_known(object, FT_ASK_DRAW, err));
    ft__said_init(&said);
    FT_TRY(ft__said_read(object, FT_SECTION_DRAW, &said, err));
    out->answer = ft__switch_of(&said, FT_KEY_ID_DRAW_ANSWER);
    FT_TRY(list_of(object, "pictures", "", FT_DRAWN_MOST, &list, &out->count, err));
    if (!out->count)
        return ft__fail_at(err, FT_E_MISSING, "pictures", 0, 0,
                           "\"pictures\" is missing: a list of what is drawn, [{\"what\": \"timeline\"}]");
    if (out->of) {
        FT_TRY(ft__request_task(out->of, &out->ask, err));
        step = out->ask == FT_ASK_TRAIN || out->ask == FT_ASK_FORWARD || out->ask == FT_ASK_PREFILL ||
               out->ask == FT_ASK_DECODE || out->ask == FT_ASK_MEMORY;
        if (!step && out->ask != FT_ASK_KERNEL && out->ask != FT_ASK_SERVE)
            return ft__fail_at(err, FT_E_UNSUPPORTED, "of", 0, 0,
                               "\"%s\" cannot be drawn; train, forward, prefill, decode, memory, kernel and serve can",
                               ft__ask_words[out->ask]);
    }
    if (out->answer && !step)
        return ft__fail_at(err, FT_E_UNSUPPORTED, "answer", 0, 0,
                           "\"answer\" is that of a step: train, forward, prefill, decode or memory");
    out->pictures = ft__arena_array(arena, out->count, sizeof *out->pictures);
    if (!out->pictures) return ft__no_memory(err);
    for (size_t i = 0; i < out->count; i++) {
        char where[WHERE];
        snprintf(where, sizeof where, "pictures[%zu]", i);
        FT_TRY(read_picture(json_array_get(list, i), where, arena, &out->pictures[i], err));
        FT_TRY(check_what(out, &out->pictures[i], where, err));
    }
    return FT_OK;
}
