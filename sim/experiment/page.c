/* page.c: see page.h. The markup is XML as well, so that either kind of reader takes it. */
#include "experiment/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/chart.h"
#include "experiment/effect.h"
#include "experiment/picture.h"
#include "experiment/repeat.h"
#include "experiment/tally.h"
#include "run/output.h"
#include "run/talk.h"

enum { PAGE_BYTES_MAX = 1 << 28, COMMAND_COLUMNS = 136 };

/* ---- The file -------------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *ending)
{
    size_t length = strlen(path), end = strlen(ending);
    return length > end && strcmp(path + length - end, ending) == 0;
}

int page_check(const char *path)
{
    if (ends_in(path, ".svg") || ends_in(path, ".html")) return sim_output_try("report", path);
    sim_say(PARLEY_LOG_ERROR, "--report: \"%s\" ends neither in .html nor in .svg", path);
    return PARLEY_EUSAGE;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Adds `bytes`, which it frees, between two tags. */
static void add_taken(struct text *text, const char *before, char *bytes, const char *after)
{
    if (!bytes) {
        text->failed = true;
        return;
    }
    text_add(text, "%s", before);
    chart_text(text, bytes);
    text_add(text, "%s", after);
    free(bytes);
}

/* "parley 0.1.0, 7 runs, kernels SkylakeX"; "stopped after 7 of 36 runs". */
static void add_version(struct text *text, const struct plan *plan)
{
    const char *core = getenv("OPENBLAS_CORETYPE");
    bool whole = plan->count == plan->planned;
    text_add(text, "parley %s, %s%" PRIu32, PARLEY_VERSION, whole ? "" : "stopped after ",
             plan->count);
    if (!whole) text_add(text, " of %" PRIu32, plan->planned);
    text_add(text, " run%s, OpenBLAS kernels: ", plan->planned == 1 ? "" : "s");
    chart_text(text, core ? core : "default");
}

/* The SVG's body between its tags, whose size is known when it has been drawn. */
static void add_svg(struct text *page, struct text *body, double width, double height, bool alone)
{
    char *bytes = text_take(body);
    if (!bytes) {
        page->failed = true;
        return;
    }
    text_add(page, "%s<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\"%s>\n",
             alone ? "" : "<div class=\"wide\">", width + (alone ? 40 : 0), height,
             alone ? "" : " role=\"img\"");
    text_add(page, "%s</svg>%s\n", bytes, alone ? "" : "</div>");
    free(bytes);
}

/* ---- SVG alone ------------------------------------------------------------------------------- */

/* Text of several lines, a text element each; the picture's width grows to the longest. */
static double add_lines(struct text *svg, char *lines, double top, double *width)
{
    double y = top;
    if (!lines) svg->failed = true;
    for (char *line = lines; line && *line;) {
        size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] != '\0');
        line[length] = '\0';
        *width = fmax(*width, 4 + PICTURE_CHARACTER * (double)text_width(line));
        text_add(svg, "<text class=\"mono\" x=\"4\" y=\"%.1f\" xml:space=\"preserve\">", y += 16);
        chart_text(svg, line);
        text_add(svg, "</text>\n");
        line = next;
    }
    free(lines);
    return y - top + 16;
}

/* Breaks a command line before the words that pass the picture's width. */
static char *wrap(char *line)
{
    char *broken = line, *blank = line;
    while (blank && (blank = strchr(blank + 1, ' ')) != NULL) {
        size_t length = strcspn(blank + 1, " ");
        if (blank + length - broken < COMMAND_COLUMNS) continue;
        *blank = '\n';
        broken = blank;
    }
    return line;
}

/* How the curves are to be read, in lines. */
static char *notes(const struct plan *plan)
{
    struct text text;
    text_init(&text, PAGE_BYTES_MAX);
    text_add(
        &text,
        "Accuracy and loss are those of the mean of the live nodes' models on the test data, at "
        "about %d\npoints along a run; the last point is the agreed model's. Looking costs no "
        "virtual time.\nAccuracy, if any, is drawn by its error, on a logarithmic scale. "
        "Against bytes, a run that sends\nnext to nothing is a level line as high as its "
        "end. Drift is drawn as far down as in training: the\naveraging after it goes on to "
        "next to nothing.\n",
        CURVE_POINTS);
    if (plan->seeds)
        text_add(&text,
                 "A line is the mean over the seeds, its band reaches from the least to the "
                 "greatest of them, on straight\nlines between the points of each; a run that "
                 "has ended keeps its last value.\n");
    if (picture_cuts_single(plan))
        text_add(&text, "The axes of time end with the slowest of the others: single goes on, to "
                        "the end result in the table.\n");
    return text_take(&text);
}

/* Comments of the file before them: what stands in the picture's metadata is one that sim reads. */
static void add_hash_lines(struct text *svg, const struct plan *plan,
                           const struct sim_outcome *outcomes)
{
    text_add(svg, "<metadata># run hashes and model digests\n");
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct report_summary *s = &outcomes[i].summary;
        text_add(svg, "# %s %s ", s->run_hash ? s->run_hash : "-",
                 s->digest ? s->digest : "no common model");
        add_taken(svg, "", plan_label(plan, plan->runs[i], true), "\n");
    }
    text_add(svg, "</metadata>\n");
}

static char *svg_page(const struct plan *plan, const struct sim_outcome *outcomes,
                      const struct source_reader *reader)
{
    struct text page, svg;
    text_init(&page, PAGE_BYTES_MAX);
    text_init(&svg, PAGE_BYTES_MAX);
    text_add(&svg, "<title>parley sim</title>\n");
    add_taken(&svg, "<metadata>", repeat_file(plan->base), "</metadata>\n");
    add_hash_lines(&svg, plan, outcomes);
    text_add(&svg, "<style>");
    chart_style(&svg);
    text_add(&svg, "</style>\n");
    text_add(&svg, "<rect class=\"back\" width=\"100%%\" height=\"100%%\"/>\n"
                   "<g transform=\"translate(20 14)\">\n");
    double width = PICTURE_WIDTH, y = picture_legend(&svg, plan, &width);
    y += picture_curves(&svg, plan, outcomes, y);
    y += effect_charts(&svg, plan, outcomes, y);
    y += add_lines(&svg, notes(plan), y, &width) + 10;
    y += add_lines(&svg, tally_table(plan, outcomes), y, &width);
    y += picture_topologies(&svg, plan, outcomes, reader, y + 10) + 10;
    text_add(&svg, "<text class=\"dim\" x=\"4\" y=\"%.1f\">", y + 10);
    add_version(&svg, plan);
    text_add(&svg, "</text>\n");
    y += 10 + add_lines(&svg, wrap(repeat_line(plan->base)), y + 10, &width);
    text_add(&svg, "</g>\n");
    add_svg(&page, &svg, width, y + 24, true);
    return text_take(&page);
}

/* ---- HTML ------------------------------------------------------------------------------------ */

static const char page_style[] =
    "body{margin:0;font:15px/1.5 system-ui,sans-serif}"
    "main{max-width:980px;margin:0 auto;padding:24px 16px}"
    "h1{font-size:22px;margin:0}h2{font-size:17px;margin:32px 0 8px}"
    "p{margin:6px 0}.note{font-size:13px}"
    "svg{width:100%;height:auto;display:block;margin:14px 0}"
    "svg.key{width:38px;height:14px;margin:0}"
    ".wide{overflow-x:auto}.wide>svg{min-width:760px}table{border-collapse:collapse;font-size:14px}"
    /* As wide as it must be, in the middle, where the window has room. */
    ".table{width:max-content;min-width:100%;max-width:calc(100vw - 32px);margin-left:50%;"
    "transform:translateX(-50%)}"
    "@media print{.wide{overflow:visible}table{font-size:9px}th,td{padding-right:6px}}"
    "th,td{padding:4px 12px 4px 0;text-align:right;white-space:nowrap;"
    "border-bottom:1px solid}th{font-weight:500}"
    ".name{text-align:left}"
    "pre{padding:10px 12px;"
    "border-radius:6px;white-space:pre-wrap;font-size:13px}\n";

static const struct chart_paint page_paints[] = {
    {"body", "background", "back"},    {"body", "color", "ink"},
    {".note", "color", "dim"},         {"th", "color", "dim"},
    {"th,td", "border-color", "rule"}, {"pre", "background", "shade"}};

static void add_head(struct text *page, const struct plan *plan)
{
    text_add(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    text_add(page, "<title>parley sim</title>\n<style>\n");
    chart_style(page);
    text_add(page, "%s", page_style);
    chart_paint(page, page_paints, sizeof page_paints / sizeof *page_paints);
    text_add(page, "</style>\n</head>\n<body><main>\n");
    text_add(page, "<h1>parley sim</h1>\n<p class=\"note\">");
    add_version(page, plan);
    text_add(page, "</p>\n");
}

static void add_table(struct text *page, const struct plan *plan,
                      const struct sim_outcome *outcomes)
{
    uint32_t axes = plan->axes_count - plan->seeds;
    char out[64];
    text_add(page, "<h2>End results</h2>\n<div class=\"wide table\"><table>\n<tr><th></th>"
                   "<th class=\"name\">strategy</th>");
    for (uint32_t i = 0; i < axes; i++)
        text_add(page, "<th class=\"name\">%s</th>", tally_axis_title(plan, i, out));
    for (int c = 0; c < TALLY_COLUMNS; c++)
        if (tally_shows(plan, (enum tally_column)c))
            text_add(page, "<th>%s</th>", tally_title((enum tally_column)c));
    text_add(page, "</tr>\n");
    for (uint32_t g = 0; g < plan->groups; g++) {
        const struct plan_run *run = tally_run(plan, g);
        text_add(page, "<tr><td><svg class=\"key\" viewBox=\"0 0 38 14\">");
        chart_sample(page, g, 4, 11);
        text_add(page, "</svg></td><td class=\"name\">%s</td>", run->strategy);
        for (uint32_t i = 0; i < axes; i++) {
            text_add(page, "<td class=\"name\">");
            chart_text(page, run->values[i] ? run->values[i] : "-");
            text_add(page, "</td>");
        }
        for (int c = 0; c < TALLY_COLUMNS; c++)
            if (tally_shows(plan, (enum tally_column)c))
                text_add(page, "<td>%s</td>",
                         tally_cell(plan, outcomes, g, (enum tally_column)c, out));
        text_add(page, "</tr>\n");
    }
    text_add(page,
             "</table></div>\n<p class=\"note\">Drift: when training ended, before the final "
             "averaging. Training: virtual time of the last local step. Exchanges, bytes: until "
             "training ended; in all: with that averaging and the agreement.%s%s%s</p>\n",
             plan->seeds ? " Mean over the seeds, ± standard deviation." : "",
             tally_guesses(plan, outcomes) ? " ?: " TALLY_GUESSES "." : "",
             tally_failed(plan, outcomes) ? " !: " TALLY_FAILED "." : "");
}

/* Unless there is none; frees it. */
static void add_note(struct text *page, char *note)
{
    if (note && !note[0])
        free(note);
    else
        add_taken(page, "<p class=\"note\">", note, "</p>\n");
}

static void add_hashes(struct text *page, const struct plan *plan,
                       const struct sim_outcome *outcomes)
{
    text_add(page, "<details><summary>run hashes and model digests</summary>"
                   "<div class=\"wide table\"><table>\n");
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct report_summary *s = &outcomes[i].summary;
        add_taken(page, "<tr><td class=\"name\">", plan_label(plan, plan->runs[i], true), "</td>");
        text_add(page, "<td class=\"name\">%s</td><td class=\"name\">%s</td></tr>\n",
                 s->run_hash ? s->run_hash : "-", s->digest ? s->digest : "no common model");
    }
    text_add(page, "</table></div></details>\n");
}

/* Unless nothing was drawn. */
static void add_section(struct text *page, const char *head, struct text *svg, double height)
{
    if (height > 0) {
        text_add(page, "%s", head);
        add_svg(page, svg, PICTURE_WIDTH, height, false);
    } else
        text_close(svg);
}

static char *html_page(const struct plan *plan, const struct sim_outcome *outcomes,
                       const struct source_reader *reader)
{
    struct text page, svg;
    text_init(&page, PAGE_BYTES_MAX);
    text_init(&svg, PAGE_BYTES_MAX);
    add_head(&page, plan);
    double width = PICTURE_WIDTH, y = picture_legend(&svg, plan, &width);
    y += picture_curves(&svg, plan, outcomes, y);
    add_svg(&page, &svg, width, y, false);
    add_taken(&page, "<p class=\"note\">", notes(plan), "</p>\n");
    add_table(&page, plan, outcomes);
    add_note(&page, plan_rates(plan));
    add_note(&page, plan_unheeded(plan));
    text_init(&svg, PAGE_BYTES_MAX);
    y = effect_charts(&svg, plan, outcomes, 0);
    add_section(&page, "<h2>By setting</h2>\n", &svg, y);
    text_init(&svg, PAGE_BYTES_MAX);
    y = picture_topologies(&svg, plan, outcomes, reader, 0);
    add_section(&page,
                "<h2>Topology</h2>\n<p class=\"note\">As at the start; the living close the gaps "
                "that the dead leave.</p>\n",
                &svg, y);
    text_add(&page, "<h2>To repeat it</h2>\n");
    add_taken(&page, "<pre>", repeat_line(plan->base), "</pre>\n");
    add_taken(&page,
              "<p>Or with this file, as <code>parley sim -c FILE</code>; the comments are the "
              "defaults it was made with.</p>\n<pre>",
              repeat_file(plan->base), "</pre>\n");
    add_hashes(&page, plan, outcomes);
    text_add(&page, "</main></body>\n</html>\n");
    return text_take(&page);
}

int page_write(const char *path, const struct plan *plan, const struct sim_outcome *outcomes,
               const struct source_reader *reader)
{
    char *page = ends_in(path, ".svg") ? svg_page(plan, outcomes, reader)
                                       : html_page(plan, outcomes, reader);
    if (!page) return sim_blame(PARLEY_ENOMEM, "");
    struct piece piece = {page, strlen(page)};
    int error = sim_output_replace("report", path, &piece, 1);
    free(page);
    return error;
}
