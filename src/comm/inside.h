/* The inside of a node, for cluster.c: its tiers, and what is said of them beside the answer. */
#ifndef FT_COMM_INSIDE_H
#define FT_COMM_INSIDE_H
#include "comm/catalogue.h"
#include "comm/cluster.h"

void ft__inner_tiers(const ft_device *device, int64_t per_node, const ft_network *words, ft_cluster *c);
/* Appended to what was understood of the request. */
void ft__inside_said(const ft_device *device, const ft_network *words, char *out, size_t room);
void ft__slots_said(const ft_device *device, const ft_tier *t, char *out, size_t room);
/* A network no faster than the slot that it comes through. */
void ft__within_slot(const ft_device *device, const ft_network *words, ft_tier *network, char *out, size_t room);
#endif
