/* A step as MLCommons Chakra execution traces: one graph of nodes per rank, which ASTRA-sim runs on networks of its
 * own.
 *
 * Without protobuf-c the function answers FT_E_UNSUPPORTED and says so. */
#ifndef FT_REPORT_TRACE_CHAKRA_H
#define FT_REPORT_TRACE_CHAKRA_H
#include "study/step_view.h"

/* Files of more ranks than this are left out: those of one rank per stage are written instead. Nodes of one rank are
 * limited too: blocks of equal layers are written as one node each beyond. */
enum { FT_CHAKRA_RANKS = 64, FT_CHAKRA_NODES = 200000 };

/* Takes one file; false stops. */
typedef bool (*ft_file_sink)(void *user, const char *name, const char *at, size_t length);

/* "step.RANK.et" for every rank (or one per stage), and "groups.json" with the ranks of each communicator. */
ft_status ft__chakra(const ft_step_view *v, ft_file_sink sink, void *user, ft_error *err);
#endif
