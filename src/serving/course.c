/* course.c: what engines did over time: which moments are kept, and the work of iterations added up. */
#include <math.h>

#include "serving/simulate.h"
#include "serving/step_constants.h"

bool ft__course_due(ft_course *c)
{
    if (++c->skipped < c->every) return false;
    c->skipped = 0;
    if (c->count == FT_COURSE) { /* every other point goes */
        for (int i = 0; i < FT_COURSE / 2; i++) c->at[i] = c->at[2 * i];
        c->count = FT_COURSE / 2;
        c->every *= 2;
    }
    return true;
}

void ft__worked_add(ft_worked *w, const ft_iteration *i, double steps)
{
    w->steps += steps;
    w->decoders += steps * i->decoders;
    w->context += steps * i->context;
    w->prompts += steps * i->prompts;
    w->prompt_tokens += steps * i->prompt_tokens;
    w->rows += steps * i->rows;
}

bool ft__queue_grows(const ft_outcome *o, int64_t requests)
{
    double many = fmax(32, FT_K_STEP_UNSTABLE_SHARE * (double)requests);
    return o->waiting_end > many && o->waiting_end > FT_K_STEP_UNSTABLE_GROWTH * o->waiting_half;
}
