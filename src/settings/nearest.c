/* nearest.c: edit distance with swaps (optimal string alignment). */
#include "settings/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES_MAX = 64 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t nearest_distance(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b);
    if (rows > WORD_BYTES_MAX || columns > WORD_BYTES_MAX) return rows > columns ? rows : columns;
    size_t cost[WORD_BYTES_MAX + 1][WORD_BYTES_MAX + 1];
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            size_t change = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            cost[i][j] = least(change, least(cost[i - 1][j], cost[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    }
    return cost[rows][columns];
}

struct nearest nearest_start(const char *typed)
{
    return (struct nearest){.typed = typed, .distance = SIZE_MAX};
}

void nearest_try(struct nearest *nearest, const char *word)
{
    size_t distance = nearest_distance(nearest->typed, word);
    if (distance >= nearest->distance) return;
    nearest->distance = distance;
    nearest->word = word;
}

const char *nearest_take(const struct nearest *nearest)
{
    size_t letters = strlen(nearest->typed);
    size_t distance_max = letters < 3 ? 1 : letters / 3 + (letters % 3 != 0);
    if (nearest->distance > distance_max || nearest->distance >= letters) return NULL;
    return nearest->word;
}

const char *nearest_clause(char clause[NEAREST_CLAUSE_BYTES], const char *word)
{
    clause[0] = '\0';
    if (word) snprintf(clause, NEAREST_CLAUSE_BYTES, "; did you mean \"%s\"?", word);
    return clause;
}
