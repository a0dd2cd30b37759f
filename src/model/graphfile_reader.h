/* What the two halves of the graph file's reader share: graphfile.c reads blocks, names and sizes, graphfile_nodes.c
 * the operators. */
#ifndef FT_MODEL_GRAPHFILE_READER_H
#define FT_MODEL_GRAPHFILE_READER_H
#include "base/json.h"
#include "model/graphfile.h"
#include "model/parts.h"

enum { FT_GRAPHFILE_DIMS = 8 };

/* A name and the tensor behind it, with the shape that the file means. */
typedef struct ft_named {
    const char *name;
    ft_ref ref;
    int dims;
    int64_t dim[FT_GRAPHFILE_DIMS];
} ft_named;

typedef struct ft_graph_reader {
    ft_maker *m;
    ft_named *names;
    int32_t count, room;
    const char *block;
    int32_t node;        /* number of the node being read, for messages */
    const json_t *at;    /* that node */
    const json_t *nodes; /* of the block */
} ft_graph_reader;

/* Fails, naming block and node. */
void ft__graphfile_fail(ft_graph_reader *r, ft_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

ft_named *ft__graphfile_find(ft_graph_reader *r, const char *name); /* the latest of that name; NULL */
void ft__graphfile_keep(ft_graph_reader *r, const char *name, ft_ref ref, int dims, const int64_t *dim);

/* A text of the file that the graph may keep: it outlives the file. */
const char *ft__graphfile_text(ft_graph_reader *r, const char *text);

/* "shape" and its like; false after an error. */
bool ft__graphfile_shape(ft_graph_reader *r, const json_t *value, const char *key, int *dims, int64_t *dim);
/* A key of the node at hand: a whole number from `low` to `high`, or a product with batch and seq. `otherwise` below
 * `low` means that it may not be left out. */
int64_t ft__graphfile_whole(ft_graph_reader *r, const char *key, int64_t otherwise, int64_t low, int64_t high);
/* Everything before the last axis; 0, which no tensor has, when that is beyond any machine. */
int64_t ft__graphfile_rows(int dims, const int64_t *dim);

/* Reads the node at hand. */
void ft__graphfile_node(ft_graph_reader *r);

static inline ft_build *ft__graphfile_build(ft_graph_reader *r) { return &r->m->b; }
static inline bool ft__graphfile_failed(const ft_graph_reader *r) { return r->m->b.status != FT_OK; }
#endif
