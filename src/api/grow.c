/* grow.c: structs between a program and a library of different ages. */
#include "api/grow.h"

#include <string.h>

#include "foretell.h"

ft_status ft__take_struct(void *ours, size_t our_size, const void *theirs, size_t their_size, const char *what,
                          ft_error *err)
{
    const unsigned char *bytes = theirs;
    for (size_t i = our_size; i < their_size; i++)
        if (bytes[i])
            return ft__fail_at(err, FT_E_UNSUPPORTED, what, 0, 0,
                               "the %s come from a program made for a newer libforetell than this one, " FT_VERSION,
                               what);
    memcpy(ours, theirs, their_size < our_size ? their_size : our_size);
    return FT_OK;
}

void ft__give_struct(void *theirs, size_t their_size, const void *ours, size_t our_size)
{
    memcpy(theirs, ours, their_size < our_size ? their_size : our_size);
    if (their_size > our_size) memset((char *)theirs + our_size, 0, their_size - our_size);
}
