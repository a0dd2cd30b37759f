/* An ONNX graph as it stands in the file, names resolved to numbers: functions inlined, nodes in an order in which they
 * can run, contents of small tensors at hand. Shapes are the file's words: what they come to depends on the request. */
#ifndef FT_IMPORT_ONNX_GRAPH_H
#define FT_IMPORT_ONNX_GRAPH_H
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "import/onnx/onnx.h"

enum { FT_ONNX_DIMS = 8, FT_ONNX_KNOWN = 256 /* elements of a tensor whose values are computed with */ };

/* Element types by the format's own numbers. */
enum {
    FT_ONNX_FLOAT = 1,
    FT_ONNX_UINT8 = 2,
    FT_ONNX_INT8 = 3,
    FT_ONNX_INT32 = 6,
    FT_ONNX_INT64 = 7,
    FT_ONNX_STRING = 8,
    FT_ONNX_BOOL = 9,
    FT_ONNX_FLOAT16 = 10,
    FT_ONNX_DOUBLE = 11,
    FT_ONNX_COMPLEX64 = 14,
    FT_ONNX_COMPLEX128 = 15,
    FT_ONNX_BFLOAT16 = 16,
    FT_ONNX_TYPES = 29
};
double ft__onnx_type_bytes(int type); /* 0 for what has no size: text, unknown numbers */
bool ft__onnx_type_floats(int type);  /* float, float16, bfloat16, double */

/* A number of a small tensor, both ways: `i` is exact for whole ones. */
typedef struct ft_onnx ft_onnx;
typedef struct ft_onnx_number {
    int64_t i;
    double f;
} ft_onnx_number;

/* A tensor whose shape the file gives: an initialiser, a constant. */
typedef struct ft_onnx_tensor {
    int type, dims;
    int64_t dim[FT_ONNX_DIMS];
    const ft_onnx_number *known; /* NULL: too large to be kept */
} ft_onnx_tensor;

/* One size of a declared shape. */
typedef struct ft_onnx_size {
    int64_t fixed;    /* -1: not fixed */
    const char *word; /* "batch_size"; NULL when nothing is said */
} ft_onnx_size;

typedef struct ft_onnx_value {
    const char *name;
    const ft_onnx_tensor *tensor; /* initialisers */
    int type, dims;               /* as declared; 0 and -1 when nothing is */
    ft_onnx_size size[FT_ONNX_DIMS];
    int32_t maker;              /* node; -1 */
    int32_t readers, reader;    /* how often it is read, and by which node first */
    bool input, output, weight; /* weight: an initialiser that training changes */
    bool literal;               /* of a Constant node: a number that somebody wrote down */
} ft_onnx_value;

typedef struct ft_onnx_attribute {
    const char *name;
    int type; /* the format's: 1 float, 2 int, 3 string, 4 tensor, 6 floats, 7 ints */
    int64_t i;
    double f;
    const char *s;
    const int64_t *ints;
    const float *floats;
    size_t int_count, float_count;
    const ft_onnx_tensor *tensor;
} ft_onnx_attribute;

typedef struct ft_onnx_node {
    const char *op, *domain, *name;  /* domain "" for the standard's own */
    const char *label;               /* for reports */
    const struct ft_onnx_rule *rule; /* NULL: an operator nobody knows */
    const int32_t *in, *out;         /* values; -1 where one is left out */
    int32_t in_count, out_count;
    const ft_onnx_attribute *attributes;
    size_t attribute_count;
    int32_t bias;  /* products: the value that the next node would add; -1 */
    int32_t core;  /* of which written-out attention it is part; -1: of none */
    bool absorbed; /* the node before it does its work: an added bias */
} ft_onnx_node;

/* softmax(q k' + mask) v, written out. */
typedef struct ft_onnx_core {
    int32_t start;         /* place in the order of the first node that is part of it */
    int32_t last;          /* its second product */
    int32_t q, k, v, mask; /* values; mask -1 for none */
    bool k_across;         /* k is [..., dim, length] */
    bool grouped;          /* k and v are those before they are repeated for groups of queries */
    bool causal;           /* the mask is made of positions, or cut along the diagonal */
} ft_onnx_core;

/* What a size that is not fixed means. */
typedef enum ft_onnx_meaning { FT_ONNX_BATCH, FT_ONNX_SEQ, FT_ONNX_PAST, FT_ONNX_CONSTANT } ft_onnx_meaning;
typedef struct ft_onnx_word {
    const char *word;
    ft_onnx_meaning meaning;
    int64_t size; /* FT_ONNX_CONSTANT */
} ft_onnx_word;

struct ft_onnx {
    ft_arena *arena;
    char *warnings; /* one per line; "" */
    ft_onnx_value *values;
    ft_onnx_node *nodes;
    const int32_t *order; /* nodes, so that each stands behind what it reads */
    int32_t value_count, value_room, node_count, node_room;
    int32_t *inputs, *outputs;
    int32_t input_count, output_count;
    ft_onnx_core *cores;
    int32_t core_count;
    ft_onnx_word *words;
    int32_t word_count;
    int main_float; /* the type of most weights: what the request's dtype replaces */
    int64_t opset;
};

/* From the trimmed bytes to values and nodes. */
ft_status ft__onnx_parse(const uint8_t *bytes, size_t length, ft_onnx *out, ft_error *err);
/* Which value numbers a name has; names that repeat are told by the parser. */
const ft_onnx_attribute *ft__onnx_attribute(const ft_onnx_node *n, const char *name);
int64_t ft__onnx_int(const ft_onnx_node *n, const char *name, int64_t otherwise);
const char *ft__onnx_string(const ft_onnx_node *n, const char *name, const char *otherwise);
/* At most `most`; how many there are, 0 when the attribute is not there. */
int ft__onnx_ints(const ft_onnx_node *n, const char *name, int most, int64_t *out);

/* Passes over what was parsed, in this order. */
ft_status ft__onnx_sort(ft_onnx *onnx, ft_error *err);                 /* order; cycles */
ft_status ft__onnx_weights(ft_onnx *onnx, ft_error *err);              /* which initialisers are parameters */
ft_status ft__onnx_words(ft_onnx *onnx, ft_arch *arch, ft_error *err); /* what free sizes mean */
ft_status ft__onnx_patterns(ft_onnx *onnx, ft_error *err);             /* biases, written-out attention */
void ft__onnx_labels(ft_onnx *onnx);                                   /* what nodes are called in reports */
ft_status ft__onnx_warn(ft_onnx *onnx, ft_error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* How an operator is built: rules.c lists them. */
const struct ft_onnx_rule *ft__onnx_rule(const char *domain, const char *op);
/* Refuses what no graph of operators can be: control flow, sequences, optional values. */
const char *ft__onnx_refusal(const char *domain, const char *op); /* why; NULL: nothing wrong with it */
#endif
