/* Where in a model a node or a block stands.
 *
 * A pass that treats one place of a model in its own way (the keys' projection is cut by key-value heads, what goes to
 * the experts is exchanged, an activation runs again) asks for the site. Names are what reports print, and nothing else
 * asks for them: a node may be called anything. Builders say the site with every node, gradients and second runs keep
 * that of the node that they undo or repeat, and what a compiler fused is at FT_SITE_FUSED. Files that know names alone
 * get their sites from import/site.c, the only place where a name decides. */
#ifndef FT_GRAPH_SITE_H
#define FT_GRAPH_SITE_H
#include <stdbool.h>
#include <stdint.h>

typedef enum ft_site {
#define FT_SITE(which, name, of, caller) FT_SITE_##which,
#include "graph/site_list.h"
#undef FT_SITE
    FT_SITE_COUNT
} ft_site;

/* Equal sites have equal addresses: nodes of one module and name have the same one. */
typedef struct ft_site_info {
    const char *name;              /* in reports: "attn.q_proj" */
    const struct ft_site_info *of; /* the module that it is part of: "attn"; itself where it is a module */
    ft_site site;
    bool outer; /* issued by the layer's or the model's own function, not by the module's */
} ft_site_info;
typedef const ft_site_info *ft_at;

extern const ft_site_info ft__sites[FT_SITE_COUNT];
#define FT_AT(which) (&ft__sites[FT_SITE_##which])

/* What a block is to those who share a model out, wrap it or hold its values. */
typedef enum ft_block_kind {
    FT_BLOCK_OTHER,
    FT_BLOCK_EMBEDDING, /* what stands before the layers */
    FT_BLOCK_LAYERS,
    FT_BLOCK_STAGE, /* of a model of images */
    FT_BLOCK_END,   /* of a trunk whose result another one reads: its last norm, its projection */
    FT_BLOCK_HEAD,  /* of the model */
    FT_BLOCK_UPDATE
} ft_block_kind;

/* Which function runs it: the model's, or one of several trunks'. A file's own trunks are numbered behind these. */
typedef enum ft_trunk {
    FT_TRUNK_MODEL,
    FT_TRUNK_ENCODER,
    FT_TRUNK_DECODER,
    FT_TRUNK_VISION,
    FT_TRUNK_TEXT,
    FT_TRUNK_COUNT
} ft_trunk;

typedef enum ft_block_site {
#define FT_BLOCK_ENTRY(which, name, kind, trunk) FT_BLOCK_AT_##which,
#include "graph/block_list.h"
#undef FT_BLOCK_ENTRY
    FT_BLOCK_AT_COUNT
} ft_block_site;

typedef struct ft_block_info {
    const char *name;
    ft_block_kind kind;
    int32_t trunk;
} ft_block_info;

extern const ft_block_info ft__block_infos[FT_BLOCK_AT_COUNT];
#define FT_BLOCK(which) (&ft__block_infos[FT_BLOCK_AT_##which])
#endif
