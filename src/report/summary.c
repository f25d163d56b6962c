/* summary.c: a label, a fact, and at column 51 (for the digest's line earlier) a second fact. */
#include "report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/human.h"
#include "report/text.h"

enum { LABEL_COLUMNS = 10, FACT_COLUMNS = 37, DIGEST_SHOWN = 7 + 12 };

/* Adds label and fact, both padded; a longer fact still keeps its distance. */
static void add_fact(struct text *text, const char *label, struct text *fact)
{
    char *bytes = text_take(fact);
    if (!bytes) {
        text->failed = true;
        return;
    }
    text_column(text, label, LABEL_COLUMNS);
    int columns = (int)text_width(bytes);
    text_column(text, bytes, columns > FACT_COLUMNS ? columns : FACT_COLUMNS);
    text_add(text, "    ");
    free(bytes);
}

static void add_agreed(struct text *text, const struct summary *summary)
{
    const struct report_summary *line = summary->line;
    char drift[HUMAN_BYTES];
    text_column(text, "agreed", LABEL_COLUMNS);
    text_add(text, "%llu of %llu nodes     ", (unsigned long long)line->agreed,
             (unsigned long long)summary->nodes);
    if (line->digest)
        text_add(text, "digest %.*s%s", DIGEST_SHOWN, line->digest,
                 strlen(line->digest) > DIGEST_SHOWN ? "…" : "");
    else
        text_add(text, "no common digest");
    text_add(text, "    drift %s\n", human_drift(drift, summary->drift));
}

/* Adds "95.1 % of the samples in epochs 2 to 4", in the least of the epochs [from, to), counted
 * from 0; without those before a run that was resumed. Behind other words it begins a line, and
 * the samples are not named again. Rounded down: 100 % is said of all samples only. False where
 * there are none. */
static bool add_covered(struct text *text, const struct report_summary *line, uint64_t from,
                        uint64_t to)
{
    double least = 1, most = 0;
    unsigned long long first = 0, last = 0;
    for (uint64_t i = from; i < to && i < line->coverage_count; i++) {
        if (line->coverage[i] == 0) continue;
        least = fmin(least, line->coverage[i]);
        most = fmax(most, line->coverage[i]);
        last = i + 1;
        if (!first) first = last;
    }
    if (!first) return false;
    bool further = text->length > 0;
    if (further) text_add(text, ";\n%*s", LABEL_COLUMNS, "");
    text_add(text, "%s%g %%%s in ", least < most ? "at least " : "", floor(least * 1000) / 10,
             further ? "" : " of the samples");
    if (first == last)
        text_add(text, "epoch %llu", first);
    else
        text_add(text, "epochs %llu to %llu", first, last);
    return true;
}

/* Of the epochs that all ended, and of those that the end of the run has cut short. */
static void add_coverage(struct text *text, const struct report_summary *line)
{
    struct text fact;
    uint64_t epochs = (uint64_t)(line->epochs + 1e-3);
    uint64_t whole = line->epochs_whole < epochs ? line->epochs_whole : epochs;
    text_init(&fact, 256);
    add_covered(&fact, line, 0, whole);
    if (add_covered(&fact, line, whole, epochs)) text_add(&fact, ", cut short by the end");
    if (fact.length > 0 && line->coverage_count < epochs)
        text_add(&fact, ", and not counted after");
    char *bytes = text_take(&fact);
    if (!bytes) text->failed = true;
    if (bytes && bytes[0]) {
        text_column(text, "coverage", LABEL_COLUMNS);
        text_add(text, "%s\n", bytes);
    }
    free(bytes);
}

char *summary_text(const struct summary *summary)
{
    const struct report_summary *line = summary->line;
    char one[HUMAN_BYTES], two[HUMAN_BYTES];
    struct text text, fact;
    text_init(&text, 1 << 15);
    text_init(&fact, 1 << 13);
    add_agreed(&text, summary);
    if (isfinite(line->test_accuracy)) {
        text_add(&fact, "%.4f on %llu test samples", line->test_accuracy,
                 (unsigned long long)summary->test_samples);
        add_fact(&text, "accuracy", &fact);
        text_add(&text, "loss %s\n", human_loss(one, line->test_loss));
    }
    if (!isfinite(line->test_accuracy) && isfinite(line->test_loss)) {
        text_add(&fact, "%s on %llu test samples", human_loss(one, line->test_loss),
                 (unsigned long long)summary->test_samples);
        add_fact(&text, "loss", &fact);
        text_add(&text, "mean squared error\n");
    }
    if (summary->target > 0) {
        bool met = isfinite(line->time_to_target_s);
        text_column(&text, "target", LABEL_COLUMNS);
        text_add(&text, "%g %s%s\n", summary->target, met ? "met after " : "not met",
                 met ? human_seconds(one, line->time_to_target_s) : "");
    }
    text_add(&fact, "%.1f epochs, %llu steps, %s", line->epochs, (unsigned long long)line->steps,
             human_seconds(one, summary->trained_s));
    add_fact(&text, "training", &fact);
    bool at_end = line->exchanges > 0 && line->exchanges_trained == 0;
    text_add(&text, "exchanges %llu%s, %s%s\n", (unsigned long long)line->exchanges,
             at_end ? " at the end" : "", human_bytes(two, line->bytes_sent),
             at_end ? " in all" : "");
    add_coverage(&text, line);
    if (summary->path) {
        text_add(&fact, "%s", summary->path);
        add_fact(&text, "model", &fact);
        text_add(&text, "check it: parley model verify ");
        text_word(&text, summary->path[0] == '-' ? "./" : "", summary->path);
        text_add(&text, "\n");
    }
    text_close(&fact);
    return text_take(&text);
}

/* By both: who is right often, and far too sure where wrong, may have a loss above a guess's, and
 * who always says one class is now and then right a little more often. A guess by how often a class
 * comes has hardly a lower loss where they come about equally often. */
bool summary_guesses(const struct report_summary *line, uint32_t classes, double rate)
{
    return classes >= 2 && rate > 0 && line->epochs >= 1 && line->test_accuracy < 1.25 / classes &&
           line->test_loss > 0.99 * log(classes);
}

const char *summary_remark(const struct summary *summary, char out[SUMMARY_REMARK_BYTES])
{
    const struct report_summary *line = summary->line;
    double guess = log(summary->classes), accuracy = 1.0 / summary->classes;
    char one[HUMAN_BYTES], two[HUMAN_BYTES];
    if (!summary_guesses(line, summary->classes, summary->rate)) return NULL;
    snprintf(
        out, SUMMARY_REMARK_BYTES,
        "the model does no better than guessing (accuracy %.4f of %.4f, loss %s of ln %u = %s): "
        "a smaller --lr or --clip-norm 1 may help",
        line->test_accuracy, accuracy, human_loss(one, line->test_loss), summary->classes,
        human_loss(two, guess));
    return out;
}
