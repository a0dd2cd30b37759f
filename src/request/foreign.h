/* Other software's names for our keys and words: nothing is read by them, but who types one is told ours. */
#ifndef FT_REQUEST_FOREIGN_H
#define FT_REQUEST_FOREIGN_H
#include "request/keys.h"

typedef struct ft_foreign {
    const char *theirs; /* with underscores */
    ft_key_id key;
    const char *value; /* of a switch of theirs: what it sets ours to; NULL: as it is given */
} ft_foreign;

extern const ft_foreign ft__foreign[];
extern const size_t ft__foreign_count;

/* The key that is meant; FT_KEY_COUNT: none. */
ft_key_id ft__foreign_key(const char *said);
/* What ours is of a setting that is counted in another way: its value is not ours. NULL: it is counted alike. */
const char *ft__foreign_meaning(const ft_foreign *f);
/* Why no request has a setting of other software, for the end of a sentence; NULL: it is not one of those. */
const char *ft__foreign_unasked(const char *said);
/* Of a key's words the one that is meant, and what else is to be said ("" or beginning with a blank). NULL: none. */
const char *ft__foreign_word(const char *key, const char *said, const char *const *candidates, size_t count,
                             const char **beside);
/* "8xh100", "h100:8", "8 h100": how many, and which. A file's path is neither. */
bool ft__foreign_gpus(const char *said, int *count, char which[80]);
#endif
