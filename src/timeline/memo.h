/* Forecasts of equal operators are made once. The step looks up a hundred operators on one device, so that what belongs
 * to the request (predictor, device, quantile) is hashed once for all of them. */
#ifndef FT_TIMELINE_MEMO_H
#define FT_TIMELINE_MEMO_H
#include "timeline/step.h"

/* One that several threads ask, each through a memo of its own that joined it; it is freed after these. Nobody looks
 * anything up in it himself. */
ft_memo *ft__memo_new_common(void); /* NULL: out of memory */
void ft__memo_join(ft_memo *m, ft_memo *common);
/* Looks at all of the device's fields, not at its address: a request's device may stand where another one stood, and
 * may differ from the last one of its name in any figure. */
void ft__memo_focus(ft_memo *m, const ft_predictor *p, const ft_device *device, double quantile);
/* For what was focused on. The pointer lives until the next call. Operators are checked before they are forecast. */
ft_status ft__memo_find(ft_memo *m, const ft_predictor *p, const ft_device *device, const ft_op *op, double quantile,
                        const ft_forecast **out, ft_error *err);
/* Bytes that putting a step's tensors through the allocator gave, by their key (memory/rehearse.h). */
bool ft__memo_recalls(const ft_memo *m, const uint64_t key[2], double *bytes);
void ft__memo_keep(ft_memo *m, const uint64_t key[2], double bytes);
#endif
