/* One arena per request: results live in it and die with it. */
#ifndef FT_BASE_ARENA_H
#define FT_BASE_ARENA_H
#include <stdbool.h>
#include <stddef.h>

typedef struct ft_arena ft_arena;

ft_arena *ft__arena_new(size_t cap_bytes); /* NULL when memory is exhausted; cap 0: no cap */
void ft__arena_free(ft_arena *a);
void ft__arena_reset(ft_arena *a);                /* keeps the largest block, up to 16 MiB */
void *ft__arena_alloc(ft_arena *a, size_t bytes); /* 16-aligned, zeroed; NULL over the cap or out of memory */
bool ft__arena_full(const ft_arena *a);           /* a piece was refused since the last reset: over the cap */
void *ft__arena_array(ft_arena *a, size_t count, size_t size); /* checks the product for overflow */
void *ft__arena_bare(ft_arena *a, size_t count, size_t size);  /* not zeroed: for what is written before it is read */
char *ft__arena_copy(ft_arena *a, const char *text, size_t length); /* NUL-terminated copy */
#endif
