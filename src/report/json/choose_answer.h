/* A choice of GPUs as one JSON object. */
#ifndef FT_REPORT_JSON_CHOOSE_ANSWER_H
#define FT_REPORT_JSON_CHOOSE_ANSWER_H
#include "report/json/answer.h"
#include "search/choose.h"

/* What runs: degrees, micro-batch, recomputation. */
void ft__answer_layout(ft_text *out, const ft_layout *l);
/* choose_options.c: `options`, all choices in few words; `pareto`, those of the front; `knee`, one of them. For choices
 * of any type: an array of `count`, `size` bytes each. */
typedef struct ft_option_list {
    const void *choices;
    size_t count, size;
    void (*option)(ft_text *out, const void *choice);
    void (*point)(ft_text *out, const void *choice); /* of the front */
    bool (*on_front)(const void *choice);
    bool (*is_knee)(const void *choice);
} ft_option_list;
void ft__answer_option_list(ft_text *out, const ft_option_list *l);
void ft__answer_options(ft_text *out, const ft_chosen *c);
void ft__answer_choose(ft_text *out, const json_t *id, const ft_chosen *c);
/* What an offer costs, of so many GPUs whose instances hold `joined` of them each at least; 0: any. */
void ft__answer_offer(ft_text *out, const char *key, const ft_offer *o, int64_t gpus, int64_t joined);
#endif
