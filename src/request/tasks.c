/* tasks.c: which keys each task has, and what is said of others. */
#include "request/tasks.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "comm/cluster.h"
#include "request/foreign.h"
#include "request/parallel.h"
#include "request/words.h"

#define MODEL_TASK                                                       \
    {                                                                    \
        {FT_SECTION_COMMON, FT_SECTION_MODEL}, 2, "", "model gpu", false \
    }
#define STUDY(section, refused, needed)                                                        \
    {                                                                                          \
        {FT_SECTION_COMMON, FT_SECTION_MODEL, FT_SECTION_##section}, 3, refused, needed, false \
    }
#define CATALOGUE(section)                                                      \
    {                                                                           \
        {FT_SECTION_COMMON, FT_SECTION_##section}, 2, "gpu quantile", "", false \
    }

/* Of serving what a plan finds by itself. */
#define SERVED "replicas disaggregated find concurrency trace per_request turns"

/* Of training what a plan cannot lay out. */
#define APART                                                                                                    \
    "rollout_gpus rollout_async rollout_age rollout_updates rollout_pack rollout_pack_logprobs rollout_offload " \
    "rollout_refit"

const ft_task_row ft__tasks[FT_ASK_COUNT] = {
    [FT_ASK_TRAIN] = MODEL_TASK,
    [FT_ASK_FORWARD] = MODEL_TASK,
    [FT_ASK_PREFILL] = MODEL_TASK,
    [FT_ASK_DECODE] = MODEL_TASK,
    [FT_ASK_MEMORY] = MODEL_TASK,
    [FT_ASK_SERVE] = STUDY(SERVE, "", "model gpu"),
    /* Which sizes an operator has is said in fields.c. */
    [FT_ASK_KERNEL] = {{FT_SECTION_COMMON, FT_SECTION_KERNEL, FT_SECTION_OPERATOR}, 3, "", "op gpu", false},
    [FT_ASK_COLLECTIVE] = {{FT_SECTION_COMMON, FT_SECTION_COLLECTIVE}, 2, "", "op gpu bytes ranks", false},
    [FT_ASK_TRACE] = {{FT_SECTION_COMMON, FT_SECTION_TRACE}, 2, "", "file", false},
    [FT_ASK_MODELS] = CATALOGUE(MODELS),
    [FT_ASK_GPUS] = CATALOGUE(GPUS),
    [FT_ASK_COMPARE] = CATALOGUE(COMPARE),
    [FT_ASK_DRAW] = CATALOGUE(DRAW),
    [FT_ASK_INFER] = STUDY(INFER, "", "model gpu"),
    [FT_ASK_LARGEST] = STUDY(LARGEST, "model parallel", "gpu"),
    [FT_ASK_SCALE] = STUDY(SCALE, "", "model gpu"),
    [FT_ASK_PLAN] = STUDY(PLAN, APART, "model gpu gpus global_batch"),
    [FT_ASK_CHOOSE] = {{FT_SECTION_COMMON, FT_SECTION_MODEL, FT_SECTION_PLAN, FT_SECTION_CHOOSE},
                       4,
                       "top emit exhaustive by_gpus " APART,
                       "model tokens",
                       false},
    [FT_ASK_PLAN_SERVE] = {{FT_SECTION_COMMON, FT_SECTION_MODEL, FT_SECTION_SERVE, FT_SECTION_PLAN},
                           4,
                           SERVED " framework allow objective constraints by_gpus global_batch batch recompute",
                           "model gpu",
                           false},
    [FT_ASK_CHOOSE_SERVE] = {{FT_SECTION_COMMON, FT_SECTION_MODEL, FT_SECTION_SERVE, FT_SECTION_CHOOSE},
                             4,
                             SERVED " tokens global_batch failures",
                             "model",
                             false},
    [FT_ASK_SWEEP] = {{FT_SECTION_COMMON, FT_SECTION_SWEEP}, 2, "", "gpu", true},
};

bool ft__among(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && !strncmp(at, word, length)) return true;
    return false;
}

ft_key_id ft__task_key(ft_ask task, const char *key)
{
    const ft_task_row *t = &ft__tasks[task];
    ft_key_id found = FT_KEY_COUNT;
    if (ft__among(t->refused, key)) return found;
    for (size_t s = 0; s < t->count; s++) {
        ft_key_id id = ft__key_find(t->sections[s], key);
        if (id != FT_KEY_COUNT) found = id;
    }
    return found;
}

/* `"serve", "infer"`: other tasks that have a key; a request without a task is one of training. */
static bool find_other_tasks(const char *key, ft_ask task, char *out, size_t room)
{
    enum { NAMED = 3 };
    size_t at = 0, named = 0;
    for (int t = 0; t < FT_ASK_COUNT && named < NAMED; t++) {
        if (t == (int)task || ft__task_key((ft_ask)t, key) == FT_KEY_COUNT || at >= room) continue;
        at += (size_t)snprintf(out + at, room - at, "%s\"%s\"", named ? ", " : "", ft__ask_words[t]);
        named++;
    }
    return named > 0;
}

/* Degrees and networks beside the model's own keys are the commonest slip: on the command line they do stand there. */
static ft_status explain(const json_t *object, ft_ask task, ft_status status, ft_error *err)
{
    json_t *readable = (json_t *)(uintptr_t)object; /* Jansson's iterators change nothing */
    int unknown = 0; /* nobody slips so often: a line of 16 MiB would be compared for a minute */
    for (void *it = json_object_iter(readable); it && unknown < FT_MOST_UNKNOWN;
         it = json_object_iter_next(readable, it)) {
        const char *key = json_object_iter_key(it);
        if (ft__task_key(task, key) != FT_KEY_COUNT) continue;
        unknown++;
        const char *layout = ft__parallel_key(key), *why = ft__foreign_unasked(key);
        int shown = (int)ft__utf8_cut(key, 100);
        if (ft__among(ft__tasks[task].refused, key))
            return ft__fail_at(err, FT_E_KEY, key, 0, 0, "\"%s\" has no place in a request of the task \"%s\"", key,
                               ft__ask_words[task]);
        if (layout)
            return ft__fail_at(err, FT_E_KEY, key, 0, 0, "unknown key \"%.*s\"; it is \"parallel\": {\"%s\": ...}",
                               shown, key, layout);
        ft_key_id meant = ft__foreign_key(key);
        if (meant < FT_KEY_COUNT && ft__task_key(task, ft__keys[meant].key) != FT_KEY_COUNT)
            return ft__fail_at(err, FT_E_KEY, key, 0, 0, "unknown key \"%.*s\"; here it is \"%s\"", shown, key,
                               ft__keys[meant].key);
        if (why) return ft__fail_at(err, FT_E_KEY, key, 0, 0, "unknown key \"%.*s\"; %s", shown, key, why);
        if (ft__cluster_key(key))
            return ft__fail_at(err, FT_E_KEY, key, 0, 0, "unknown key \"%.*s\"; it is \"cluster\": {\"%s\": ...}",
                               shown, key, key);
        char others[160];
        if (find_other_tasks(key, task, others, sizeof others))
            return ft__fail_at(err, FT_E_KEY, key, 0, 0, "unknown key \"%.*s\" of the task \"%s\"; it is a key of %s",
                               shown, key, ft__ask_words[task], others);
    }
    return status;
}

static bool all_known(const json_t *object, ft_ask task)
{
    json_t *readable = (json_t *)(uintptr_t)object;
    for (void *it = json_object_iter(readable); it; it = json_object_iter_next(readable, it))
        if (ft__task_key(task, json_object_iter_key(it)) == FT_KEY_COUNT) return false;
    return json_is_object(object);
}

/* The list of all that could be meant is made for an error alone. */
ft_status ft__task_keys_known(const json_t *object, ft_ask task, ft_error *err)
{
    if (all_known(object, task)) return FT_OK;
    const ft_task_row *t = &ft__tasks[task];
    const char *known[FT_KEY_COUNT];
    size_t count = 0;
    for (size_t s = 0; s < t->count; s++)
        for (int i = 0; i < FT_KEY_COUNT; i++)
            if (ft__keys[i].section == t->sections[s] && !ft__among(t->refused, ft__keys[i].key))
                known[count++] = ft__keys[i].key;
    ft_status status = t->open ? FT_OK : ft__json_known_keys(object, known, count, "", err);
    return status == FT_E_KEY && t->sections[1] == FT_SECTION_MODEL ? explain(object, task, status, err) : status;
}
