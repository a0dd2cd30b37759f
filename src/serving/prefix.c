/* prefix.c: an open-addressing table of hashes; blocks that nobody holds are in a list by use. */
#include "serving/prefix.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, UNUSED = -1 };

typedef struct entry {
    uint64_t hash;
    int32_t newer, older; /* of the list, where nobody holds it */
    int32_t holders;      /* requests under way; UNUSED: the entry is free */
} entry;

struct ft_prefixes {
    double tokens;
    entry *at; /* entries; freed ones are reused */
    int32_t count, room, spare;
    int32_t *slot;  /* entry + 1; 0: free */
    uint32_t slots; /* a power of two, more than twice the entries */
    int32_t newest, oldest;
    int32_t kept, loose; /* blocks; those that nobody holds */
};

ft_prefixes *ft__prefixes_new(double tokens)
{
    ft_prefixes *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->tokens = tokens;
    p->newest = p->oldest = p->spare = NONE;
    return p;
}

double ft__prefixes_tokens(const ft_prefixes *p) { return p->tokens; }

static uint32_t place(const ft_prefixes *p, uint64_t hash)
{
    uint32_t i = (uint32_t)((hash * 0x9e3779b97f4a7c15u) >> 32) & (p->slots - 1);
    while (p->slot[i] && p->at[p->slot[i] - 1].hash != hash) i = (i + 1) & (p->slots - 1);
    return i;
}

static int32_t find(const ft_prefixes *p, uint64_t hash) { return p->slots ? p->slot[place(p, hash)] - 1 : NONE; }

static void unlink_entry(ft_prefixes *p, int32_t e)
{
    p->loose--;
    int32_t newer = p->at[e].newer, older = p->at[e].older;
    if (newer != NONE)
        p->at[newer].older = older;
    else
        p->newest = older;
    if (older != NONE)
        p->at[older].newer = newer;
    else
        p->oldest = newer;
}

static void link_newest(ft_prefixes *p, int32_t e)
{
    p->loose++;
    p->at[e].newer = NONE;
    p->at[e].older = p->newest;
    if (p->newest != NONE) p->at[p->newest].newer = e;
    p->newest = e;
    if (p->oldest == NONE) p->oldest = e;
}

static int rebuild(ft_prefixes *p, uint32_t slots)
{
    int32_t *slot = calloc(slots, sizeof *slot);
    if (!slot) return 0;
    free(p->slot);
    p->slot = slot;
    p->slots = slots;
    for (int32_t e = 0; e < p->count; e++)
        if (p->at[e].holders != UNUSED) p->slot[place(p, p->at[e].hash)] = e + 1;
    return 1;
}

/* Backward-shift deletion: those behind it in the same run move up. */
static void forget(ft_prefixes *p, int32_t e)
{
    uint32_t mask = p->slots - 1, hole = place(p, p->at[e].hash), i = hole;
    for (;;) {
        i = (i + 1) & mask;
        if (!p->slot[i]) break;
        uint32_t home = (uint32_t)((p->at[p->slot[i] - 1].hash * 0x9e3779b97f4a7c15u) >> 32) & mask;
        if (((i - home) & mask) < ((i - hole) & mask)) continue;
        p->slot[hole] = p->slot[i];
        hole = i;
    }
    p->slot[hole] = 0;
    unlink_entry(p, e);
    p->at[e].holders = UNUSED;
    p->at[e].newer = p->spare;
    p->spare = e;
    p->kept--;
}

static int add(ft_prefixes *p, uint64_t hash)
{
    if (2 * (uint32_t)(p->kept + 1) > p->slots && !rebuild(p, p->slots ? 2 * p->slots : 1024)) return 0;
    int32_t e = p->spare;
    if (e != NONE) {
        p->spare = p->at[e].newer;
    } else {
        if (p->count == p->room) {
            int32_t room = p->room ? 2 * p->room : 512;
            entry *at = realloc(p->at, (size_t)room * sizeof *at);
            if (!at) return 0;
            p->at = at;
            p->room = room;
        }
        e = p->count++;
    }
    p->at[e] = (entry){.hash = hash, .newer = NONE, .older = NONE, .holders = 1};
    p->slot[place(p, hash)] = e + 1;
    p->kept++;
    return 1;
}

int32_t ft__prefixes_known(const ft_prefixes *p, const uint64_t *hashes, int32_t count)
{
    int32_t known = 0;
    while (known < count && find(p, hashes[known]) != NONE) known++;
    return (int32_t)(known * p->tokens);
}

int32_t ft__prefixes_held(const ft_prefixes *p, const uint64_t *hashes, int32_t count)
{
    int32_t held = 0, e;
    while (held < count && (e = find(p, hashes[held])) != NONE && p->at[e].holders > 0) held++;
    return (int32_t)(held * p->tokens);
}

int32_t ft__prefixes_hold(ft_prefixes *p, const uint64_t *hashes, int32_t count)
{
    int32_t known = 0, e;
    for (; known < count && (e = find(p, hashes[known])) != NONE; known++)
        if (p->at[e].holders++ == 0) unlink_entry(p, e);
    return known;
}

int32_t ft__prefixes_add(ft_prefixes *p, const uint64_t *hashes, int32_t held, int32_t count)
{
    while (held < count && find(p, hashes[held]) == NONE && add(p, hashes[held])) held++;
    return held;
}

/* The last block leaves first: who begins like it can use those before it without it, not the other way round. */
double ft__prefixes_release(ft_prefixes *p, const uint64_t *hashes, int32_t held)
{
    double others = 0;
    for (int32_t i = held; i-- > 0;) {
        int32_t e = find(p, hashes[i]);
        if (--p->at[e].holders == 0)
            link_newest(p, e);
        else
            others += p->tokens;
    }
    return others;
}

void ft__prefixes_trim(ft_prefixes *p, double room)
{
    while (p->loose > 0 && p->loose * p->tokens > room) forget(p, p->oldest);
}

void ft__prefixes_free(ft_prefixes *p)
{
    if (!p) return;
    free(p->at);
    free(p->slot);
    free(p);
}
