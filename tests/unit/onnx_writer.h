/* ONNX files from a few lines of text, without anybody else's library: what the tests need of protobuf's wire format is
 * a varint and a length.
 *
 *     opset 17
 *     in x float batch seq 64          name, type, sizes: numbers or words, "?" for nothing said
 *     init w float 64 128              without contents
 *     ints shape 0 -1 8                int64 contents
 *     floats half 0.5                  float contents; a single one is a scalar
 *     node MatMul x w -> y axis=1 perm=0,2,1 mode=linear domain=com.microsoft
 *     function Twice a -> b alpha      the lines that follow, up to "end", are its body
 *     value y float 2 128
 *     out y float batch seq 128
 */
#ifndef ONNX_WRITER_H
#define ONNX_WRITER_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct wire {
    uint8_t at[1 << 16];
    size_t length;
} wire;

static inline void put_varint(wire *w, uint64_t value)
{
    for (; value > 127; value >>= 7) w->at[w->length++] = (uint8_t)(value | 128);
    w->at[w->length++] = (uint8_t)value;
}

static inline void put_whole(wire *w, int field, int64_t value)
{
    put_varint(w, (uint64_t)field << 3);
    put_varint(w, (uint64_t)value);
}

static inline void put_bytes(wire *w, int field, const void *bytes, size_t count)
{
    put_varint(w, (uint64_t)field << 3 | 2);
    put_varint(w, count);
    if (count) memcpy(w->at + w->length, bytes, count);
    w->length += count;
}

static inline void put_text(wire *w, int field, const char *text) { put_bytes(w, field, text, strlen(text)); }

static inline void put_inside(wire *w, int field, wire *inside)
{
    put_bytes(w, field, inside->at, inside->length);
    free(inside);
}

static inline wire *new_wire(void)
{
    wire *w = calloc(1, sizeof *w);
    if (!w) abort();
    return w;
}

static inline int type_number(const char *name)
{
    static const char *const names[] = {"",      "float", "uint8", "int8", "uint16", "int16",
                                        "int32", "int64", "text",  "bool", "half",   "double"};
    for (int i = 0; i < 12; i++)
        if (!strcmp(name, names[i])) return i;
    return atoi(name);
}

static inline wire *value_info(char **words, int count)
{
    wire *info = new_wire(), *type = new_wire(), *tensor = new_wire(), *shape = new_wire();
    put_text(info, 1, words[0]);
    if (!strcmp(words[1], "sequence")) { /* of what, nobody asks */
        put_bytes(type, 4, "", 0);
        free(tensor);
        free(shape);
    } else {
        put_whole(tensor, 1, type_number(words[1]));
        for (int i = 2; i < count; i++) {
            wire *d = new_wire();
            char *end;
            int64_t size = strtoll(words[i], &end, 10);
            if (!*end)
                put_whole(d, 1, size);
            else if (strcmp(words[i], "?") != 0)
                put_text(d, 2, words[i]);
            put_inside(shape, 1, d);
        }
        put_inside(tensor, 2, shape);
        put_inside(type, 1, tensor);
    }
    put_inside(info, 2, type);
    return info;
}

static inline wire *tensor_of(char **words, int count, const char *how)
{
    wire *t = new_wire();
    bool plain = !strcmp(how, "init"), floats = !strcmp(how, "floats");
    if (plain)
        for (int i = 2; i < count; i++) put_whole(t, 1, atoll(words[i]));
    else if (count > 2 || !floats)
        put_whole(t, 1, count - 1);
    put_whole(t, 2, plain ? type_number(words[1]) : floats ? 1 : 7);
    put_text(t, 8, words[0]);
    wire *raw = new_wire();
    for (int i = 1; !plain && i < count; i++) {
        float f = strtof(words[i], NULL);
        int64_t whole = atoll(words[i]);
        memcpy(raw->at + raw->length, floats ? (void *)&f : (void *)&whole, floats ? 4 : 8);
        raw->length += floats ? 4 : 8;
    }
    if (!plain) put_bytes(t, 9, raw->at, raw->length);
    free(raw);
    return t;
}

static inline wire *attribute_of(char *text)
{
    wire *a = new_wire();
    char *value = strchr(text, '='), *end;
    *value++ = 0;
    put_text(a, 1, text);
    int64_t whole = strtoll(value, &end, 10);
    if (*value == '@') { /* a reference to an attribute of the function's call */
        put_text(a, 21, value + 1);
        put_whole(a, 20, 2);
    } else if (!strcmp(value, "{}")) { /* a subgraph */
        put_bytes(a, 6, "", 0);
        put_whole(a, 20, 5);
    } else if (!*end) {
        put_whole(a, 3, whole);
        put_whole(a, 20, 2);
    } else if (*end == ',') {
        for (char *at = strtok(value, ","); at; at = strtok(NULL, ",")) put_whole(a, 8, atoll(at));
        put_whole(a, 20, 7);
    } else {
        put_text(a, 4, value);
        put_whole(a, 20, 3);
    }
    return a;
}

static inline wire *node_of(char **words, int count)
{
    wire *n = new_wire(), *attributes = new_wire();
    bool output = false;
    for (int i = 1; i < count; i++) {
        if (!strcmp(words[i], "->"))
            output = true;
        else if (!strncmp(words[i], "name=", 5))
            put_text(n, 3, words[i] + 5);
        else if (!strncmp(words[i], "domain=", 7))
            put_text(n, 7, words[i] + 7);
        else if (strchr(words[i], '='))
            put_inside(attributes, 5, attribute_of(words[i]));
        else
            put_text(n, output ? 2 : 1, !strcmp(words[i], "_") ? "" : words[i]);
    }
    put_text(n, 4, words[0]);
    memcpy(n->at + n->length, attributes->at, attributes->length);
    n->length += attributes->length;
    free(attributes);
    return n;
}

/* The file's bytes, to be freed. */
static inline uint8_t *onnx_bytes(const char *text, size_t *length)
{
    wire *model = new_wire(), *graph = new_wire(), *function = NULL;
    char *copy = strdup(text), *rest = copy, *line;
    put_whole(model, 1, 10);
    if (!copy) abort();
    while ((line = rest) && *line) {
        char *words[64];
        int count = 0;
        rest = strchr(line, '\n');
        if (rest) *rest++ = 0;
        for (char *save = NULL, *at = strtok_r(line, " ", &save); at && count < 64; at = strtok_r(NULL, " ", &save))
            words[count++] = at;
        if (!count) continue;
        const char *what = words[0];
        if (!strcmp(what, "opset")) {
            wire *set = new_wire();
            put_text(set, 1, count > 2 ? words[2] : "");
            put_whole(set, 2, atoll(words[1]));
            put_inside(model, 8, set);
        } else if (!strcmp(what, "function")) {
            bool output = false;
            function = new_wire();
            put_text(function, 1, words[1]);
            put_text(function, 10, "my");
            for (int i = 2; i < count; i++) {
                if (!strcmp(words[i], "->"))
                    output = true;
                else
                    put_text(function, output ? 5 : 4, words[i]);
            }
        } else if (!strcmp(what, "end")) {
            put_inside(model, 25, function);
            function = NULL;
        } else if (!strcmp(what, "node")) {
            put_inside(function ? function : graph, function ? 7 : 1, node_of(words + 1, count - 1));
        } else if (!strcmp(what, "in") || !strcmp(what, "out") || !strcmp(what, "value")) {
            put_inside(graph, *what == 'i' ? 11 : *what == 'o' ? 12 : 13, value_info(words + 1, count - 1));
        } else {
            put_inside(graph, 5, tensor_of(words + 1, count - 1, what));
        }
    }
    free(copy);
    put_inside(model, 7, graph);
    *length = model->length;
    uint8_t *bytes = malloc(model->length + 1);
    if (!bytes) abort();
    memcpy(bytes, model->at, model->length);
    free(model);
    return bytes;
}
#endif
