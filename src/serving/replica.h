/* One engine over time: a queue, prompts under way, sequences that decode, a cache of so many tokens. */
#ifndef FT_SERVING_REPLICA_H
#define FT_SERVING_REPLICA_H
#include "serving/cost.h"
#include "serving/queue.h"

/* An engine's settings with what a request changed of them. */
typedef struct ft_policy {
    ft_order order;
    ft_admission admission;
    bool chunked;
    double budget, max_sequences, join_iterations; /* tokens of an iteration; sequences at once; iterations */
    double capacity;                               /* tokens in the cache, over all attention-data-parallel ranks */
    double block;                                  /* tokens of a block of the cache */
    double state;                                  /* tokens' worth of room that a sequence's states take */
    double wait_iterations, wait_tokens; /* prompts wait beside decoders until so many tokens are there together */
    double receive_interval;             /* iterations of decoding between two looks for new requests */
    bool launched_ahead;                 /* while an iteration runs, the next one is chosen already */
    double reserved_output;              /* share of an answer */
    double swap_ms;                      /* of a token's cache to the host or back; 0: it is computed again */
    bool keeps_blocks;                   /* who was preempted finds again what nobody has overwritten */
    bool prefix_at_once;                 /* others find a prompt's blocks in the step that computes them */
    double drafts, accepted;             /* tokens proposed in a step, and made in it: 0 and 1 without speculation */
    double stream_ms;                    /* of the front end, for every token */
    bool prefill_only;                   /* prompts are handed over to other engines when their first token is made */
    ft_scheduling scheduling;
} ft_policy;

/* A request under way. */
typedef struct ft_live {
    double sent_ms, arrived_ms, started_ms, first_ms; /* sent and first as the client sees it; not yet: -1 */
    double queued_ms;                                 /* in the queues of its engines, before it began in each */
    int32_t prompt, answer;                           /* as sent */
    int32_t tokens, done; /* to compute before it decodes (what was made before it was preempted too); computed */
    int32_t known;        /* of the prompt, in the cache when it first began */
    int32_t made;         /* tokens of the answer when it last began to decode */
    int32_t client, priority, turn;
    int64_t joined, finish;          /* decode steps of the replica */
    double reserved;                 /* tokens of the cache that are promised to it */
    uint64_t order;                  /* of starting */
    uint64_t *hashes;                /* owned; NULL: none */
    int32_t hash_count, held_blocks; /* of its prompt; those that the prefix cache keeps for it */
    double left_behind,
        left_at;  /* tokens in the cache when it was preempted; the replica's `taken` that reaches them */
    bool ready;   /* its cache arrives filled */
    bool swapped; /* its cache waits on the host */
} ft_live;

typedef struct ft_pool {
    ft_live *at;
    uint32_t count, room, spare; /* spare: first of the free ones, chained through `tokens`; UINT32_MAX: none */
} ft_pool;
bool ft__pool_take(ft_pool *p, uint32_t *out); /* zeroed; false: out of memory */
void ft__pool_give(ft_pool *p, uint32_t index);
void ft__pool_free(ft_pool *p);

typedef struct ft_due {
    int64_t finish;
    uint64_t order; /* of starting */
    uint32_t index;
} ft_due;
typedef struct ft_piece {
    uint32_t index;
    int32_t tokens;
} ft_piece;

/* What a replica tells of: a first token, an end (or a prompt that is to be handed over), `count` gaps between tokens
 * of decoding sequences, an iteration (or `steps` equal ones). */
typedef struct ft_listener {
    void *user;
    bool (*first)(void *user, uint32_t index, double ms);
    bool (*ended)(void *user, uint32_t index, double ms);
    void (*gaps)(void *user, double ms, double count);
    void (*iterated)(void *user, const ft_iteration *i, double start_ms, double ms, double steps);
} ft_listener;

typedef struct ft_prefixes ft_prefixes; /* prefix.h */

typedef struct ft_replica {
    const ft_costs *costs;
    const ft_policy *policy;
    ft_pool *pool;
    const ft_listener *listener;
    ft_prefixes *prefixes;   /* NULL: prompts share nothing */
    double now_ms, front_ms; /* the engine's clock; until when its front end is busy */
    double since_decode_ms;  /* iterations of prompts alone since the last step of the decoders */
    ft_queue queue;
    ft_piece *prompts; /* under way, oldest first; `tokens` of this iteration */
    size_t prompt_count, prompt_room;
    ft_due *decoding; /* a heap by the step in which they end */
    size_t decoder_count, decoder_room;
    int64_t step;          /* decode steps so far */
    double context;        /* tokens in the caches of those that decode */
    double held;           /* tokens of prompts under way and of padding */
    double shared;         /* tokens of them that several begin with, but for the first of these */
    double taken;          /* tokens that were ever given room */
    double reserved;       /* of admission by reservation: promised tokens */
    double waited;         /* iterations that prompts waited for other ranks, or for more of them */
    double waiting_tokens; /* of prompts in the queue, to compute */
    double unseen;         /* iterations of decoding since the engine last looked for requests */
    double seen_ms;        /* what had come by then it knows of */
    double begun_ms;       /* when the last iteration began */
    uint64_t order;
    double just_ended; /* requests, in the iteration that ends at now_ms */
    int64_t preemptions;
    double peak, blocked_ms; /* tokens in the cache at most; time in which the cache kept requests waiting */
    bool blocked, full;      /* now: by the cache; by max_sequences */
    double full_ms;
    bool foresees;          /* one of several: steps are put off until somebody asks */
    double ahead, ahead_ms; /* steps of decoding that nothing changes in before the last of them; when that begins */
} ft_replica;

/* due.c: the heap of those that decode: the one at i may end sooner than those above it; the one at i goes. */
void ft__due_settle(ft_due *heap, size_t i);
void ft__due_remove(ft_replica *r, size_t i);

/* waits.c: why requests that came and fit do not start yet. */
void ft__replica_look(ft_replica *r);              /* takes notice of what has come, if it is time to */
bool ft__replica_sees(const ft_replica *r);        /* the queue's first has been noticed */
double ft__replica_waits(const ft_replica *r);     /* iterations that prompts go on waiting at most; 0: they do not */
double ft__replica_unnoticed(const ft_replica *r); /* iterations until the next look */

/* Puts a request into the queue. */
bool ft__replica_take(ft_replica *r, uint32_t index);
bool ft__replica_idle(const ft_replica *r);
/* One iteration, or as many equal ones as go before anything changes; none begins at or after `until_ms`. Of several
 * engines: what goes before is put off (`ahead`), and the iteration that changes something is the next one. */
bool ft__replica_advance(ft_replica *r, double until_ms);
/* The steps that were put off, or those of them that begin before `until_ms`; the rest is foreseen anew. */
bool ft__replica_catch_up(ft_replica *r, double until_ms);
double ft__replica_used(const ft_replica *r); /* tokens in its cache */
void ft__replica_free(ft_replica *r);
#endif
