/* cache.c: room in the cache, in tokens.
 *
 * A sequence's cache is counted with all but one token of a block as padding, so that what is counted is never less
 * than what blocks would hold. Blocks that several requests under way begin with are there once.
 *
 * Engines with a prefix cache give blocks back with their hashes on: they wait in the order in which they were given
 * back, and are there for who asks before their turn to be overwritten has come. So a preempted request goes on where
 * it was, less what others took meanwhile. */
#include "serving/cache.h"

#include <math.h>

#include "serving/prefix.h"

double ft__cache_padding(const ft_replica *r) { return r->policy->block - 1 + r->policy->state; }

double ft__replica_used(const ft_replica *r)
{
    return r->context + r->held + (double)r->decoder_count * ft__cache_padding(r) - r->shared;
}

double ft__cache_context(const ft_replica *r, const ft_live *l)
{
    return (double)l->tokens + 1 + r->policy->accepted * (double)(r->step - l->joined);
}

double ft__cache_growth(const ft_replica *r) { return r->policy->accepted * (double)r->decoder_count; }

/* Blocks of its prompt, the last one only if it is full. */
static int32_t whole_blocks(const ft_replica *r, const ft_live *l)
{
    double whole = floor((double)l->prompt / ft__prefixes_tokens(r->prefixes));
    return l->hash_count < whole ? l->hash_count : (int32_t)whole;
}

static bool hashed(const ft_replica *r, const ft_live *l) { return r->prefixes && l->hash_count > 0; }

static double free_tokens(const ft_replica *r) { return fmax(0, r->policy->capacity - ft__replica_used(r)); }

bool ft__cache_fits(const ft_replica *r, const ft_live *l)
{
    const ft_policy *p = r->policy;
    double prompt = (double)l->tokens + 1 + ft__cache_padding(r), used = ft__replica_used(r) + ft__cache_growth(r);
    if (l->ready) prompt += p->accepted; /* it decodes at once */
    if (ft__replica_idle(r)) return true;
    if (hashed(r, l) && !l->ready) prompt -= ft__prefixes_held(r->prefixes, l->hashes, whole_blocks(r, l));
    if (p->admission == FT_ADMISSION_PROMPT) return used + prompt <= p->capacity;
    double rest = p->reserved_output * (double)(l->answer - l->made);
    return used + prompt <= p->capacity && r->reserved - r->shared + prompt + rest <= p->capacity;
}

void ft__cache_note(ft_replica *r) { r->peak = fmax(r->peak, ft__replica_used(r)); }

void ft__cache_share(ft_replica *r, ft_live *l)
{
    double need = (double)l->tokens + 1 + ft__cache_padding(r), left = l->left_behind;
    if (left > 0) {
        left = fmax(0, left - fmax(0, r->taken - l->left_at));
        left = r->policy->block * floor(left / r->policy->block);
        l->done = (int32_t)fmin(left, (double)l->tokens);
        l->left_behind = 0;
    }
    if (hashed(r, l)) {
        ft__prefixes_trim(r->prefixes, free_tokens(r) + need);
        int32_t known = ft__prefixes_known(r->prefixes, l->hashes, l->hash_count), whole = whole_blocks(r, l);
        double held = ft__prefixes_held(r->prefixes, l->hashes, whole);
        l->held_blocks = ft__prefixes_hold(r->prefixes, l->hashes, whole);
        r->shared += held;
        need -= held;
        if (known > l->done) l->done = known;
    }
    r->taken += need;
    if (l->done >= l->tokens) l->done = l->tokens - 1; /* the last token is computed for its logits */
}

void ft__cache_scheduled(ft_replica *r, ft_live *l, int32_t tokens)
{
    if (!hashed(r, l) || !r->policy->prefix_at_once) return;
    double blocks = floor((double)(l->done + tokens) / ft__prefixes_tokens(r->prefixes));
    int32_t whole = whole_blocks(r, l);
    l->held_blocks = ft__prefixes_add(r->prefixes, l->hashes, l->held_blocks, blocks < whole ? (int32_t)blocks : whole);
}

void ft__cache_computed(ft_replica *r, ft_live *l)
{
    if (hashed(r, l)) l->held_blocks = ft__prefixes_add(r->prefixes, l->hashes, l->held_blocks, whole_blocks(r, l));
}

void ft__cache_release(ft_replica *r, ft_live *l)
{
    if (!l->held_blocks) return;
    ft__prefixes_trim(r->prefixes, free_tokens(r));
    r->shared -= ft__prefixes_release(r->prefixes, l->hashes, l->held_blocks);
    l->held_blocks = 0;
}

void ft__cache_preempted(ft_replica *r, ft_live *l)
{
    if (r->policy->keeps_blocks) {
        l->left_behind = ft__cache_context(r, l);
        l->left_at = r->taken + free_tokens(r);
    }
    ft__cache_release(r, l);
}
