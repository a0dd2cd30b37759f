/* Numbers as people write them, that no option takes as they stand. */
#ifndef CLI_MEANT_NUMBER_H
#define CLI_MEANT_NUMBER_H
#include <stdbool.h>
#include <stddef.h>

typedef struct cli_meant {
    char number[48]; /* as it would be taken: "100e3"; "" where none is seen in it */
    char binary[24]; /* "8k" as 8192, which lengths mostly are; "" of other numbers */
    bool foreign;    /* an amount of money, and not of dollars */
} cli_meant;

/* What "$100k", "300B", "16,384" or "100 EUR" was meant to be. */
cli_meant cli_meant_number(const char *text);
#endif
