/* tally.c: see tally.h. */
#include "swarm/tally.h"
#include "run/talk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };

static void count(struct swarm_tally *tally, const struct swarm_result *result)
{
    bool *well = &tally->well[result->seed - tally->first];
    if (*well) return;
    *well = true;
    tally->well_count++;
    tally->nodes += result->nodes;
    tally->agreed += result->agreed;
    tally->virtual_us += result->virtual_us;
    tally->events += result->events;
    tally->exchanges += result->exchanges;
}

static bool read_line(const char *line, struct swarm_result *result)
{
    int end = 0;
    int fields = sscanf(line,
                        "well %" SCNu64 ": %" SCNu32 " nodes, %" SCNu32 " agreed, %" SCNu64
                        " us, %" SCNu64 " events, %" SCNu64 " exchanges%n",
                        &result->seed, &result->nodes, &result->agreed, &result->virtual_us,
                        &result->events, &result->exchanges, &end);
    return fields == 6 && line[end] == '\n';
}

static int blame(const struct swarm_tally *tally)
{
    sim_say(PARLEY_LOG_ERROR, "--tally: \"%s\": %s", tally->path, strerror(errno));
    return PARLEY_EUSAGE;
}

/* So much of it as there is. */
static bool begins(const char *line, const char *word)
{
    size_t length = strlen(line), most = strlen(word);
    return length > 0 && strncmp(line, word, length < most ? length : most) == 0;
}

/* A line that a killed run left unfinished goes: it must not swallow the next. */
static int read_all(struct swarm_tally *tally)
{
    char line[LINE_BYTES];
    off_t whole = 0; /* bytes, in lines that are */
    if (fseek(tally->file, 0, SEEK_SET) != 0) return blame(tally);
    while (fgets(line, sizeof line, tally->file)) {
        struct swarm_result result = {0};
        bool cut_off = !strchr(line, '\n');
        if (!cut_off) whole += (off_t)strlen(line);
        if (read_line(line, &result)) {
            if (result.seed >= tally->first && result.seed <= tally->last) count(tally, &result);
        } else if (!begins(line, "FAILED ") && !(cut_off && begins(line, "well "))) {
            sim_say(PARLEY_LOG_ERROR, "--tally: \"%s\" is not a tally of seeds; name a new file",
                    tally->path);
            return PARLEY_EUSAGE;
        }
    }
    tally->earlier = tally->well_count;
    if (fseek(tally->file, 0, SEEK_END) != 0) return blame(tally);
    if (ftell(tally->file) > whole && ftruncate(fileno(tally->file), whole) != 0)
        return blame(tally);
    return 0;
}

int swarm_tally_open(struct swarm_tally *tally, uint64_t first, uint64_t last, const char *path)
{
    *tally = (struct swarm_tally){.first = first, .last = last, .path = path};
    tally->well = calloc(last - first + 1, sizeof *tally->well);
    if (!tally->well) return PARLEY_ENOMEM;
    if (!path) return 0;
    tally->file = fopen(path, "a+");
    if (!tally->file) return blame(tally);
    struct stat status; /* a device may have no end */
    if (fstat(fileno(tally->file), &status) == 0 && S_ISREG(status.st_mode)) return read_all(tally);
    sim_say(PARLEY_LOG_ERROR, "--tally: \"%s\" is no file that can be read again; name a new file",
            path);
    return PARLEY_EUSAGE;
}

int swarm_tally_add(struct swarm_tally *tally, const struct swarm_result *result)
{
    if (result->well)
        count(tally, result);
    else
        tally->failed_count++;
    if (!tally->file) return 0;
    if (result->well)
        fprintf(tally->file,
                "well %" PRIu64 ": %" PRIu32 " nodes, %" PRIu32 " agreed, %" PRIu64 " us, %" PRIu64
                " events, %" PRIu64 " exchanges\n",
                result->seed, result->nodes, result->agreed, result->virtual_us, result->events,
                result->exchanges);
    else
        fprintf(tally->file, "FAILED %" PRIu64 ": %s\n", result->seed, result->why);
    if (fflush(tally->file) == 0) return 0;
    blame(tally);
    fclose(tally->file); /* other threads have a line each, too: it is said */
    tally->file = NULL;
    return PARLEY_EFAIL;
}

void swarm_tally_close(struct swarm_tally *tally)
{
    if (tally->file) fclose(tally->file);
    free(tally->well);
    *tally = (struct swarm_tally){0};
}
