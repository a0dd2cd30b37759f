/* What weights of a model are stored in, by the kind of module that holds them.
 *
 * Checkpoints quantise some modules and leave others: experts in mxfp4 beside attention in bf16 (gpt-oss), all but the
 * head in fp8 (DeepSeek), all but attention's inner projections in nvfp4. A format says how a weight lies in memory and
 * what its product computes in. */
#ifndef FT_GRAPH_FORMAT_H
#define FT_GRAPH_FORMAT_H
#include "foretell.h"
#include "graph/site.h"

typedef enum ft_weight_class {
    FT_OF_ATTENTION, /* projections into attention, linear attention and state spaces */
    FT_OF_OUTPUT,    /* and out of them */
    FT_OF_MLP,
    FT_OF_EXPERTS,
    FT_OF_SHARED, /* experts that every token passes */
    FT_OF_HEAD,
    FT_OF_OTHER, /* routers, gates, embeddings: as the model computes */
    FT_OF_COUNT
} ft_weight_class;

typedef struct ft_weight_format {
    bool given;        /* false: as the model computes and stores everything else */
    ft_storage stored; /* FT_STORED_AS_COMPUTED: in the format of `math` */
    ft_dtype math;
} ft_weight_format;

typedef struct ft_formats {
    ft_weight_format of[FT_OF_COUNT];
    ft_weight_kernel said, loaded; /* who widens weights of few bits: as asked, or as the library that loads them */
} ft_formats;

ft_weight_class ft__weight_class(ft_at at, bool shared);
/* Bytes of an element in this format. */
double ft__format_bytes(const ft_weight_format *format);
/* Formats of llama.cpp's files; by name (FT_STORED_AS_COMPUTED: none is called so). */
bool ft__gguf_stores(ft_storage stored);
ft_storage ft__gguf_named(const char *word);
/* The bits that such a format is called after: 5 of q5_k_m. */
double ft__gguf_bits(ft_storage stored);
#endif
