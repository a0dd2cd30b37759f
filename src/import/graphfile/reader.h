/* What the files of the graph file's reader share. graphfile.c reads blocks and inputs, names.c keeps what
 * was made, sizes.c reads sizes, axes and formats, layout.c knows how elements lie in memory,
 * node.c reads a node, and the others the operators by subject. */
#ifndef FT_IMPORT_GRAPHFILE_READER_H
#define FT_IMPORT_GRAPHFILE_READER_H
#include "base/json.h"
#include "import/graphfile/graphfile.h"
#include "model/parts.h"

enum { FT_GRAPHFILE_DIMS = 8 };

typedef enum ft_values { FT_FLOATS, FT_INTEGERS, FT_BOOLS } ft_values;

/* A name and the tensor behind it, with the shape that the file means. `stride` says where elements lie, as PyTorch
 * counts them. The graph's tensor has rows and columns: those of the shape (all axes but the last, and the last) or,
 * where memory is dense in another order, of that order (an image [n, c, h, w] kept as [n*h*w, c]). */
typedef struct ft_named {
    const char *name;
    ft_ref ref;
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS], stride[FT_GRAPHFILE_DIMS];
    bool unordered; /* transposed by nobody knows what: strides say nothing */
    ft_values values;
    ft_ref repeats; /* an expansion: the tensor whose elements it repeats; otherwise FT_NONE */
    uint32_t hash;
    int32_t before; /* the entry before it in its bucket; -1 */
} ft_named;

/* A number format of the file. */
typedef struct ft_format {
    ft_values values;
    ft_dtype dtype;
    double bytes;
} ft_format;

typedef struct ft_graph_reader {
    ft_maker *m;
    ft_named *names;
    int32_t count, room;
    int32_t *buckets; /* the latest entry of each; -1 */
    int32_t bucket_count;
    const char *block;
    int32_t node;        /* number of the node being read, for messages */
    const json_t *at;    /* that node */
    const json_t *nodes; /* of the block */
    ft_ref first_fresh;  /* tensors from here on were made by the node being read */
    bool pictures;       /* a convolution was read: four axes are an image's */
    bool nhwc;           /* the model's images come in channels-last, and so stand its filters */
    bool turned;         /* a compiler turns images as they come in, filters each time (graph/turned.c) */
    ft_ref mask;         /* of eager attention: made once; FT_NONE */
    int64_t mask_rows, mask_cols;
} ft_graph_reader;

/* Fails, naming block and node. */
void ft__graphfile_fail(ft_graph_reader *r, ft_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* -- names.c ---- */
ft_named *ft__graphfile_find(ft_graph_reader *r, const char *name); /* the latest of that name; NULL */
/* A contiguous tensor of floats under a name; the name must outlive the reader. */
void ft__graphfile_keep(ft_graph_reader *r, const char *name, ft_ref ref, int dims, const int64_t *dim);
void ft__graphfile_keep_named(ft_graph_reader *r, const char *name, const ft_named *n);
const char *ft__graphfile_nearest(ft_graph_reader *r, const char *name); /* NULL: none is near */

/* A text of the file that the graph may keep: it outlives the file. */
const char *ft__graphfile_text(ft_graph_reader *r, const char *text);

/* -- sizes.c ---- */
/* "shape" and its like; false after an error. */
bool ft__graphfile_shape(ft_graph_reader *r, const json_t *value, const char *key, int *dims, int64_t *dim);
/* The same without a message. */
bool ft__graphfile_shape_read(const ft_graph_reader *r, const json_t *value, int *dims, int64_t *dim);
bool ft__graphfile_size_read(const ft_graph_reader *r, const json_t *value, int64_t *out);
#define FT_GRAPHFILE_SIZES                                                                                             \
    "must be a list of 1 to 8 sizes: whole numbers, \"batch\", \"seq\" or formulas of them, up to 2^40 each and 2^60 " \
    "together"
/* A key of the node at hand: a whole number from `low` to `high`, or a formula with batch and seq. `otherwise` below
 * `low` means that it may not be left out. */
int64_t ft__graphfile_whole(ft_graph_reader *r, const char *key, int64_t otherwise, int64_t low, int64_t high);
/* A number for all of `count` axes, or a list of one for each. False after an error. */
bool ft__graphfile_each(ft_graph_reader *r, const char *key, int count, int64_t otherwise, int64_t low, int64_t *out);
bool ft__graphfile_truth(ft_graph_reader *r, const char *key, bool otherwise);
/* A number from `low` to below `high`. */
double ft__graphfile_number(ft_graph_reader *r, const char *key, double otherwise, double low, double high);
/* "axis" or "axes" as a set of bits; `otherwise`: the axis when neither is there. 0 after an error. */
unsigned ft__graphfile_axes(ft_graph_reader *r, int dims, int otherwise);
int ft__graphfile_axis(ft_graph_reader *r, int dims, int otherwise); /* one; -1 after an error */
/* A format by name; false when there is none of that name. */
bool ft__graphfile_format(const ft_graph_reader *r, const char *name, ft_format *out);
/* The node's `key`, `otherwise` when it is left out; false after an error. */
bool ft__graphfile_format_key(ft_graph_reader *r, const char *key, ft_format otherwise, ft_format *out);
ft_format ft__graphfile_floats(const ft_graph_reader *r); /* what values flow in */
/* Everything before the last axis; 0, which no tensor has, when that is beyond any machine. */
int64_t ft__graphfile_rows(int dims, const int64_t *dim);
double ft__graphfile_elements(const ft_named *n);
/* Axes from `from` to before `to` together. */
int64_t ft__graphfile_span(const ft_named *n, int from, int to);

bool ft__graphfile_possible(ft_graph_reader *r, int dims, const int64_t *dim); /* false after an error: too large */

/* -- layout.c ---- */
void ft__graphfile_contiguous(ft_named *n);                       /* strides of its shape in order */
void ft__graphfile_dense_like(ft_named *n, const ft_named *like); /* dense, axes in the order of `like`'s memory */
bool ft__graphfile_in_order(const ft_named *n);
bool ft__graphfile_channels_last(const ft_named *n);
/* Some of the channels of such an image: PyTorch takes it to lie so too, with gaps. */
bool ft__graphfile_cut_channels(const ft_named *n); /* dense, and the second axis is the innermost */
void ft__graphfile_set_channels_last(ft_named *n);
ft_order ft__graphfile_order(const ft_named *n);
/* Strides that show x as this shape without a copy; false when there are none. */
bool ft__graphfile_restride(const ft_named *x, ft_named *shape);
/* Whether leading axes, all but the last `kept`, can be walked as one. */
bool ft__graphfile_merges(const ft_named *n, int kept);
/* x as a matrix of these columns: a view where memory allows it, otherwise a copy. */
ft_ref ft__graphfile_matrix(ft_graph_reader *r, ft_at at, const ft_named *x, int64_t rows, int64_t cols);
/* x as rows of its last axis. */
ft_ref ft__graphfile_by_rows(ft_graph_reader *r, ft_at at, const ft_named *x);
/* An image in as many pixels a side, interpolated. */
void ft__graphfile_interpolated(ft_graph_reader *r, ft_at at, const ft_named *x, const int64_t *pixels, ft_named *out);
/* A view of x as this shape and these strides. */
ft_ref ft__graphfile_seen(ft_graph_reader *r, ft_ref x, const ft_named *as);
/* A copy of x in the order of its shape. */
/* The kernel that was emitted last copies so many elements across the order in which they lie. */
void ft__graphfile_walks_across(ft_graph_reader *r, double elements);
ft_ref ft__graphfile_copied(ft_graph_reader *r, ft_at at, const ft_named *x);

/* -- operand.c ---- */
size_t ft__graphfile_operands(const ft_graph_reader *r);
bool ft__graphfile_operand(ft_graph_reader *r, size_t index, ft_named *out); /* false after an error */
size_t ft__graphfile_outs(const ft_graph_reader *r);
/* The node's result number `index`. The node's "dtype" is obeyed for tensors that it made. */
void ft__graphfile_give(ft_graph_reader *r, size_t index, const ft_named *n);
void ft__graphfile_result(ft_graph_reader *r, ft_ref ref, int dims, const int64_t *dim); /* the first, contiguous */
ft_named ft__graphfile_fresh(ft_ref ref, int dims, const int64_t *dim);
/* "weight", "bias", "table" ...: FT_NONE when absent or false; a named parameter; or one made of rows x cols when true.
 * `elements` that it must have. */
ft_ref ft__graphfile_weight(ft_graph_reader *r, const char *key, bool otherwise, const char *name, int64_t rows,
                            int64_t cols);
/* The parameter behind a key that may name one; NULL when it does not, or after an error. */
const ft_named *ft__graphfile_named_weight(ft_graph_reader *r, const char *key);

/* -- operators by subject; each reads the node at hand ---- */
typedef void ft_node_reader(ft_graph_reader *r, ft_at at);
/* source.c */
ft_node_reader ft__read_parameter, ft__read_buffer, ft__read_fill, ft__read_sync, ft__read_other;
/* product.c */
ft_node_reader ft__read_linear, ft__read_matmul, ft__read_embedding;
/* expert.c, attention.c */
ft_node_reader ft__read_experts, ft__read_grouped, ft__read_attention;
/* recurrent.c */
ft_node_reader ft__read_recurrence;
/* image.c */
ft_node_reader ft__read_conv, ft__read_pool, ft__read_resized, ft__read_sampled, ft__read_windows;
ft_node_reader ft__read_weight_norm;
/* view.c, join.c */
ft_node_reader ft__read_view, ft__read_transpose, ft__read_part, ft__read_copy, ft__read_cat, ft__read_split;
/* reduce.c, norm.c */
ft_node_reader ft__read_reduced, ft__read_row, ft__read_best, ft__read_norm, ft__read_picture_norm;
/* index.c */
ft_node_reader ft__read_pick, ft__read_scatter, ft__read_one_hot;
/* pointwise.c, loss.c */
ft_node_reader ft__read_pointwise, ft__read_dropout, ft__read_cast, ft__read_loss;

/* Operators element by element: how many operands they take; 0 when the name is unknown. */
int ft__graphfile_pointwise(const char *op, int *least);

/* Reads the node at hand. */
void ft__graphfile_node(ft_graph_reader *r);

static inline const char *ft__graphfile_op(const ft_graph_reader *r)
{
    const char *op = json_string_value(json_object_get(r->at, "op"));
    return op ? op : "";
}
static inline ft_build *ft__graphfile_build(ft_graph_reader *r) { return &r->m->b; }
static inline bool ft__graphfile_failed(const ft_graph_reader *r) { return r->m->b.status != FT_OK; }
#endif
