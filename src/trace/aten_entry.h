/* The table's own types; for aten*.c alone. */
#ifndef FT_TRACE_ATEN_ENTRY_H
#define FT_TRACE_ATEN_ENTRY_H
#include "trace/aten.h"

typedef struct ft_calling {
    const char *name; /* without its namespace */
    const ft_inputs *in;
    const char *kernel; /* "" for none */
    double blocks;      /* of all its kernels; 0: not known */
    ft_dtype usual;
    const char *word; /* the table's */
    const int8_t *p;
    ft_called *out;
} ft_calling;

typedef enum ft_aten_role {
    FT_ATEN_ITSELF,
    FT_ATEN_WHOLE, /* stands for all that it calls */
    FT_ATEN_WRAPS  /* stands for itself only where nothing is known that it calls */
} ft_aten_role;

typedef struct ft_aten_entry {
    const char *name;
    bool (*make)(const ft_calling *c);
    ft_called_class class;
    const char *word; /* our operator's name */
    int8_t p[6];      /* places of arguments, and whatever the maker asks for */
    ft_aten_role role;
} ft_aten_entry;

extern const ft_aten_entry ft__aten_table[];
extern const size_t ft__aten_table_count;

bool ft__call_product(const ft_calling *c);
bool ft__call_grouped(const ft_calling *c);
bool ft__call_conv(const ft_calling *c);
bool ft__call_attention(const ft_calling *c);
bool ft__call_optimizer(const ft_calling *c);
bool ft__call_pointwise(const ft_calling *c);
bool ft__call_copy(const ft_calling *c);
bool ft__call_clone(const ft_calling *c);
bool ft__call_padded(const ft_calling *c);
bool ft__call_fill(const ft_calling *c);
bool ft__call_dropout(const ft_calling *c);
bool ft__call_foreach(const ft_calling *c);
bool ft__call_norm(const ft_calling *c);
bool ft__call_batchnorm(const ft_calling *c);
bool ft__call_rows(const ft_calling *c);
bool ft__call_reduce(const ft_calling *c);
bool ft__call_cat(const ft_calling *c);
bool ft__call_lookup(const ft_calling *c);
bool ft__call_scatter(const ft_calling *c);
bool ft__call_pool(const ft_calling *c);
bool ft__call_loss(const ft_calling *c);
bool ft__call_passes(const ft_calling *c);
bool ft__call_generated(const ft_calling *c);

/* Appends a kernel; NULL where there is no room. */
ft_called_part *ft__call_add(const ft_calling *c, ft_op op);
const ft_input *ft__call_input(const ft_calling *c, int at); /* never NULL; an empty one beyond the end */
ft_dtype ft__call_dtype(const ft_calling *c, const ft_input *x);
double ft__call_bytes(const ft_calling *c, const ft_input *x);
#endif
