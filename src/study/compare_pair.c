/* compare_pair.c: two answers, and what makes the difference.
 *
 * A step is the time of its kernels (by class: products, norms, the rest), of exchanges that nothing hides, of pipeline
 * bubbles, of waiting for the host, of what runs beside the trained model, and what is left between kernels. Each is a
 * part of the difference, and the parts add up to all of it. Where two steps do different amounts of work (another
 * batch), the second is taken as often as it needs for the work of the first.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "study/compare.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

double ft__compared_figure(const json_t *answer, const char *path)
{
    char key[64];
    for (const char *dot; (dot = strchr(path, '.')); path = dot + 1) {
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        answer = json_object_get(answer, key);
    }
    return json_number_value(json_object_get(answer, path));
}

static const char *word(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* -- what an answer is of ---------------------------------------------------------------------- */

static const char *task_of(const json_t *answer, ft_compare_kind *kind)
{
    *kind = FT_COMPARE_STEP;
    if (json_object_get(answer, "ttft_ms")) return "prefill";
    if (json_object_get(answer, "tpot_ms")) return "decode";
    if (json_object_get(answer, "strong") || json_object_get(answer, "next_parameters")) return NULL;
    if (json_object_get(answer, "step_ms")) return ft__compared_figure(answer, "backward_ms") > 0 ? "train" : "forward";
    *kind = FT_COMPARE_KERNEL;
    if (json_object_get(answer, "ms")) return "kernel";
    *kind = FT_COMPARE_GRID;
    if (json_is_array(json_object_get(answer, "prefill")) || json_is_array(json_object_get(answer, "forward")))
        return "infer";
    *kind = FT_COMPARE_MEMORY;
    return json_is_object(json_object_get(answer, "memory")) ? "memory" : NULL;
}

ft_status ft__compared_of(const char *name, const json_t *answer, const json_t *request, ft_compared *out,
                          ft_error *err)
{
    const json_t *ok = json_object_get(answer, "ok");
    *out = (ft_compared){.name = name, .answer = answer, .request = request};
    if (!json_is_object(answer) || !json_is_boolean(ok))
        return ft__fail_at(err, FT_E_FORMAT, name, 0, 0,
                           "neither an answer (it has no \"ok\") nor a request (it has no \"task\")");
    if (!json_is_true(ok)) {
        const char *message = word(json_object_get(answer, "error"), "message");
        return ft__fail_at(err, FT_E_FORMAT, name, 0, 0, "an error, not an answer: %.400s",
                           *message ? message : "it does not say which");
    }
    out->task = task_of(answer, &out->kind);
    if (!out->task)
        return ft__fail_at(err, FT_E_UNSUPPORTED, name, 0, 0,
                           "cannot be compared; answers of train, forward, prefill, decode, memory, kernel and infer "
                           "can");
    const char *time = out->kind == FT_COMPARE_STEP ? "step_ms" : out->kind == FT_COMPARE_KERNEL ? "ms" : NULL;
    if (time && !(ft__compared_figure(answer, time) > 0))
        return ft__fail_at(err, FT_E_RANGE, name, 0, 0, "\"%s\" must be a number above 0", time);
    const json_t *asked = json_object_get(answer, "request");
    if (!out->request && json_is_object(asked)) out->request = asked;
    if (out->request && *word(out->request, "task")) out->task = word(out->request, "task");
    out->version = json_string_value(json_object_get(answer, "version"));
    return FT_OK;
}

ft_status ft__compare_check(const ft_compared *c, size_t count, ft_error *err)
{
    for (size_t i = 1; i < count; i++) {
        if (strcmp(c[0].task, c[i].task) != 0 || c[0].kind != c[i].kind)
            return ft__fail_at(err, FT_E_UNSUPPORTED, c[i].name, 0, 0,
                               "an answer of \"%.40s\", but %.120s is one of \"%.40s\"; only answers of the same task "
                               "can be compared",
                               c[i].task, c[0].name, c[0].task);
    }
    for (size_t i = 1; i < count; i++) {
        const char *one = c[0].version ? c[0].version : FT_VERSION, *other = c[i].version ? c[i].version : FT_VERSION;
        if (strcmp(one, other) != 0)
            return ft__fail_at(err, FT_E_FORMAT, c[i].name, 0, 0,
                               "answered by version %.40s, but %.120s by %.40s; a difference between them may be the "
                               "program's: forecast one of them again",
                               other, c[0].name, one);
    }
    return FT_OK;
}

/* -- what was asked ---------------------------------------------------------------------------- */

/* What changes the answer's form alone. */
static bool of_no_account(const char *key)
{
    static const char *const keys[] = {"id", "task", "detail", "advice", "techniques", "course", "pictures"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key)) return true;
    return false;
}

static const json_t *value_at(const json_t *request, const char *outer, const char *key)
{
    return json_object_get(outer ? json_object_get(request, outer) : request, key);
}

static size_t add_key(const ft_compared *c, size_t count, const char *outer, const char *key, ft_asked *out, size_t at)
{
    ft_asked *row = &out[at];
    bool differs = false;
    snprintf(row->key, sizeof row->key, "%.20s%s%.48s", outer ? outer : "", outer ? "." : "", key);
    for (size_t i = 0; i < at; i++)
        if (!strcmp(out[i].key, row->key)) return at;
    for (size_t i = 0; i < count; i++) {
        row->value[i] = value_at(c[i].request, outer, key);
        differs = differs || (row->value[0] != row->value[i] && !json_equal(row->value[0], row->value[i]));
    }
    return differs ? at + 1 : at;
}

size_t ft__compare_asked(const ft_compared *c, size_t count, ft_asked *out, size_t most)
{
    static const char *const inner[] = {"parallel", "cluster", "loader", "lora"};
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (!c[i].request) return 0;
    for (size_t i = 0; i < count; i++) {
        const char *key;
        json_t *value;
        json_object_foreach ((json_t *)(uintptr_t)c[i].request, key, value) {
            bool nested = false;
            for (size_t k = 0; k < COUNT(inner); k++)
                nested = nested || (!strcmp(key, inner[k]) && json_is_object(value));
            if (!nested && !of_no_account(key) && found < most) found = add_key(c, count, NULL, key, out, found);
        }
        for (size_t k = 0; k < COUNT(inner); k++) {
            json_t *object = json_object_get(c[i].request, inner[k]);
            json_object_foreach (object, key, value)
                if (found < most) found = add_key(c, count, inner[k], key, out, found);
        }
    }
    return found;
}

/* -- kernels ----------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const ft_kernel_pair *x = a, *y = b;
    int order = strcmp(x->phase, y->phase);
    if (!order) order = strcmp(x->block, y->block);
    if (!order) order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->op, y->op);
}

static int by_place(const void *a, const void *b)
{
    const ft_kernel_pair *x = a, *y = b;
    int order = by_name(a, b);
    return order ? order : x->place < y->place ? -1 : x->place > y->place;
}

static double change(const ft_kernel_pair *k) { return fabs(k->ms[1] - k->ms[0]); }

static int by_change(const void *a, const void *b)
{
    double x = change(a), y = change(b);
    return x > y ? -1 : x < y ? 1 : by_name(a, b);
}

static void take_kernels(const json_t *list, int side, double work, ft_kernel_pair *out, size_t *count)
{
    size_t i;
    json_t *k;
    json_array_foreach (list, i, k) {
        double launches = ft__compared_figure(k, "count") * work;
        ft_kernel_pair *p = &out[(*count)++];
        *p = (ft_kernel_pair){
            .name = word(k, "name"), .op = word(k, "op"), .phase = word(k, "phase"), .block = word(k, "block")};
        p->bound[0] = p->bound[1] = "";
        p->bound[side] = word(k, "bound");
        p->launches[side] = launches;
        p->ms[side] = ft__compared_figure(k, "total_ms") * work;
        p->flops[side] = ft__compared_figure(k, "flops") * launches;
        p->bytes[side] = ft__compared_figure(k, "bytes") * launches;
    }
}

static void merge(ft_kernel_pair *into, const ft_kernel_pair *k)
{
    for (int s = 0; s < 2; s++) {
        if (k->ms[s] > into->ms[s] || !*into->bound[s]) into->bound[s] = *k->bound[s] ? k->bound[s] : into->bound[s];
        into->launches[s] += k->launches[s];
        into->ms[s] += k->ms[s];
        into->flops[s] += k->flops[s];
        into->bytes[s] += k->bytes[s];
    }
}

static bool pair_kernels(const json_t *a, const json_t *b, ft_pair *out)
{
    size_t all = json_array_size(a) + json_array_size(b), count = 0, kept = 0;
    if (!json_array_size(a) || !json_array_size(b)) return true;
    ft_kernel_pair *k = calloc(all, sizeof *k);
    if (!k) return false;
    take_kernels(a, 0, 1, k, &count);
    take_kernels(b, 1, out->work, k, &count);
    for (size_t i = 0; i < count; i++) k[i].place = i;
    qsort(k, count, sizeof *k, by_place);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && by_name(&k[kept - 1], &k[i]) == 0)
            merge(&k[kept - 1], &k[i]);
        else
            k[kept++] = k[i];
    }
    for (size_t i = 0; i < kept; i++) {
        if (k[i].launches[1] <= 0) out->only_a++, out->only_a_ms += k[i].ms[0];
        if (k[i].launches[0] <= 0) out->only_b++, out->only_b_ms += k[i].ms[1];
    }
    qsort(k, kept, sizeof *k, by_change);
    out->kernels = k;
    out->kernel_count = kept;
    return true;
}

/* -- causes ------------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    const ft_cause *x = a, *y = b;
    double dx = fabs(x->b_ms - x->a_ms), dy = fabs(y->b_ms - y->a_ms);
    return dx > dy ? -1 : dx < dy ? 1 : strcmp(x->name, y->name);
}

static ft_cause *add_cause(ft_pair *p, const char *name, double a_ms, double b_ms)
{
    ft_cause *c = &p->causes[p->cause_count++];
    *c = (ft_cause){.name = name, .a_ms = a_ms, .b_ms = b_ms};
    return c;
}

static bool alike(double a, double b) { return fabs(a - b) <= 0.005 * fmax(fabs(a), fabs(b)); }

/* Products are told by the rate at which they run, or by how much more of them there is. */
static void explain_class(ft_cause *c, const char *path, const json_t *a, const json_t *b, double work)
{
    double x = ft__compared_figure(a, path), y = ft__compared_figure(b, path) * work;
    if (c->a_ms <= 0 || c->b_ms <= 0 || x <= 0 || y <= 0) return;
    if (strcmp(c->name, "contraction") != 0) {
        snprintf(c->why, sizeof c->why, "%.2f times as fast", c->a_ms / c->b_ms);
        return;
    }
    double rate_a = x / c->a_ms / 1e9, rate_b = y / c->b_ms / 1e9;
    if (!alike(x, y))
        snprintf(c->why, sizeof c->why, "%.2f times the arithmetic, at %.0f instead of %.0f TFLOP/s", y / x, rate_b,
                 rate_a);
    else
        snprintf(c->why, sizeof c->why, "the same arithmetic at %.0f instead of %.0f TFLOP/s", rate_b, rate_a);
}

static void explain_idle(ft_cause *c, const json_t *a, const json_t *b, double work)
{
    double n = ft__compared_figure(a, "launches"), m = ft__compared_figure(b, "launches") * work;
    double x = ft__compared_figure(a, "host_ms"), y = ft__compared_figure(b, "host_ms") * work;
    double busy_a = ft__compared_figure(a, "busy_ms"), busy_b = ft__compared_figure(b, "busy_ms") * work;
    if (!alike(x, y) || !alike(n, m)) {
        snprintf(c->why, sizeof c->why, "the host issues %.0f launches in %.4g ms instead of %.0f in %.4g", m, y, n, x);
    } else if (!alike(busy_a, busy_b) && busy_a > 0 && busy_b > 0) { /* what it waits for is what they do not cover */
        bool longer = busy_b > busy_a;
        snprintf(c->why, sizeof c->why, "kernels take %s and hide %s of the same %.4g ms of the host",
                 longer ? "longer" : "less", longer ? "more" : "less", y);
    }
}

static void explain_exposed(ft_cause *c, const json_t *a, const json_t *b, double work)
{
    double x = ft__compared_figure(a, "comm_ms"), y = ft__compared_figure(b, "comm_ms") * work;
    snprintf(c->why, sizeof c->why, "of %.4g ms of exchanges instead of %.4g", y, x);
}

static void explain_elementwise(ft_pair *p, ft_cause *c)
{
    if (!p->kernels || (p->only_a == 0 && p->only_b == 0)) return;
    snprintf(c->why, sizeof c->why, "%zu kernels gone (%.4g ms), %zu new (%.4g ms), of all classes", p->only_a,
             p->only_a_ms, p->only_b, p->only_b_ms);
}

/* What generates and what scores, where a trainer has it. */
static void find_beside(ft_pair *p, const json_t *a, const json_t *b)
{
    static const struct {
        const char *name, *key;
    } parts[] = {{"rollout", "rollout_ms"}, {"reference", "reference_ms"}, {"critic", "critic_ms"}};
    ft_cause beside = {.name = "beside"};
    size_t used = 0;
    for (size_t i = 0; i < COUNT(parts); i++) {
        double x = ft__compared_figure(a, parts[i].key), y = ft__compared_figure(b, parts[i].key) * p->work;
        if (!(x > 0 || y > 0)) continue;
        beside.a_ms += x, beside.b_ms += y;
        used += (size_t)snprintf(beside.why + used, sizeof beside.why - used, "%s%s %.4g instead of %.4g ms",
                                 used ? ", " : "", parts[i].name, y, x);
    }
    if (used) p->causes[p->cause_count++] = beside;
}

/* What no part has; answers have six digits, so that nothing can come out a little below nothing. */
static double left_over(double whole, const ft_pair *p, bool first)
{
    double left = whole;
    for (size_t i = 0; i < p->cause_count; i++) left -= first ? p->causes[i].a_ms : p->causes[i].b_ms;
    return left < 0 && left > -1e-5 * whole ? 0 : left;
}

static void find_causes(ft_pair *p, const json_t *a, const json_t *b)
{
    static const char *const classes[] = {"contraction", "normalisation", "elementwise"};
    double w = p->work;
    for (int i = 0; i < 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "classes.%s.ms", classes[i]);
        ft_cause *c = add_cause(p, classes[i], ft__compared_figure(a, path), ft__compared_figure(b, path) * w);
        snprintf(path, sizeof path, "classes.%s.flops", classes[i]);
        explain_class(c, path, a, b, w);
        if (i == 2) explain_elementwise(p, c);
    }
    ft_cause *bubble = add_cause(p, "bubble", ft__compared_figure(a, "bubble_ms"),
                                 ft__compared_figure(b, "bubble_ms") * w);
    snprintf(bubble->why, sizeof bubble->why, "stages of the pipeline wait for each other");
    explain_exposed(add_cause(p, "exchanges", ft__compared_figure(a, "comm_exposed_ms"),
                              ft__compared_figure(b, "comm_exposed_ms") * w),
                    a, b, w);
    explain_idle(add_cause(p, "host", ft__compared_figure(a, "idle_ms"), ft__compared_figure(b, "idle_ms") * w), a, b,
                 w);
    find_beside(p, a, b);
    add_cause(p, "between", left_over(p->a_ms, p, true), left_over(p->b_ms, p, false));
    snprintf(p->causes[p->cause_count - 1].why, sizeof p->causes[0].why, "from the end of a kernel to the next");
    qsort(p->causes, p->cause_count, sizeof *p->causes, by_size);
}

static double samples(const json_t *answer)
{
    return ft__compared_figure(answer, "samples_per_s_per_gpu") * ft__compared_figure(answer, "step_ms");
}

bool ft__compare_pair(const ft_compared *a, const ft_compared *b, ft_pair *out)
{
    bool step = a->kind == FT_COMPARE_STEP;
    const char *key = step ? "step_ms" : "ms";
    *out = (ft_pair){.work = 1};
    if (step && samples(b->answer) > 0 && samples(a->answer) > 0) {
        out->work = samples(a->answer) / samples(b->answer);
        if (alike(out->work, 1)) out->work = 1; /* answers have six digits */
    }
    double w = out->work;
    out->a_ms = ft__compared_figure(a->answer, key);
    out->b_ms = ft__compared_figure(b->answer, key) * w;
    out->change_ms = out->b_ms - out->a_ms;
    out->apart = ft__compared_figure(a->answer, "low_ms") > ft__compared_figure(b->answer, "high_ms") * w ||
                 ft__compared_figure(a->answer, "high_ms") < ft__compared_figure(b->answer, "low_ms") * w;
    if (!step) return true;
    if (!pair_kernels(json_object_get(a->answer, "kernels"), json_object_get(b->answer, "kernels"), out)) return false;
    find_causes(out, a->answer, b->answer);
    return true;
}
