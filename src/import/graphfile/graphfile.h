/* A graph file (.ft.json): operators with shapes, written by hand or by an exporter. docs/graph.md is its manual. */
#ifndef FT_IMPORT_GRAPHFILE_GRAPHFILE_H
#define FT_IMPORT_GRAPHFILE_GRAPHFILE_H
#include "model/parts.h"

bool ft__graphfile_is(const json_t *object); /* it says so: "foretell_graph" */
/* Gives values their names in a graph as the catalogue stores it (counted.c). */
ft_status ft__graphfile_spell(json_t *file, ft_error *err);
/* Reads the file's frame; its operators are checked when the graph is made, with the sizes of the workload. */
ft_status ft__graphfile_read(const json_t *object, const char *where, ft_arch *out, ft_error *err);
/* Which sizes the file fixes: fixed_batch, fixed_seq, samples, usual_batch, usual_seq. ft__graphfile_read calls it. */
ft_status ft__graphfile_sizes(const json_t *file, const char *where, ft_arch *out, ft_error *err);
#endif
