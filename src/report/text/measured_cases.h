/* Measured cases beside their forecasts, one by one: all of them, or the worst. */
#ifndef FT_REPORT_TEXT_MEASURED_CASES_H
#define FT_REPORT_TEXT_MEASURED_CASES_H
#include "kernel/kernel.h"
#include "report/text/columns.h"

typedef struct ft_measured_row {
    double miss; /* |log(forecast / measured)|: twice too long and twice too short are equally wrong */
    char *text;  /* its cells, as a row of a table or as an object of JSON */
} ft_measured_row;

typedef struct ft_measured_cases {
    bool json, every;
    size_t worst, kept;
    ft_measured_row *list; /* the worst so far, by falling miss */
    ft_columns table;
    ft_text objects;
    size_t object_count;
    bool failed;
} ft_measured_cases;

/* `every`: all cases; else the `worst` ones. False: out of memory. End it either way. */
bool ft__measured_begin(ft_measured_cases *c, bool json, bool every, size_t worst);
void ft__measured_end(ft_measured_cases *c);
/* As ft__validate and ft__validate_models call them, with an ft_measured_cases as their context. */
void ft__measured_kernel(void *context, const char *family, const char *variant, const ft_device *device,
                         const ft_op *op, double measured_ms, const ft_forecast *f);
void ft__measured_model(void *context, const char *variant, const char *gpu, const char *description, double measured,
                        const ft_forecast *f, bool memory);
/* The table; of JSON into `objects`, which are counted. */
void ft__measured_print(ft_measured_cases *c, ft_text *out, const ft_style *style);
#endif
