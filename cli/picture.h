/* --html, --svg and --picture: a forecast as a page or as one picture, written beside what is printed. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H
#include "options.h"
#include "report/html/page.h"
#include "report/html/page_compare.h"
#include "report/html/page_serve.h"

/* Each writes what was asked for; 0, or the exit status after complaining. A file is there whole or not at all. */
int cli_picture_step(const cli_args *args, const ft_step_view *v);
int cli_picture_infer(const cli_args *args, const ft_infer *r);
int cli_picture_serve(const cli_args *args, const ft_serving *s);
int cli_picture_scale(const cli_args *args, const ft_scale *s);
int cli_picture_kernel(const cli_args *args, const ft_screen_case *cases, size_t count, double quantile);
int cli_picture_sweep(const cli_args *args, const ft_page_sweep_case *s);
int cli_picture_compared(const cli_args *args, const ft_comparison *c);
int cli_picture_largest(const cli_args *args, const ft_largest *r);
/* Of flags alone, before anything is forecast. */
int cli_picture_check(const cli_args *args);
bool cli_picture_wanted(const cli_args *args);
int cli_picture_range(const cli_args *args, const ft_page_range *r);
int cli_picture_steps(const cli_args *args, const char *title, const ft_step_case *cases, size_t count,
                      double quantile);
#endif
