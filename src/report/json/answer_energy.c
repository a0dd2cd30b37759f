/* answer_energy.c: what runs draw, as a member of an answer. */
#include "report/json/answer_energy.h"

#include "report/json/answer.h"

void ft__answer_energy(ft_text *out, const ft_energy *e, double gpus, const char *what, double count)
{
    if (!(e->joules > 0)) return;
    ft__json_member_open(out, "energy");
    ft__answer_figure(out, "joules_per_step", e->joules * gpus);
    ft__answer_figure(out, "low_joules", e->low_joules * gpus);
    ft__answer_figure(out, "high_joules", e->high_joules * gpus);
    ft__answer_figure(out, "watts_per_gpu", e->watts);
    ft__answer_figure(out, "node_watts_per_gpu", e->node_watts);
    ft__answer_figure(out, what, count / (e->joules * gpus));
    ft__json_close(out);
}
