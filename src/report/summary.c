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
    char drift[HUMAN_BYTES];
    text_column(text, "agreed", LABEL_COLUMNS);
    text_add(text, "%llu of %llu nodes     ", (unsigned long long)summary->agreed,
             (unsigned long long)summary->nodes);
    if (summary->digest)
        text_add(text, "digest %.*s%s", DIGEST_SHOWN, summary->digest,
                 strlen(summary->digest) > DIGEST_SHOWN ? "…" : "");
    else
        text_add(text, "no common digest");
    text_add(text, "    drift %s\n", human_drift(drift, summary->drift));
}

/* Adds "95.1 % of the samples in epochs 2 to 4", in the least of the epochs [from, to), counted
 * from 0; without those before a run that was resumed. Behind other words, "; " goes before and the
 * samples are not named again. Rounded down: 100 % is said of all samples only. False where there
 * are none. */
static bool add_covered(struct text *text, const struct summary *summary, uint64_t from,
                        uint64_t to)
{
    double least = 1, most = 0;
    unsigned long long first = 0, last = 0;
    for (uint64_t i = from; i < to && i < summary->coverage_count; i++) {
        if (summary->coverage[i] == 0) continue;
        least = fmin(least, summary->coverage[i]);
        most = fmax(most, summary->coverage[i]);
        last = i + 1;
        if (!first) first = last;
    }
    if (!first) return false;
    text_add(text, "%s%s%g %%%s in ", text->length > 0 ? "; " : "", least < most ? "at least " : "",
             floor(least * 1000) / 10, text->length > 0 ? "" : " of the samples");
    if (first == last)
        text_add(text, "epoch %llu", first);
    else
        text_add(text, "epochs %llu to %llu", first, last);
    return true;
}

/* Of the epochs that all ended, and of those that the end of the run has cut short. */
static void add_coverage(struct text *text, const struct summary *summary)
{
    struct text fact;
    uint64_t epochs = (uint64_t)(summary->epochs + 1e-3);
    uint64_t whole = summary->epochs_whole < epochs ? summary->epochs_whole : epochs;
    text_init(&fact, 256);
    add_covered(&fact, summary, 0, whole);
    if (add_covered(&fact, summary, whole, epochs)) text_add(&fact, ", cut short by the end");
    if (fact.length > 0 && summary->coverage_count < epochs)
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
    char one[HUMAN_BYTES], two[HUMAN_BYTES];
    struct text text, fact;
    text_init(&text, 1 << 15);
    text_init(&fact, 1 << 13);
    add_agreed(&text, summary);
    if (isfinite(summary->accuracy)) {
        text_add(&fact, "%.4f on %llu test samples", summary->accuracy,
                 (unsigned long long)summary->test_samples);
        add_fact(&text, "accuracy", &fact);
        text_add(&text, "loss %s\n", human_loss(one, summary->loss));
    }
    if (!isfinite(summary->accuracy) && isfinite(summary->loss)) {
        text_add(&fact, "%s on %llu test samples", human_loss(one, summary->loss),
                 (unsigned long long)summary->test_samples);
        add_fact(&text, "loss", &fact);
        text_add(&text, "mean squared error\n");
    }
    if (summary->target > 0) {
        bool met = isfinite(summary->target_s);
        text_column(&text, "target", LABEL_COLUMNS);
        text_add(&text, "%g %s%s\n", summary->target, met ? "met after " : "not met",
                 met ? human_seconds(one, summary->target_s) : "");
    }
    text_add(&fact, "%.1f epochs, %llu steps, %s", summary->epochs,
             (unsigned long long)summary->steps, human_seconds(one, summary->wall_s));
    add_fact(&text, "training", &fact);
    text_add(&text, "exchanges %llu, %s\n", (unsigned long long)summary->exchanges,
             human_bytes(two, summary->bytes_sent));
    add_coverage(&text, summary);
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
