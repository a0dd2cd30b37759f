/* What attention over chunks of a sequence has of its own, by places or by hashes (buckets.c): reformer. */
#ifndef FT_MODEL_BUCKETS_H
#define FT_MODEL_BUCKETS_H
#include <stdint.h>

/* A query sees its own chunk and so many before and behind it. */
typedef struct ft_chunking {
    int64_t length, before, after;
} ft_chunking;

typedef struct ft_buckets {
    ft_chunking near, alike; /* of the sequence as it stands; as hashes sort it */
    int64_t rounds;          /* of hashing */
    int64_t count[2];        /* buckets, and how often each of them is cut again; 0: by the sequence's length */
    int64_t axial_shape[2];  /* positions are the sum of a row's and a column's; 0: a table of all */
    int64_t axial_width[2];
    double alike_dropout; /* of what hashes put side by side */
    int64_t feed_chunk;   /* tokens that pass the network at once; 0: all */
} ft_buckets;
#endif
