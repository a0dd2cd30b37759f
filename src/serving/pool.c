/* pool.c: requests under way, in one array whose free places are chained. */
#include <stdlib.h>
#include <string.h>

#include "serving/replica.h"

bool ft__pool_take(ft_pool *p, uint32_t *out)
{
    if (p->count == 0 && p->room == 0) p->spare = UINT32_MAX;
    if (p->spare == UINT32_MAX) {
        if (p->count == p->room) {
            uint32_t room = p->room ? 2 * p->room : 256;
            ft_live *at = realloc(p->at, room * sizeof *at);
            if (!at) return false;
            p->at = at;
            p->room = room;
        }
        *out = p->count++;
    } else {
        *out = p->spare;
        p->spare = (uint32_t)p->at[p->spare].tokens;
    }
    memset(&p->at[*out], 0, sizeof p->at[*out]);
    return true;
}

void ft__pool_give(ft_pool *p, uint32_t index)
{
    free(p->at[index].hashes);
    p->at[index].hashes = NULL;
    p->at[index].tokens = (int32_t)p->spare;
    p->spare = index;
}

void ft__pool_free(ft_pool *p)
{
    for (uint32_t i = 0; i < p->count; i++) free(p->at[i].hashes);
    free(p->at);
    *p = (ft_pool){0};
}
