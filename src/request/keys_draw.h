/* Keys of pictures, one row each: how a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_DRAW_H
#define FT_REQUEST_KEYS_DRAW_H

#define FT_DRAW_KEYS(FLAG, PLAIN)                                                                                      \
    PLAIN(DRAW_OF, "of", ANY, 0, 0, NO_WORDS, DEPENDS,                                                                 \
          "left out: only the figures in `curves` and `rows` are drawn. The request of a step (`train`, `forward`, "   \
          "`prefill`, `decode`, `memory`), of a `kernel` or of `serve`: it is answered first, and drawn")              \
    PLAIN(DRAW_PICTURES, "pictures", OBJECTS, 0, 0, NO_WORDS, DEPENDS,                                                 \
          "a list of up to 32 [pictures](#pictures), each an object")                                                  \
    PLAIN(DRAW_ANSWER, "answer", SWITCH, 0, 0, NO_WORDS, 0,                                                            \
          "false; true: the answer also has `answer`, that of the step in `of`: figures and pictures of one forecast")

#define FT_PICTURE_KEYS(FLAG, PLAIN)                                                                                   \
    PLAIN(DRAWN, "what", WORD, 0, 0, WORDS(drawn), DEPENDS,                                                            \
          "`roofline`, `timeline`, `memory`, `layers`, `classes`, `intervals`, `pipeline`, `phases` (where the time "  \
          "goes), `peak` (memory at its peak): of the step; of a kernel `roofline`; of `serve` `waits` (how long "     \
          "requests take), `tokens` (how fast tokens come), `queue` and `cache` over time. `curves`, `bars`: of the "  \
          "figures that stand here")                                                                                   \
    PLAIN(DRAWN_NAME, "name", TEXT, 0, 0, NO_WORDS, DEPENDS,                                                           \
          "what the picture is called in its document, a letter and up to 39 letters, digits and hyphens; left out: "  \
          "what "                                                                                                      \
          "it shows")                                                                                                  \
    PLAIN(DRAWN_TITLE, "title", TEXT, 0, 0, NO_WORDS, DEPENDS,                                                         \
          "of `curves` and `bars`: alternative text, for readers who cannot see the picture")                          \
    PLAIN(DRAWN_WIDTH, "width", WHOLE, 160, 8192, NO_WORDS, 1040,                                                      \
          "1040; pixels: text keeps its size, the rest scales")                                                        \
    PLAIN(DRAWN_HEIGHT, "height", WHOLE, 40, 4096, NO_WORDS, DEPENDS,                                                  \
          "pixels of what is plotted, of `roofline`, `memory` and `curves`; left out: follows from the width")         \
    PLAIN(DRAWN_EMBED, "embed", SWITCH, 0, 0, NO_WORDS, 0,                                                             \
          "false: a document of its own, light or dark as its reader prefers; true: a part of a page that has the "    \
          "style "                                                                                                     \
          "of `data/style`, with its rulers in `data-x` and `data-y` (low, high, first and last pixel, `linear` or "   \
          "`log`)")                                                                                                    \
    PLAIN(DRAWN_PLAIN, "plain", SWITCH, 0, 0, NO_WORDS, 0,                                                             \
          "false; true: marks without tooltips, merged by colour where possible: the picture looks the same and is a " \
          "third of the size, for redrawing while a user drags")                                                       \
    PLAIN(DRAWN_WINDOW, "window_ms", PAIR, 0, 1e12, NO_WORDS, DEPENDS,                                                 \
          "of `timeline`: the part of the step that is drawn, `[0, 12.5]`")                                            \
    PLAIN(DRAWN_X, "x", TEXT, 0, 0, NO_WORDS, DEPENDS, "of `curves`: label of the x axis, with its unit")              \
    PLAIN(DRAWN_Y, "y", TEXT, 0, 0, NO_WORDS, DEPENDS,                                                                 \
          "of `curves`: label of the y axis, with its unit; of `bars`: the unit")                                      \
    PLAIN(DRAWN_LOG_X, "log_x", SWITCH, 0, 0, NO_WORDS, 0, "false; true: a logarithmic x axis")                        \
    PLAIN(DRAWN_LOG_Y, "log_y", SWITCH, 0, 0, NO_WORDS, 0, "false; true: a logarithmic y axis")                        \
    PLAIN(DRAWN_ZERO, "zero", SWITCH, 0, 0, NO_WORDS, 1, "true; false: the y axis begins near its values, not at 0")   \
    PLAIN(DRAWN_AT, "at", REAL, -1e300, 1e300, NO_WORDS, DEPENDS, "of `curves`: a vertical line at this `x`")          \
    PLAIN(DRAWN_LIMIT, "limit", REAL, 0, 1e300, NO_WORDS, DEPENDS, "of `curves`: a horizontal line at this `y`")       \
    PLAIN(DRAWN_LIMIT_NAME, "limit_name", TEXT, 0, 0, NO_WORDS, DEPENDS, "label of that line")                         \
    PLAIN(DRAWN_RINGS, "rings", TEXT, 0, 0, NO_WORDS, DEPENDS, "of `curves`: legend of the rings")                     \
    PLAIN(                                                                                                             \
        DRAWN_CURVES, "curves", OBJECTS, 0, 0, NO_WORDS, DEPENDS,                                                      \
        "of `curves`, up to 16: `name`, `x` and `y` (lists of numbers, as long as each other), `low` and `high` (an "  \
        "interval), `hollow` (a list of true and false: rings), `dots`, `line`, `steps`, `thin`")                      \
    PLAIN(                                                                                                             \
        DRAWN_ROWS, "rows", OBJECTS, 0, 0, NO_WORDS, DEPENDS,                                                          \
        "of `bars`, up to 256: `name`, `value`, `text` (written at its end), `look` (a colour: `compute`, `memory`, "  \
        "`overhead`, `communication`, `forward`, `backward`, `update`, `again`, `f0` to `f7`)")                        \
    PLAIN(DRAWN_WHOLE, "whole", REAL, 0, 1e300, NO_WORDS, DEPENDS,                                                     \
          "of `bars`: the value of a full bar; left out: the largest of them")
#endif
