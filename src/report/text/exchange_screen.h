/* One exchange among GPUs, on one kind of them or on several. */
#ifndef FT_REPORT_TEXT_EXCHANGE_SCREEN_H
#define FT_REPORT_TEXT_EXCHANGE_SCREEN_H
#include "comm/collective.h"
#include "report/text/style.h"
#include "request/collective.h"

typedef struct ft_exchange_case {
    ft_collective_request request;
    ft_comm comm;
} ft_exchange_case;

/* A row per GPU; bandwidths are nccl-tests' two. False: out of memory. */
bool ft__screen_exchange(ft_text *out, const ft_style *style, const ft_exchange_case *cases, size_t count,
                         double quantile);
#endif
