/* What a model of bytes has around its own layers (bytes.c): blt. */
#ifndef FT_MODEL_BYTES_H
#define FT_MODEL_BYTES_H
#include <stdbool.h>
#include <stdint.h>

/* A stack of layers beside the model's own: what of it differs. */
typedef struct ft_stack_size {
    int64_t layers, hidden, ffn, heads, kv_heads;
    bool looks_each; /* every layer looks at what another stack made; otherwise one does */
} ft_stack_size;

typedef struct ft_bytes {
    int64_t group; /* bytes of a group; 0: words, as elsewhere */
    int64_t parts; /* narrow states that make up a group's wide one */
    int64_t hashes, hash_rows;
    ft_stack_size reader, writer, grouper; /* of bytes: before, behind, and what tells where groups begin */
} ft_bytes;
#endif
