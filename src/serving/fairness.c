/* fairness.c: how evenly clients were served. */
#include <math.h>

#include "serving/simulate.h"

/* Jain's index of the tokens that clients were served, and the longest mean wait over the mean of all. */
void ft__judge_fairness(const ft_client_service *clients, size_t count, ft_outcome *out)
{
    double sum = 0, squares = 0, worst = 0, waits = 0, n = 0;
    for (size_t i = 0; i < count; i++) {
        const ft_client_service *c = &clients[i];
        if (c->requests <= 0) continue;
        double wait = c->wait_ms / c->requests;
        sum += c->tokens;
        squares += c->tokens * c->tokens;
        waits += wait;
        worst = fmax(worst, wait);
        n++;
    }
    out->clients = (int64_t)n;
    if (n < 2) return;
    out->jain = squares > 0 ? sum * sum / (n * squares) : 1;
    out->worst_client_ratio = waits > 0 ? worst / (waits / n) : 1;
}
