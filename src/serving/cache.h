/* What a replica's cache holds: sequences, blocks that they share, blocks that the preempted left behind. */
#ifndef FT_SERVING_CACHE_H
#define FT_SERVING_CACHE_H
#include "serving/replica.h"

double ft__cache_padding(const ft_replica *r);                   /* tokens that a sequence takes beside its own */
double ft__cache_context(const ft_replica *r, const ft_live *l); /* tokens of one that decodes */
double ft__cache_growth(const ft_replica *r);                    /* tokens that the next step adds */
bool ft__cache_fits(const ft_replica *r, const ft_live *l);      /* a request may start */
void ft__cache_note(ft_replica *r);                              /* the peak */

void ft__cache_share(ft_replica *r, ft_live *l); /* a request starts: what of it need not be computed */
void ft__cache_scheduled(ft_replica *r, ft_live *l, int32_t tokens); /* so many tokens of its prompt are in a step */
void ft__cache_computed(ft_replica *r, ft_live *l);                  /* its prompt is there for others */
void ft__cache_preempted(ft_replica *r, ft_live *l);                 /* before its tokens are given back */
void ft__cache_release(ft_replica *r, ft_live *l);                   /* the same of one that ends */
#endif
