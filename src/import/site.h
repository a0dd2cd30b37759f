/* Sites of files that know names alone. */
#ifndef FT_IMPORT_SITE_H
#define FT_IMPORT_SITE_H
#include "graph/graph.h"

/* The site of a node of this name, for as long as the graph lives; NULL when memory is exhausted. */
ft_at ft__import_site(ft_graph *g, const char *name);
/* What a block of this name is, behind those that the graph has. The name must outlive the graph. */
ft_block_info ft__import_block(const ft_graph *g, const char *name);
/* Whether a parameter of this name is all experts' of a layer. */
ft_expert_part ft__import_expert(const char *name);
#endif
