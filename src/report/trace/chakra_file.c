/* chakra_file.c: Chakra's messages by protobuf-c.
 *
 * A file is a varint length and a Metadata, then the same for every Node, as Chakra's own protolib reads and writes.
 * Attribute names and types are those that ASTRA-sim's feeder looks for. */
#include "report/trace/chakra_file.h"

#include <math.h>
#include <stdlib.h>

#include "report/trace/chakra.pb-c.h"

enum { ATTRIBUTES = 8 };

static void add_length(ft_text *out, size_t length)
{
    char bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (char)(length & 127);
        length >>= 7;
        if (length) bytes[n] = (char)(bytes[n] | 128);
        n++;
    } while (length);
    ft__text_add_n(out, bytes, n);
}

static void add_message(ft_text *out, const ProtobufCMessage *m)
{
    size_t length = protobuf_c_message_get_packed_size(m);
    uint8_t *packed = malloc(length ? length : 1);
    if (!packed) {
        out->failed = true;
        return;
    }
    protobuf_c_message_pack(m, packed);
    add_length(out, length);
    ft__text_add_n(out, (const char *)packed, length);
    free(packed);
}

typedef struct attributes {
    FtChakra__Attr attr[ATTRIBUTES], *at[ATTRIBUTES];
    size_t count;
} attributes;

static FtChakra__Attr *next(attributes *a, const char *name)
{
    FtChakra__Attr *one = &a->attr[a->count];
    ft_chakra__attr__init(one);
    one->name = (char *)(uintptr_t)name;
    a->at[a->count++] = one;
    return one;
}

static void add_int64(attributes *a, const char *name, int64_t value)
{
    FtChakra__Attr *one = next(a, name);
    one->value_case = FT_CHAKRA__ATTR__VALUE_INT64_VAL;
    one->int64_val = value;
}

static void add_int32(attributes *a, const char *name, int64_t value)
{
    FtChakra__Attr *one = next(a, name);
    one->value_case = FT_CHAKRA__ATTR__VALUE_INT32_VAL;
    one->int32_val = (int32_t)value;
}

static void add_text(attributes *a, const char *name, const char *value)
{
    FtChakra__Attr *one = next(a, name);
    one->value_case = FT_CHAKRA__ATTR__VALUE_STRING_VAL;
    one->string_val = (char *)(uintptr_t)value;
}

void ft__chakra_begin(ft_chakra_file *f, const char *note)
{
    attributes a = {.count = 0};
    FtChakra__Metadata m = FT_CHAKRA__METADATA__INIT;
    *f = (ft_chakra_file){.text = {.cap = (size_t)512 << 20}};
    add_text(&a, "note", note);
    m.version = (char *)(uintptr_t) "0.0.4";
    m.n_attr = a.count;
    m.attr = a.at;
    add_message(&f->text, &m.base);
}

static int64_t comm_type(ft_exchange_kind kind)
{
    switch (kind) {
    case FT_EXCHANGE_ALL_GATHER: return FT_CHAKRA__COMM_TYPE__ALL_GATHER;
    case FT_EXCHANGE_REDUCE_SCATTER: return FT_CHAKRA__COMM_TYPE__REDUCE_SCATTER;
    case FT_EXCHANGE_SEND_RECV: /* a step of a ring, which PyTorch asks all_to_all for */
    case FT_EXCHANGE_ALL_TO_ALL: return FT_CHAKRA__COMM_TYPE__ALL_TO_ALL;
    default: return FT_CHAKRA__COMM_TYPE__ALL_REDUCE;
    }
}

static int64_t whole(double x) { return x > 0 ? x < 9e18 ? (int64_t)x : INT64_MAX : 0; }

int64_t ft__chakra_add(ft_chakra_file *f, const ft_chakra_node *n)
{
    static const FtChakra__NodeType types[] = {FT_CHAKRA__NODE_TYPE__COMP_NODE, FT_CHAKRA__NODE_TYPE__COMM_COLL_NODE,
                                               FT_CHAKRA__NODE_TYPE__COMM_SEND_NODE,
                                               FT_CHAKRA__NODE_TYPE__COMM_RECV_NODE};
    FtChakra__Node node = FT_CHAKRA__NODE__INIT;
    attributes a = {.count = 0};
    uint64_t after[FT_CHAKRA_DEPS];
    char group[24] = "";
    size_t waits = 0;
    for (int i = 0; i < FT_CHAKRA_DEPS; i++) {
        bool listed = n->after[i] <= 0;
        for (size_t k = 0; k < waits; k++) listed |= after[k] == (uint64_t)n->after[i];
        if (!listed) after[waits++] = (uint64_t)n->after[i];
    }
    node.id = (uint64_t)++f->count;
    node.name = (char *)(uintptr_t)n->name;
    node.type = types[n->type];
    node.n_data_deps = waits;
    node.data_deps = after;
    /* What is rounded off one node is given to the next of its kind: the sum is true to a microsecond. */
    if (n->type == FT_CHAKRA_COMP) {
        double before = round(f->clock_ms * 1e3);
        f->clock_ms += n->ms;
        node.duration_micros = (uint64_t)whole(round(f->clock_ms * 1e3) - before);
    } else {
        node.duration_micros = (uint64_t)whole(round(n->ms * 1e3));
    }
    FtChakra__Attr *cpu = next(&a, "is_cpu_op");
    cpu->value_case = FT_CHAKRA__ATTR__VALUE_BOOL_VAL;
    cpu->bool_val = 0;
    if (n->type == FT_CHAKRA_COMP) {
        add_int64(&a, "num_ops", whole(n->flops));
        FtChakra__Attr *size = next(&a, "tensor_size");
        size->value_case = FT_CHAKRA__ATTR__VALUE_UINT64_VAL;
        size->uint64_val = (uint64_t)whole(n->bytes);
    } else {
        add_int64(&a, "comm_size", whole(n->bytes));
    }
    if (n->type == FT_CHAKRA_COLL) {
        ft_text number = {.cap = sizeof group - 1};
        ft__text_addf(&number, "%lld", (long long)n->group);
        for (size_t i = 0; i < number.length && i + 1 < sizeof group; i++) group[i] = number.at[i];
        f->text.failed |= number.failed;
        ft__text_free(&number);
        add_int64(&a, "comm_type", comm_type(n->exchange));
        add_text(&a, "pg_name", group);
    } else if (n->type != FT_CHAKRA_COMP) {
        add_int32(&a, "comm_src", n->from);
        add_int32(&a, "comm_dst", n->to);
        add_int32(&a, "comm_tag", n->tag);
    }
    node.n_attr = a.count;
    node.attr = a.at;
    add_message(&f->text, &node.base);
    return f->count;
}
