/* host_file.c: hosts by name, by file and by object.
 *
 * A host file has one object per group of figures; beside the figures stand "what", "source" and "date", which are
 * asked of the files in data/hosts (scripts/embed_hosts.py) and of nobody else's. Nobody measures all of them: what a
 * file leaves out is its base's, times "slowdown" where it takes the host's time and not the driver's or the GPU's. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "kernel/host.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct figure {
    const char *group, *key;
    size_t offset;
    double low, high;
    bool slows; /* with the host */
} figure;

#define US(group, key)                                                      \
    {                                                                       \
#group, #key "_us", offsetof(ft_host, group.key##_us), 0, 1e7, true \
    }
static const figure figures[] = {
    US(python, module),
    US(python, loop),
    US(python, walk),
    US(compiled, launch),
    US(compiled, wait),
    US(pass_eager, forward),
    US(pass_eager, backward),
    US(pass_eager, update),
    US(pass_compiled, forward),
    US(pass_compiled, backward),
    US(pass_compiled, update),
    US(pass_graph, forward),
    US(pass_graph, backward),
    US(pass_graph, update),
    US(checkpoints, forward),
    US(checkpoints, again),
    US(checkpoints, reentrant_forward),
    US(checkpoints, reentrant_again),
    US(checkpoints, policy),
    US(wrappers, fsdp_forward),
    US(wrappers, fsdp_backward),
    US(wrappers, fsdp_update),
    US(wrappers, ddp_backward),
    US(wrappers, module_forward),
    US(wrappers, module_again),
    US(wrappers, module_backward),
    US(wrappers, module_update),
    US(lists, call),
    US(lists, gather),
    US(lists, scatter),
    US(lists, copy),
    US(lists, spread),
    US(update, fused),
    US(update, foreach),
    US(update, clip),
    US(update, zero),
    US(update, foreach_call),
    US(update, clip_call),
    US(attention_plan, new_shape),
    {"launches", "latency_us", offsetof(ft_host, launches.latency_us), 0, 1e4, false},
    {"launches", "gap_us", offsetof(ft_host, launches.gap_us), 0, 1e4, false},
    {"launches", "replay_gap_us", offsetof(ft_host, launches.replay_gap_us), 0, 1e4, false},
    {"launches", "queue", offsetof(ft_host, launches.queue), 1, 1e6, false},
    {"one_figure", "operator_us", offsetof(ft_host, one_figure.operator_us), 1e-3, 1e7, true},
    {"one_figure", "views", offsetof(ft_host, one_figure.views), 1, 1e3, false},
    {"adapters", "share", offsetof(ft_host, adapters.share), 0.1, 10, false},
    {"interval", "share", offsetof(ft_host, interval.share), 0, 10, false},
};
static const figure of_operator[] = {
    {"", "forward_us", offsetof(ft_host_operator, forward_us), 0, 1e7, true},
    {"", "recorded_us", offsetof(ft_host_operator, recorded_us), 0, 1e7, true},
    {"", "backward_us", offsetof(ft_host_operator, backward_us), 0, 1e7, true},
};
#undef US

static const char *const words[] = {"what", "source", "date"};

static double *at(void *host, const figure *f) { return (double *)(void *)((char *)host + f->offset); }

static void slow_down(ft_host *host, double times)
{
    for (size_t i = 0; i < COUNT(figures); i++)
        if (figures[i].slows) *at(host, &figures[i]) *= times;
    for (int verb = 0; verb < FT_VERB_COUNT; verb++)
        for (size_t i = 0; i < COUNT(of_operator); i++) *at(&host->operators[verb], &of_operator[i]) *= times;
}

/* -- reading ----------------------------------------------------------------------------------- */

typedef char place[300];

static const char *within(place out, const char *where, const char *key)
{
    size_t n = strlen(where);
    bool file = n > 5 && !strcmp(where + n - 5, ".json");
    snprintf(out, sizeof(place), "%.200s%s%.80s", where, file ? ": " : n ? "." : "", key);
    return out;
}

static ft_status need_object(const json_t *value, const char *where, ft_error *err)
{
    if (json_is_object(value)) return FT_OK;
    return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "must be an object of figures");
}

/* The figures of `group` among `list`, into `out`; other keys are refused. */
static ft_status read_figures(const json_t *object, const char *group, const figure *list, size_t count,
                              const char *where, void *out, ft_error *err)
{
    const char *known[COUNT(words) + 8];
    size_t n = 0;
    FT_TRY(need_object(object, where, err));
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].group, group)) known[n++] = list[i].key;
    for (size_t i = 0; i < COUNT(words); i++) known[n++] = words[i];
    FT_TRY(ft__json_known_keys(object, known, n, where, err));
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].group, group))
            FT_TRY(ft__json_number(object, list[i].key, FT_OPTIONAL, list[i].low, list[i].high, at(out, &list[i]),
                                   where, err));
    return FT_OK;
}

static ft_status read_operators(const json_t *object, const char *where, ft_host *out, ft_error *err)
{
    const char *known[FT_VERB_COUNT + COUNT(words)];
    size_t n = 0;
    FT_TRY(need_object(object, where, err));
    for (int verb = 0; verb < FT_VERB_COUNT; verb++) known[n++] = ft__verb_name((ft_verb)verb);
    for (size_t i = 0; i < COUNT(words); i++) known[n++] = words[i];
    FT_TRY(ft__json_known_keys(object, known, n, where, err));
    for (int verb = 0; verb < FT_VERB_COUNT; verb++) {
        const json_t *costs = json_object_get(object, known[verb]);
        place there;
        if (costs)
            FT_TRY(read_figures(costs, "", of_operator, COUNT(of_operator), within(there, where, known[verb]),
                                &out->operators[verb], err));
    }
    return FT_OK;
}

static ft_status check_keys(const json_t *object, const char *where, ft_error *err)
{
    static const char *const own[] = {"name",     "title", "usual",  "beside", "lines",    "machine",  "machines",
                                      "software", "date",  "source", "base",   "slowdown", "operators"};
    const char *known[COUNT(own) + COUNT(figures)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(own); i++) known[n++] = own[i];
    for (size_t i = 0; i < COUNT(figures); i++)
        if (!i || strcmp(figures[i].group, figures[i - 1].group) != 0) known[n++] = figures[i].group;
    return ft__json_known_keys(object, known, n, where, err);
}

const ft_host *ft__host_find(const char *name)
{
    for (size_t i = 0; i < ft__host_count; i++)
        if (!strcmp(ft__hosts[i].name, name)) return &ft__hosts[i];
    return NULL;
}

static ft_status unknown(const char *name, const char *where, ft_error *err)
{
    const char *names[64] = {NULL};
    char list[160] = "";
    size_t n = 0, length = 0;
    for (; n < ft__host_count && n < COUNT(names); n++) names[n] = ft__hosts[n].name;
    const char *near = ft__nearest(name, names, n);
    if (near)
        return ft__fail_at(err, FT_E_NAME, where, 0, 0, "unknown host \"%.60s\"; did you mean \"%s\"?", name, near);
    for (size_t i = 0; i < n && length < sizeof list; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", names[i]);
    return ft__fail_at(err, FT_E_NAME, where, 0, 0,
                       "unknown host \"%.60s\"; known are %s; a file's name ends in .json or has a / in it", name,
                       list);
}

ft_status ft__host_read(const json_t *object, const char *where, ft_host *out, ft_error *err)
{
    const char *name = NULL, *base = NULL, *beside = NULL, *lines = NULL;
    double slowdown = 1;
    place there;
    if (!json_is_object(object))
        return ft__fail_at(err, FT_E_TYPE, where, 0, 0, "a host is an object: {\"slowdown\": 2}");
    FT_TRY(check_keys(object, where, err));
    FT_TRY(ft__json_string(object, "name", FT_OPTIONAL, &name, where, err));
    FT_TRY(ft__json_string(object, "base", FT_OPTIONAL, &base, where, err));
    FT_TRY(ft__json_string(object, "beside", FT_OPTIONAL, &beside, where, err));
    FT_TRY(ft__json_string(object, "lines", FT_OPTIONAL, &lines, where, err));
    FT_TRY(ft__json_number(object, "slowdown", FT_OPTIONAL, 1e-3, 1e3, &slowdown, where, err));
    const ft_host *from = base ? ft__host_find(base) : ft__host_usual();
    if (!from) return unknown(base, within(there, where, "base"), err);
    *out = *from;
    if (slowdown != 1) slow_down(out, slowdown);
    memset(out->name, 0, sizeof out->name);
    memset(out->beside, 0, sizeof out->beside);
    memset(out->lines, 0, sizeof out->lines);
    if (beside) memcpy(out->beside, beside, ft__utf8_cut(beside, sizeof out->beside - 1));
    if (lines) memcpy(out->lines, lines, ft__utf8_cut(lines, sizeof out->lines - 1));
    if (name)
        memcpy(out->name, name, ft__utf8_cut(name, sizeof out->name - 1));
    else
        snprintf(out->name, sizeof out->name, "%.38s_custom", from->name);
    const json_t *operators = json_object_get(object, "operators");
    if (operators) FT_TRY(read_operators(operators, within(there, where, "operators"), out, err));
    for (size_t i = 0; i < COUNT(figures); i++) {
        const json_t *group = json_object_get(object, figures[i].group);
        if (group && (!i || strcmp(figures[i].group, figures[i - 1].group) != 0))
            FT_TRY(read_figures(group, figures[i].group, figures, COUNT(figures),
                                within(there, where, figures[i].group), out, err));
    }
    return FT_OK;
}

ft_status ft__host_open(const char *name_or_path, ft_host *out, ft_error *err)
{
    size_t length = strlen(name_or_path);
    if (!strchr(name_or_path, '/') && (length < 6 || strcmp(name_or_path + length - 5, ".json") != 0)) {
        const ft_host *known = ft__host_find(name_or_path);
        if (!known) return unknown(name_or_path, "host", err);
        *out = *known;
        return FT_OK;
    }
    json_t *json = NULL;
    FT_TRY(ft__json_load(name_or_path, &json, err));
    ft_status status = ft__host_read(json, name_or_path, out, err);
    json_decref(json);
    return status;
}
