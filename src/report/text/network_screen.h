/* Rank groups, and exchanges as a network simulator saw them. */
#ifndef FT_REPORT_TEXT_NETWORK_SCREEN_H
#define FT_REPORT_TEXT_NETWORK_SCREEN_H
#include "comm/simgrid.h"
#include "layout/layout.h"
#include "report/text/style.h"

/* Megatron's groups of a layout, an axis after the other; where there are many, the first ones and how many more. */
void ft__screen_groups(ft_text *out, const ft_style *style, const ft_parallel *p);
void ft__answer_groups(ft_text *out, const ft_parallel *p); /* ,"groups":{"tensor":[[0,1],...],...} */

/* Closed form against simulation, one row per exchange. False: out of memory. */
bool ft__screen_network(ft_text *out, const ft_style *style, const ft_simulated *s);
void ft__answer_network(ft_text *out, const ft_simulated *s); /* ,"network":{...} */
#endif
