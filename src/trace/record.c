/* record.c: events into arrays; names and input lists once each. */
#include "trace/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Two weeks; and the year 2115, so that sums of times stay within 64 bits. */
#define LONGEST_NS (INT64_C(1209600) * 1000000000)
#define LATEST_NS INT64_C(4600000000000000000)

/* Texts by their hash, open addressing; `at` holds a number above 0, the text's place plus one. */
typedef struct pool {
    struct {
        uint64_t hash;
        int32_t at;
    } * slot;
    size_t room, used;
} pool;

typedef struct reading {
    ft_record *r;
    pool names, inputs;
    size_t ops, calls, work, name_room, input_room; /* rooms of the arrays */
    size_t taken, most;                             /* bytes */
    bool exhausted;                                 /* not the limit: the machine has no more */
    ft_error *err;
} reading;

/* The array with room for one more, or NULL, and then the old one stands. */
static void *grown(reading *g, void *at, size_t *room, size_t count, size_t size)
{
    if (count < *room) return at;
    size_t wanted = *room ? *room + *room / 2 : 1024;
    if (g->taken + (wanted - *room) * size > g->most) return NULL;
    void *fresh = realloc(at, wanted * size);
    if (!fresh) {
        g->exhausted = true;
        return NULL;
    }
    g->taken += (wanted - *room) * size;
    *room = wanted;
    return fresh;
}

static bool pool_room(reading *g, pool *p)
{
    if (p->slot && p->used * 2 < p->room) return true;
    size_t room = p->room ? 2 * p->room : 4096;
    if (g->taken + room * sizeof *p->slot > g->most) return false;
    pool fresh = {calloc(room, sizeof *fresh.slot), room, p->used};
    if (!fresh.slot) {
        g->exhausted = true;
        return false;
    }
    for (size_t i = 0; i < p->room; i++) {
        if (!p->slot[i].at) continue;
        size_t k = p->slot[i].hash & (room - 1);
        while (fresh.slot[k].at) k = (k + 1) & (room - 1);
        fresh.slot[k] = p->slot[i];
    }
    g->taken += (room - p->room) * sizeof *p->slot;
    free(p->slot);
    *p = fresh;
    return true;
}

/* The slot of a hash: its own, or the free one where it goes. 64 bits tell a few million texts apart. */
static size_t pool_find(const pool *p, uint64_t hash)
{
    size_t k = hash & (p->room - 1);
    while (p->slot[k].at && p->slot[k].hash != hash) k = (k + 1) & (p->room - 1);
    return k;
}

static const char *keep(reading *g, ft_trace_text s)
{
    if (g->taken + s.length + 17 > g->most) return NULL;
    g->taken += s.length + 17;
    const char *copy = ft__arena_copy(g->r->arena, s.at, s.length);
    if (!copy) g->exhausted = true;
    return copy;
}

static bool name_of(reading *g, ft_trace_text s, int32_t *out)
{
    enum { LONGEST = 600 }; /* templates of C++ have no other end */
    ft_record *r = g->r;
    if (s.length > LONGEST) s.length = LONGEST;
    if (!pool_room(g, &g->names)) return false;
    uint64_t hash = ft__hash(s.at ? s.at : "", s.length, 11);
    size_t k = pool_find(&g->names, hash);
    if (!g->names.slot[k].at) {
        void *fresh = grown(g, r->names, &g->name_room, r->name_count, sizeof *r->names);
        if (!fresh) return false;
        r->names = fresh;
        const char *text = keep(g, (ft_trace_text){s.at ? s.at : "", s.length});
        if (!text) return false;
        r->names[r->name_count++] = text;
        g->names.slot[k].hash = hash;
        g->names.slot[k].at = (int32_t)r->name_count;
        g->names.used++;
    }
    *out = g->names.slot[k].at - 1;
    return true;
}

static bool inputs_of(reading *g, const ft_trace_event *e, int32_t *out)
{
    ft_record *r = g->r;
    *out = FT_TRACE_NONE;
    if (!e->dims.length) return true;
    if (!pool_room(g, &g->inputs)) return false;
    const ft_trace_text part[4] = {e->dims, e->types, e->strides, e->concrete};
    uint64_t hash = 13;
    for (int i = 0; i < 4; i++) hash = ft__hash(part[i].at ? part[i].at : "", part[i].length, hash * 31 + 1);
    size_t k = pool_find(&g->inputs, hash);
    if (!g->inputs.slot[k].at) {
        void *fresh = grown(g, r->signatures, &g->input_room, r->signature_count, sizeof *r->signatures);
        if (!fresh) return false;
        r->signatures = fresh;
        const char *text[4];
        for (int i = 0; i < 4; i++)
            if (!(text[i] = keep(g, (ft_trace_text){part[i].at ? part[i].at : "", part[i].length}))) return false;
        r->signatures[r->signature_count++] = (ft_signature_text){text[0], text[1], text[2], text[3]};
        g->inputs.slot[k].hash = hash;
        g->inputs.slot[k].at = (int32_t)r->signature_count;
        g->inputs.used++;
    }
    *out = g->inputs.slot[k].at - 1;
    return true;
}

/* -- one event --------------------------------------------------------------------------------- */

static bool is_exchange(const char *name)
{
    return !strncmp(name, "nccl", 4) || !strncmp(name, "rccl", 4) || strstr(name, "ncclDevKernel") ||
           strstr(name, "ncclKernel") || strstr(name, "AllReduce_") || strstr(name, "multimem_all_reduce");
}

static bool add_op(reading *g, const ft_trace_event *e)
{
    ft_record *r = g->r;
    ft_trace_op op = {.start = e->start_ns,
                      .end = e->start_ns + e->duration_ns,
                      .thread = e->thread,
                      .external = e->external,
                      .inputs = FT_TRACE_NONE,
                      .parent = FT_TRACE_NONE,
                      .place = (uint32_t)r->op_count & INT32_MAX,
                      .annotation = e->kind == FT_EVENT_ANNOTATION};
    void *fresh = grown(g, r->ops, &g->ops, r->op_count, sizeof op);
    if (!fresh) return false;
    r->ops = fresh;
    if (!name_of(g, e->name, &op.name) || !inputs_of(g, e, &op.inputs)) return false;
    r->ops[r->op_count++] = op;
    return true;
}

static bool add_call(reading *g, const ft_trace_event *e)
{
    ft_record *r = g->r;
    ft_trace_call call = {.start = e->start_ns,
                          .end = e->start_ns + e->duration_ns,
                          .thread = e->thread,
                          .correlation = e->correlation,
                          .op = FT_TRACE_NONE,
                          .place = (int32_t)r->call_count};
    void *fresh = grown(g, r->calls, &g->calls, r->call_count, sizeof call);
    if (!fresh) return false;
    r->calls = fresh;
    if (!name_of(g, e->name, &call.name)) return false;
    r->calls[r->call_count++] = call;
    return true;
}

static double element_bytes(ft_trace_text type)
{
    static const struct {
        const char *name;
        double bytes;
    } sizes[] = {{"BFloat16", 2}, {"Half", 2}, {"Float", 4}, {"Double", 8}, {"Long", 8},
                 {"Int", 4},      {"Byte", 1}, {"Char", 1},  {"Bool", 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (type.length == strlen(sizes[i].name) && !memcmp(type.at, sizes[i].name, type.length)) return sizes[i].bytes;
    return 2;
}

static bool add_work(reading *g, const ft_trace_event *e)
{
    ft_record *r = g->r;
    ft_trace_work w = {.place = (int32_t)r->work_count,
                       .start = e->start_ns,
                       .end = e->start_ns + e->duration_ns,
                       .stream = e->stream,
                       .correlation = e->correlation,
                       .external = e->external,
                       .bytes = e->bytes,
                       .op = FT_TRACE_NONE,
                       .call = FT_TRACE_NONE,
                       .step = FT_TRACE_NONE,
                       .group = FT_TRACE_NONE,
                       .device = (int16_t)(e->device >= 0 && e->device < 32000 ? e->device : 0),
                       .kind = (uint8_t)e->kind,
                       .ranks = (int32_t)(e->ranks > 0 && e->ranks < 1 << 24 ? e->ranks : 0)};
    w.blocks = (float)((double)e->grid[0] * (double)e->grid[1] * (double)e->grid[2]);
    w.threads = (float)((double)e->block[0] * (double)e->block[1] * (double)e->block[2]);
    void *fresh = grown(g, r->work, &g->work, r->work_count, sizeof w);
    if (!fresh) return false;
    r->work = fresh;
    if (!name_of(g, e->name, &w.name)) return false;
    w.exchange = w.kind == FT_EVENT_KERNEL && (e->collective.length || is_exchange(r->names[w.name]));
    if (w.exchange && e->elements > 0) w.bytes = e->elements * element_bytes(e->element_type);
    r->work[r->work_count++] = w;
    return true;
}

static bool add(reading *g, const ft_trace_event *e)
{
    ft_record *r = g->r;
    if (e->kind == FT_EVENT_PYTHON) {
        r->python_events++;
        r->modules += e->name.length > 11 && !memcmp(e->name.at, "nn.Module: ", 11);
    }
    if (!e->timed) return true;
    if (e->duration_ns < 0 || e->duration_ns > LONGEST_NS || e->start_ns > LATEST_NS || e->start_ns < -LATEST_NS) {
        /* a clock that jumped */
        if (e->kind != FT_EVENT_OTHER) r->negative++;
        return true;
    }
    switch (e->kind) {
    case FT_EVENT_OP:
    case FT_EVENT_ANNOTATION: return add_op(g, e);
    case FT_EVENT_CALL: return add_call(g, e);
    case FT_EVENT_KERNEL:
    case FT_EVENT_MEMCPY:
    case FT_EVENT_MEMSET: return add_work(g, e);
    default: return true;
    }
}

/* -- the header -------------------------------------------------------------------------------- */

static void copy_text(ft_trace_text s, char *out, size_t room)
{
    size_t n = s.length < room - 1 ? s.length : room - 1;
    if (n) memcpy(out, s.at, n);
    out[n] = 0;
}

static double figure(ft_trace_text object, const char *key)
{
    char text[40];
    copy_text(ft__json_member(object, key), text, sizeof text);
    double v = strtod(text, NULL);
    return v > 0 && v < 1e15 ? v : 0;
}

/* "deviceProperties" lists the GPUs of the machine; `device` says which one ran. */
static void read_devices(const char *text, ft_record *r)
{
    const char *p = strchr(text, '{');
    for (int i = 0; p && i < 64; i++) {
        int depth = 0;
        const char *end = p;
        do {
            depth += (*end == '{') - (*end == '}');
            end++;
        } while (*end && depth > 0);
        ft_trace_text object = {p, (size_t)(end - p)};
        char id[24];
        copy_text(ft__json_member(object, "id"), id, sizeof id);
        if (i == 0 || strtol(id, NULL, 10) == r->device) {
            copy_text(ft__json_member(object, "name"), r->gpu_name, sizeof r->gpu_name);
            r->gpu_memory_bytes = figure(object, "totalGlobalMem");
            double sms = figure(object, "numSms");
            r->gpu_sms = sms < 1e6 ? (int)sms : 0;
        }
        r->gpu_count = i + 1;
        p = strchr(end, '{');
    }
}

ft_status ft__record_read(ft_slices *from, size_t most_bytes, ft_record *out, ft_error *err)
{
    memset(out, 0, sizeof *out);
    reading g = {.r = out, .most = most_bytes, .err = err};
    out->arena = ft__arena_new(0);
    if (!out->arena) return ft__no_memory(err);
    ft_status status = FT_OK;
    for (;;) {
        char *text;
        size_t length;
        bool more = false;
        ft_trace_event e;
        if (status == FT_OK) status = ft__slices_next(from, &text, &length, &more, err);
        if (status != FT_OK || !more) break;
        out->events++;
        if (!ft__event_read(text, length, &e)) {
            out->skipped++;
        } else if (out->capped || !add(&g, &e)) {
            /* Over the limit; the header may still come. */
            out->capped++;
            if (g.exhausted) status = ft__fail(err, FT_E_MEMORY, "out of memory while reading a trace");
        }
    }
    free(g.names.slot);
    free(g.inputs.slot);
    out->bytes = ft__slices_bytes(from);
    out->skipped += ft__slices_skipped(from);
    snprintf(out->broken, sizeof out->broken, "%s", ft__slices_broken(from));
    if (status != FT_OK) return status;
    status = ft__record_join(out, err);
    if (status != FT_OK) return status;
    const char *devices = ft__slices_devices(from), *distributed = ft__slices_distributed(from);
    read_devices(devices, out);
    out->ranks = (int64_t)figure((ft_trace_text){distributed, strlen(distributed)}, "world_size");
    return FT_OK;
}

void ft__record_free(ft_record *r)
{
    free(r->ops);
    free(r->calls);
    free(r->work);
    free(r->steps);
    free(r->names);
    free(r->signatures);
    ft__arena_free(r->arena);
    memset(r, 0, sizeof *r);
}

const char *ft__record_name(const ft_record *r, int32_t name)
{
    return name >= 0 && (size_t)name < r->name_count ? r->names[name] : "";
}
