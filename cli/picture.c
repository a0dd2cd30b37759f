/* picture.c: writing pages and pictures. */
#include "picture.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ask.h"
#include "base/file.h"
#include "terminal.h"

bool cli_picture_wanted(const cli_args *args) { return cli_value(args, OPT_HTML) || cli_value(args, OPT_SVG); }

/* A picture under such a name would open nowhere. */
static bool is_another_kind(const char *path)
{
    static const char *const kinds[] = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcasecmp(dot, kinds[i])) return true;
    return false;
}

int cli_picture_check(const cli_args *args)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    if (cli_has(args, OPT_PICTURE) && !svg) return cli_usage(args->command, "--picture chooses what --svg FILE draws");
    if (svg && is_another_kind(svg))
        return cli_usage(args->command, "--svg writes SVG, and nothing reads it as \"%s\": end its name in .svg", svg);
    if (html && svg && !strcmp(html, svg)) return cli_usage(args->command, "--html and --svg name the same file");
    return 0;
}

/* Takes the text. */
static int write_text(const char *path, ft_text *text, bool made)
{
    ft_error err = {0};
    int status = 0;
    if (!made || text->failed)
        status = cli_complain(FT_E_MEMORY, "out of memory for '%s'", path);
    else if (ft__file_write(path, text->at, text->length, &err) != FT_OK)
        status = cli_fail(&err);
    ft__text_free(text);
    return status;
}

/* A page that the command line asked for warns in its flags. */
static const char *in_flags(const cli_args *args, const char *lines, ft_text *said)
{
    cli_ask_in_flags(args, lines, said);
    return said->failed || !said->at ? "" : said->at;
}

/* The same of what owns its warnings: `to` is the copy's. */
static bool warned(const cli_args *args, const ft_text *from, ft_text *to)
{
    *to = (ft_text){0};
    in_flags(args, from->at, to);
    return !to->failed;
}

int cli_picture_step(const cli_args *args, const ft_step_view *v)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG), *name = cli_value(args, OPT_PICTURE);
    ft_text page = {0}, picture = {0};
    ft_error err = {0};
    int status = 0;
    if (svg && ft__picture_step(&picture, &ft__frame_alone, v, name ? name : "roofline", &err) != FT_OK) {
        ft__text_free(&picture);
        return cli_fail(&err);
    }
    if (html) {
        ft_text said = {0};
        ft_step_view as = *v;
        as.warnings = in_flags(args, v->warnings, &said);
        bool made = !said.failed && ft__page_step(&page, &as);
        status = write_text(html, &page, made);
        ft__text_free(&said);
    }
    if (!status && svg) status = write_text(svg, &picture, true);
    ft__text_free(&picture);
    return status;
}

int cli_picture_infer(const cli_args *args, const ft_infer *r)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    ft_text page = {0}, picture = {0};
    ft_text said = {0};
    ft_infer as = *r;
    as.title.warnings = in_flags(args, r->title.warnings, &said);
    bool made = !html || (!said.failed && ft__page_infer(&page, &as));
    ft__text_free(&said);
    int status = html ? write_text(html, &page, made) : 0;
    if (!svg || status) return status;
    made = ft__picture_infer(&picture, &ft__frame_alone, r, true);
    return write_text(svg, &picture, made);
}

int cli_picture_serve(const cli_args *args, const ft_serving *s)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    ft_text page = {0}, picture = {0};
    ft_serving as = *s;
    bool made = warned(args, &s->warnings, &as.warnings) && (!html || ft__page_serve(&page, &as));
    ft__text_free(&as.warnings);
    int status = html ? write_text(html, &page, made) : 0;
    if (!svg || status) return status;
    made = ft__picture_serve(&picture, &ft__frame_alone, s);
    return write_text(svg, &picture, made);
}

int cli_picture_scale(const cli_args *args, const ft_scale *s)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    ft_text page = {0}, picture = {0};
    ft_scale as = *s;
    bool made = warned(args, &s->warnings, &as.warnings) && (!html || ft__page_scale(&page, &as));
    ft__text_free(&as.warnings);
    int status = html ? write_text(html, &page, made) : 0;
    if (!svg || status) return status;
    made = ft__picture_scale(&picture, &ft__frame_alone, s);
    return write_text(svg, &picture, made);
}

int cli_picture_kernel(const cli_args *args, const ft_screen_case *cases, size_t count, double quantile)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    ft_text page = {0}, picture = {0};
    ft_screen_case *as = html ? malloc(count * sizeof *as) : NULL;
    bool made = !html || as;
    for (size_t i = 0; as && i < count; i++) {
        as[i] = cases[i];
        made = warned(args, &cases[i].warnings, &as[i].warnings) && made;
    }
    made = made && (!html || ft__page_kernel(&page, as, count, quantile));
    for (size_t i = 0; as && i < count; i++) ft__text_free(&as[i].warnings);
    free(as);
    int status = html ? write_text(html, &page, made) : 0;
    if (!svg || status) return status;
    made = ft__picture_kernel(&picture, &ft__frame_alone, cases, count);
    return write_text(svg, &picture, made);
}

int cli_picture_sweep(const cli_args *args, const ft_page_sweep_case *s)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    ft_text page = {0}, picture = {0};
    ft_text said = {0};
    ft_page_sweep_case as = *s;
    as.warnings = in_flags(args, s->warnings, &said);
    bool made = !html || (!said.failed && ft__page_sweep(&page, &as));
    ft__text_free(&said);
    int status = html ? write_text(html, &page, made) : 0;
    if (!svg || status) return status;
    made = ft__picture_sweep(&picture, &ft__frame_alone, s);
    return write_text(svg, &picture, made);
}

int cli_picture_range(const cli_args *args, const ft_page_range *r)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    ft_text page = {0}, picture = {0};
    ft_text said = {0};
    ft_page_range as = *r;
    as.warnings = in_flags(args, r->warnings, &said);
    bool made = !html || (!said.failed && ft__page_range(&page, &as));
    ft__text_free(&said);
    int status = html ? write_text(html, &page, made) : 0;
    if (!svg || status) return status;
    made = ft__picture_range(&picture, &ft__frame_alone, r);
    return write_text(svg, &picture, made);
}

int cli_picture_steps(const cli_args *args, const char *title, const ft_step_case *cases, size_t count, double quantile)
{
    const char *html = cli_value(args, OPT_HTML), *svg = cli_value(args, OPT_SVG);
    ft_text page = {0}, picture = {0};
    ft_step_case *as = html ? malloc(count * sizeof *as) : NULL;
    bool made = !html || as;
    for (size_t i = 0; as && i < count; i++) {
        as[i] = cases[i];
        made = warned(args, &cases[i].warnings, &as[i].warnings) && made;
    }
    made = made && (!html || ft__page_steps(&page, title, as, count, quantile));
    for (size_t i = 0; as && i < count; i++) ft__text_free(&as[i].warnings);
    free(as);
    int status = html ? write_text(html, &page, made) : 0;
    if (!svg || status) return status;
    made = ft__picture_steps(&picture, &ft__frame_alone, cases, count);
    return write_text(svg, &picture, made);
}

int cli_picture_compared(const cli_args *args, const ft_comparison *c)
{
    const char *html = cli_value(args, OPT_HTML);
    ft_text page = {0};
    if (!html) return 0;
    bool made = ft__page_compared(&page, c);
    return write_text(html, &page, made);
}

int cli_picture_largest(const cli_args *args, const ft_largest *r)
{
    const char *html = cli_value(args, OPT_HTML);
    ft_text page = {0};
    if (!html) return 0;
    ft_text said = {0};
    ft_largest as = *r;
    as.view.warnings = in_flags(args, r->view.warnings, &said);
    bool made = !said.failed && ft__page_largest(&page, &as);
    ft__text_free(&said);
    return write_text(html, &page, made);
}
