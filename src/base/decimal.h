/* Numbers in texts are written and read with a point while the library answers. */
#ifndef FT_BASE_DECIMAL_H
#define FT_BASE_DECIMAL_H

typedef struct ft_decimal {
    void *plain, *before; /* locales; NULL: nothing was changed */
} ft_decimal;

/* Of this thread alone. Where there is no memory for it the locale stays as it is. */
void ft__decimal_begin(ft_decimal *d);
void ft__decimal_end(ft_decimal *d);
#endif
