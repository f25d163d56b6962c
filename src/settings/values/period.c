/* period.c: pieces between commas: STEPS at the start, then STEPS@SHARE of the budget, in order. */
#include "settings/values/period.h"

#include <stdio.h>
#include <string.h>

#include "settings/settings.h"

/* "8" or "8@50%"; from is 0 where it is not given. */
static int parse_piece(const char *piece, uint64_t most, struct parley_period *period, char *clause)
{
    char steps[32];
    uint64_t count;
    size_t length = strcspn(piece, "@");
    if (length >= sizeof steps) return units_refuse(clause, "has a piece that is too long");
    snprintf(steps, sizeof steps, "%.*s", (int)length, piece);
    int error = units_count(steps, 1, most, &count, clause);
    if (error) return error;
    period->steps = (uint32_t)count;
    period->from = 0;
    if (!piece[length]) return 0;
    char share[64];
    double percent;
    snprintf(share, sizeof share, "%s", piece + length + 1);
    size_t number = strcspn(share, "%");
    bool ends = strcmp(share + number, "%") == 0;
    share[number] = '\0';
    if (!ends || units_real(share, 0, 100, &percent, clause) || percent >= 100)
        return units_refuse(clause,
                            "has a share that is none from 0% to below 100% (like 1,8@50%)");
    period->from = percent / 100;
    return 0;
}

int period_parse(struct settings_period *period, const char *text, uint64_t most, char *clause)
{
    *period = (struct settings_period){.steps = 1, .steered = strcmp(text, "auto") == 0};
    if (period->steered) return 0;
    double before = -1;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char piece[64];
        struct parley_period next;
        if (strcspn(at, ",") >= sizeof piece)
            return units_refuse(clause, "has a piece that is too long");
        snprintf(piece, sizeof piece, "%.*s", (int)strcspn(at, ","), at);
        int error = parse_piece(piece, most, &next, clause);
        if (error) return error;
        if (at != text && !strchr(piece, '@'))
            return units_refuse(clause,
                                "has a number without the share of the budget from which it holds "
                                "(like 1,8@50%)");
        if (at == text && next.from > 0)
            return units_refuse(clause, "does not say how it begins (like 1,8@50%)");
        if (next.from <= before)
            return units_refuse(clause, "has shares that do not rise (like 1,4@25%,8@50%)");
        before = next.from;
        if (at == text) {
            period->steps = next.steps;
        } else if (period->later_count == PARLEY_PERIODS_MAX) {
            return units_refuse(clause, "has more than 9 pieces");
        } else {
            period->later[period->later_count++] = next;
        }
    }
    return 0;
}
