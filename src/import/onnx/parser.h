/* What reads ONNX's messages, in three files: names.c keeps names, nodes.c reads nodes and functions,
 * parse.c the rest. */
#ifndef FT_IMPORT_ONNX_PARSER_H
#define FT_IMPORT_ONNX_PARSER_H
#include "base/text.h"
#include "import/onnx/graph.h"
#include "import/onnx/onnx.pb-c.h"
#include "import/onnx/tensor.h"

typedef struct ft_onnx_names {
    const char **key;
    int32_t *value;
    size_t room, count;
} ft_onnx_names;

typedef struct ft_onnx_parser {
    ft_onnx *o;
    const FtOnnx__Model *model;
    ft_onnx_names all; /* of the graph's own scope */
    int32_t steps;
    ft_error *err;
} ft_onnx_parser;

#define SHOWN(text) (int)ft__utf8_cut(text, 80), text

ft_status ft__onnx_no_memory(const ft_onnx_parser *p);
size_t ft__onnx_slot(const ft_onnx_names *t, const char *key); /* where it is, or where it would be */
bool ft__onnx_names_grow(ft_onnx_names *t, ft_arena *arena);   /* room for one more; false: out of memory */
void ft__onnx_clean(char *text);                               /* what others put into messages must be text */
/* The value of that name in this scope; made when nobody named it before. -1 for no name. */
ft_status ft__onnx_value_of(ft_onnx_parser *p, ft_onnx_names *scope, char *name, int32_t *out);
static inline bool ft__onnx_made(const ft_onnx_value *v) { return v->tensor || v->input || v->maker >= 0; }

/* Nodes of the graph, with functions inlined. */
struct ft_onnx_caller;
ft_status ft__onnx_read_nodes(ft_onnx_parser *p, ft_onnx_names *scope, FtOnnx__Node *const *list, size_t count,
                              const struct ft_onnx_caller *outer, int depth);
#endif
