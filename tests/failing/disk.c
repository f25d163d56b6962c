/* disk.c: each call on a file fails, one after the other, while models and checkpoints are written
 * and read back.
 *
 *   - under a final name there is a whole file or none: a half-written one never, at no time
 *   - what gets a final name was flushed before, and its folder is flushed after it
 *   - the error is told in a line that names the file; what was there before stays
 *   - once the disk is well again the next is written, and no part is left beside it
 *
 * So it is for each allocation that finds no memory while a model is written.
 *
 * The calls are wrapped by the linker (meson.build). A write fails at once, or after a half; or it
 * says that all is well, and other bytes stand on the disk. A read fails at once, finds the file's
 * end after a half, or brings other bytes; a file is cut to its half once its size was asked, or is
 * longer than it should be.
 * Plain main(), as checkpoints are written on a thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/node/node.h"
#include "disk/durable.h"
#include "disk/files.h"
#include "lack.h"
#include "saved.h"

/* ---- A disk that fails ----------------------------------------------------------------------- */

enum { FLOATS = 1000 }; /* of a model */

static atomic_int calls, fails_at; /* 0: never */
static atomic_bool matters;        /* what failed is none of those that may be passed over */
static atomic_int written_fd = -1;
static enum mode { FAILS, HALVES, LIES, MODES } mode; /* the last two: of what has bytes */
static atomic_bool misread; /* other bytes came back than the file should have */
static atomic_bool slips;   /* the model changes in memory before it is written */
/* Bytes are in no fsync() yet, or a name is not; and then there came a name. */
static atomic_bool unflushed, unnamed, too_early;

static bool is_due(void)
{
    return atomic_fetch_add(&calls, 1) + 1 == atomic_load(&fails_at);
}

static bool fails(bool counts)
{
    if (!is_due() || mode == LIES) return false;
    if (counts) atomic_store(&matters, true);
    return true;
}

int __real_open64(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t size);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);
ssize_t __real_read(int fd, void *bytes, size_t size);
int __real_fstat64(int fd, struct stat *about);

int __wrap_open64(const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
int __wrap_fstat64(int fd, struct stat *about);

static int failed(int code)
{
    errno = code;
    return -1;
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int permissions = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    if (strstr(path, ".lock")) return __real_open64(path, flags, permissions); /* has no bytes */
    if (fails(!(flags & O_DIRECTORY))) {
        if (flags & O_DIRECTORY) atomic_store(&unnamed, false); /* as well as can be */
        return failed(EIO);
    }
    int fd = __real_open64(path, flags, permissions);
    if (flags & O_WRONLY) atomic_store(&written_fd, fd);
    return fd;
}

/* Such a file gets no name. */
static int refused(void)
{
    atomic_store(&unflushed, false);
    return failed(ENOSPC);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    static atomic_bool full; /* after a half nothing more goes in */
    atomic_store(&unflushed, true);
    if (size == FLOATS * sizeof(float) && atomic_load(&slips)) *(uint8_t *)bytes ^= 1;
    if (atomic_exchange(&full, false)) return refused();
    if (!is_due()) return __real_write(fd, bytes, size);
    atomic_store(&matters, true);
    if (mode == FAILS || size < 2) return refused();
    if (mode == HALVES) {
        atomic_store(&full, true);
        return __real_write(fd, bytes, size / 2);
    }
    uint8_t *other = malloc(size);
    if (!other) exit(1);
    memcpy(other, bytes, size);
    other[size / 2] ^= 1;
    ssize_t written = __real_write(fd, other, size);
    free(other);
    return written;
}

int __wrap_fsync(int fd)
{
    struct stat about;
    if (__real_fstat64(fd, &about)) exit(1);
    atomic_store(S_ISDIR(about.st_mode) ? &unnamed : &unflushed, false);
    return fails(true) ? failed(EIO) : __real_fsync(fd);
}

int __wrap_close(int fd)
{
    int written = fd;
    bool bad = fails(atomic_compare_exchange_strong(&written_fd, &written, -1));
    int code = __real_close(fd);
    return bad ? failed(EIO) : code;
}

int __wrap_rename(const char *from, const char *to)
{
    if (atomic_load(&unflushed) || atomic_load(&unnamed)) atomic_store(&too_early, true);
    if (fails(true)) return failed(EIO);
    atomic_store(&unnamed, true);
    return __real_rename(from, to);
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    static atomic_bool ended; /* after a half nothing more comes */
    if (atomic_exchange(&ended, false)) return 0;
    if (!is_due()) return __real_read(fd, bytes, size);
    atomic_store(&matters, true);
    if (mode == FAILS || size < 2) return failed(EIO);
    if (mode == HALVES) {
        atomic_store(&ended, true);
        return __real_read(fd, bytes, size / 2);
    }
    ssize_t got = __real_read(fd, bytes, size);
    if (got > 0) ((uint8_t *)bytes)[got / 2] ^= 1;
    atomic_store(&misread, true);
    return got;
}

int __wrap_fstat64(int fd, struct stat *about)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool due = is_due();
    if (due) atomic_store(&matters, true);
    if (due && mode == FAILS) return failed(EIO);
    int code = __real_fstat64(fd, about);
    if (due && mode == HALVES && truncate(path, about->st_size / 2)) exit(1);
    if (!due || mode != LIES) return code;
    if (truncate(path, about->st_size + 1)) exit(1);
    atomic_store(&misread, true);
    return __real_fstat64(fd, about);
}

/* ---- What is looked at ----------------------------------------------------------------------- */

static int broken;
static char said[1024]; /* by node_report_trouble(), the newest */
static const char *under;

static void check(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "%s, call %d fails%s: broken: %s (%s)\n", under, atomic_load(&fails_at),
            (const char *[]){"", " half-way", " and says nothing"}[mode], what, said);
    broken++;
}

void node_report_trouble(struct node *node, int error, const char *message)
{
    snprintf(said, sizeof said, "%s", message);
}

void say(enum parley_log level, const char *format, ...)
{
}

/* The n-th call from now on fails. */
static void begin(int n)
{
    atomic_store(&calls, 0);
    atomic_store(&matters, false);
    atomic_store(&misread, false);
    atomic_store(&fails_at, n);
}

static char folder[] = "/tmp/parley-disk-XXXXXX";

/* Files whose names end so. */
static int count(const char *suffix)
{
    DIR *directory = opendir(folder);
    int found = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        size_t length = strlen(entry->d_name), end = strlen(suffix);
        found += length > end && strcmp(entry->d_name + length - end, suffix) == 0;
    }
    closedir(directory);
    return found;
}

static void clear(void)
{
    char path[512];
    DIR *directory = opendir(folder);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    closedir(directory);
}

/* ---- Models ---------------------------------------------------------------------------------- */

static struct op op;
static uint64_t lacks_at; /* the allocation that finds no memory then; 0: none, ... */
static bool lacked;       /* ... and whether there were so many, ... */
static bool of_library;   /* ... and it was OpenSSL's, say, which may go on without */

static bool model_is_whole(const char *path)
{
    struct model_file file;
    uint8_t *bytes;
    size_t size;
    char why[200];
    bool whole = durable_read(path, &bytes, &size, why, sizeof why) == 0 &&
                 model_file_open(&file, bytes, size, why, sizeof why) == 0;
    if (whole) {
        whole = model_file_verify(&file, why, sizeof why) == 0;
        model_file_close(&file);
    }
    free(bytes);
    return whole;
}

static bool taken; /* the model's name, by a folder, while it is written */

/* Writes and publishes a model as a node does, with a record or without. True: both went well. */
static bool write_model(const char *path, float first, bool recorded)
{
    static float block[FLOATS];
    static struct tensor tensor = {.name = "w", .rank = 1, .shape = {FLOATS}, .count = FLOATS};
    static struct vectors vectors = {.count = FLOATS,
                                     .block = block,
                                     .stride = FLOATS,
                                     .buffers = 1,
                                     .run = 7,
                                     .tensors = &tensor,
                                     .tensors_count = 1};
    struct record record = saved_record();
    struct parley_options options = {.out = path};
    struct files files;
    record.run = vectors.run;
    block[0] = first;
    memset(&op, 0, sizeof op);
    char why[240];
    if (files_init(&files, &vectors, &options, "n0", 42, why, sizeof why)) exit(1);
    lack_start(lacks_at);
    files_write(&files, &op);
    bool written = op.done.done.ok;
    if (taken) check(!mkdir(path, 0700), "the name is free");
    if (written) {
        memcpy(record.digest, op.digest, sizeof record.digest);
        op.record = recorded ? &record : NULL;
        files_publish(&files, &op);
    }
    lacked = lack_failed();
    of_library = lack_in_library();
    lack_start(0);
    snprintf(said, sizeof said, "%s", op.why);
    bool published = written && op.done.done.ok;
    files_close(&files);
    return published;
}

static int without_record; /* models that were published with that warning */

/* Returns how many calls were made. */
static int live_models(int n)
{
    char path[64];
    under = "models";
    snprintf(path, sizeof path, "%s/model", folder);
    atomic_store(&fails_at, 0);
    check(write_model(path, 1, true), "the first is written");
    begin(n);
    bool good = write_model(path, 2, true);
    int made = atomic_load(&calls);
    check(good || strstr(said, folder), "the line names the file");
    check((good && !*said) == !matters || (mode == LIES && !misread), "what fails is told");
    without_record += good && *said;
    check(model_is_whole(path), "what stands under the name is whole");
    check(count(".part") == 0, "no part is left");
    check(write_model(path, 3, true) && model_is_whole(path), "the next is written");
    clear();
    return made;
}

/* What is on disk and what is in memory are equal, and both are not what the nodes agreed on. */
static void live_through_a_slip(void)
{
    char path[64];
    under = "models";
    snprintf(path, sizeof path, "%s/model", folder);
    atomic_store(&slips, true);
    check(!write_model(path, 1, true) && strstr(said, "changed in memory"), "a slip is told");
    atomic_store(&slips, false);
    check(access(path, F_OK) && count(".part") == 0, "and nothing is left");
}

/* A record that finds no memory is left out; anything else is told as what is written fails. */
static void live_without_memory(void)
{
    char path[64];
    under = "models";
    snprintf(path, sizeof path, "%s/model", folder);
    for (lacks_at = 1, lacked = true; lacked; lacks_at++) {
        bool good = write_model(path, 1, true);
        check(*said ? good || strstr(said, folder) : good && (!lacked || of_library),
              "a lack is told");
        check(access(path, F_OK) ? !good : model_is_whole(path), "it is there, or nothing is");
        check(count(".part") == 0, "no part is left");
        clear();
    }
    lacks_at = 0;
}

/* Nodes may share one OUT. One that has no record to write leaves that of another to the same file,
 * and none to the model before. */
static void live_beside_another(void)
{
    char path[64], record[80];
    under = "models";
    snprintf(path, sizeof path, "%s/model", folder);
    snprintf(record, sizeof record, "%s.agreement.json", path);
    check(write_model(path, 1, true) && access(record, F_OK) == 0, "one writes a record");
    check(write_model(path, 1, false) && access(record, F_OK) == 0, "the other leaves it");
    check(write_model(path, 2, false) && access(record, F_OK) != 0, "but not with another model");
    clear();
    taken = true;
    check(!write_model(path, 3, true) && !rmdir(path), "a folder keeps its name");
    check(access(record, F_OK) != 0 && count(".part") == 0, "and there is no record of the model");
    taken = false;
}

/* ---- Checkpoints ----------------------------------------------------------------------------- */

static const char table[] =
    "1,2,0\n3,4,1\n5,6,0\n7,8,1\n0,1,1\n2,2,0\n9,9,1\n1,1,0\n4,4,1\n3,3,0\n";

static bool exists(const char *path)
{
    return strcmp(path, "t.csv") == 0;
}

static int read_table(const char *path, uint64_t most, uint8_t **bytes, size_t *size, char *why,
                      size_t why_size)
{
    *size = sizeof table - 1;
    if (!(*bytes = malloc(*size))) return PARLEY_ENOMEM;
    memcpy(*bytes, table, *size);
    return 0;
}

static struct settings settings;

static void open_node(struct node *node)
{
    static const struct source_reader reader = {exists, read_table};
    char why[SETTINGS_WHY_BYTES];
    memset(node, 0, sizeof *node);
    node->settings = &settings;
    node->options.config.name = "n0";
    node->options.config.vectors = 2;
    if (job_init(&node->job, &settings, NULL, &reader, why, sizeof why)) exit(1);
    node->x = trainer_vectors(node->job.trainer, node->state);
    if (!node->x) exit(1);
    node->options.vectors[0] = node->x;
    node->options.vectors[1] = node->state[0];
}

static void close_node(struct node *node)
{
    node_checkpoint_close(node);
    free(node->x);
    job_close(&node->job);
}

/* Makes the checkpoint of that step, and waits for it. */
static void make_one(struct node *node, uint64_t step)
{
    said[0] = '\0';
    node->steps = node->state_steps = step;
    node->x[0] = (float)step;
    atomic_store(&node->checkpoint.asked, true);
    node_checkpoint_step(node);
    if (node->checkpoint.started) uv_thread_join(&node->checkpoint.thread);
    node->checkpoint.started = false;
}

/* The step that a new process goes on from. */
static uint64_t resumed_from(void)
{
    struct node node;
    char why[512];
    said[0] = '\0';
    open_node(&node);
    uint64_t step = 0;
    if (node_checkpoint_init(&node, why, sizeof why) == 0) step = node.resumed.steps;
    check(step == 0 || node.x[0] == (float)step, "its vectors are those of that step");
    close_node(&node);
    return step;
}

static int live_checkpoints(int n)
{
    struct node node;
    under = "checkpoints";
    atomic_store(&fails_at, 0);
    open_node(&node);
    make_one(&node, 1);
    make_one(&node, 2);
    check(said[0] == '\0' && count(".checkpoint") == 2, "the first two are written");
    begin(n);
    make_one(&node, 3);
    int made = atomic_load(&calls);
    bool good = said[0] == '\0';
    check(good || strstr(said, folder), "the line names the file");
    check(good == !matters || mode == LIES, "what fails is told");
    check(count(".part") == 0, "no part is left");
    bool lied = mode == LIES && matters;
    atomic_store(&fails_at, 0);
    uint64_t step = resumed_from();
    check(good && !lied ? step == 3 : step == 2 || step == 3, "a new process takes the newest");
    check(lied ? strstr(said, "n0-3.checkpoint is passed over") != NULL : said[0] == '\0',
          "a file is passed over where it is damaged");
    make_one(&node, 4);
    check(said[0] == '\0' && resumed_from() == 4, "the next is written");
    check(count(".checkpoint") == 2, "two are kept");
    check(count(".part") == 0, "no part is left");
    close_node(&node);
    clear();
    return made;
}

/* Reading fails: the older one is taken, or none. */
static int live_resume(int n)
{
    static const char *const reasons[MODES] = {
        ": can't read back: ", " was cut short while it was read",
        " is passed over: it is damaged"};
    struct node node;
    under = "resuming";
    atomic_store(&fails_at, 0);
    open_node(&node);
    make_one(&node, 1);
    make_one(&node, 2);
    close_node(&node);
    begin(n);
    uint64_t step = resumed_from();
    int made = atomic_load(&calls);
    const char *reason = strstr(said, "n0-2.checkpoint");
    if (reason) reason += strlen("n0-2.checkpoint");
    bool named =
        reason && strstr(said, "passed over: ") &&
        (strstr(reason, reasons[FAILS]) == reason || strstr(reason, reasons[mode]) == reason);
    check((step == 2 && !matters) || (step == 1 && named),
          "the newest that can be read is taken, and the other is named");
    clear();
    return made;
}

int main(void)
{
    static int (*const lives[])(int n) = {live_models, live_checkpoints, live_resume};
    char checkpoint[64], why[SETTINGS_WHY_BYTES];
    lack_init();
    if (!mkdtemp(folder)) return 1;
    snprintf(checkpoint, sizeof checkpoint, "--checkpoint=%s", folder);
    char *const argv[] = {"parley",          "run",      "--data=csv:t.csv",
                          "--model=softmax", checkpoint, "--resume"};
    settings_init(&settings);
    if (settings_flags(&settings, 6, argv, why) || settings_finish(&settings, why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        mode = FAILS;
        int all = lives[i](0), tries = 0;
        for (; mode < MODES; mode++)
            for (int n = 1; n <= all; n++, tries++)
                lives[i](n);
        mode = FAILS;
        printf("%s: %d calls, %d tries\n", under, all, tries);
    }
    live_through_a_slip();
    live_without_memory();
    live_beside_another();
    settings_close(&settings);
    under = "models";
    check(!too_early, "names are given to what is flushed, and are flushed themselves");
    check(without_record > 0, "a model whose record can't be written is published");
    check(rmdir(folder) == 0, "the folder is empty at the end");
    return broken > 0;
}
