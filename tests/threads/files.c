/* files.c: the final model on disk.
 *
 *   - a model that is written and published reads back with its digest, and the record matches it
 *   - where there is no record, one of this very file stays, and one of an earlier model goes
 *   - another model that no fewer of this node's cluster agreed on without it keeps its name; the
 *     line says where this node's is, however long its name, and whatever else it is to say
 *   - before publishing nothing stands under the model's name; an unpublished part is removed
 *   - what stands under a part's name is replaced: no link is followed
 *   - a pipe under the record's name holds nobody up
 *   - a disk that takes no more, or a missing directory, fails with a line and leaves nothing
 * behind
 *
 * Plain main(): it changes the process's limits.
 */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/durable.h"
#include "disk/files.h"

enum { FLOATS = 50000 };

static int failures;
static char folder[] = "/tmp/parley-files-XXXXXX";
static char out[64];
static float block[FLOATS];
static struct tensor tensors[2] = {
    {.name = "w", .rank = 2, .shape = {100, 400}, .count = 40000},
    {.name = "b", .rank = 1, .shape = {10000}, .offset = 40000, .count = 10000}};
static struct vectors vectors = {.count = FLOATS,
                                 .block = block,
                                 .stride = FLOATS,
                                 .buffers = 1,
                                 .run = 7,
                                 .tensors = tensors,
                                 .tensors_count = 2};
static struct op op;

static void check(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "broken: %s (%s)\n", what, op.why);
    failures++;
}

static void open_files(struct files *files, const char *path)
{
    static const float shift = 0.5f, scale = 2;
    struct parley_options options = {.out = path};
    options.about.scaling = 1;
    options.about.shift = &shift;
    options.about.scale = &scale;
    memset(&op, 0, sizeof op);
    char why[240];
    if (files_init(files, &vectors, &options, "n0", 42, why, sizeof why)) exit(1);
}

static int count_files(void)
{
    DIR *directory = opendir(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static void make_record(uint64_t boot, uint32_t held)
{
    op.record = calloc(1, sizeof *op.record);
    op.record->members = calloc(held, sizeof *op.record->members);
    for (uint32_t i = 0; i < held; i++)
        op.record->members[i] = (struct record_member){"n0", true, true, true, boot + i};
    for (uint32_t i = 0; i < held; i++)
        op.record->members[i].name[1] += (char)i;
    op.record->member_count = op.record->held = op.record->live = op.record->known = held;
    op.record->run = 7;
    op.record->drift_before = NAN;
    strcpy(op.record->node, "n0");
    strcpy(op.record->cause, "budget");
    memcpy(op.record->digest, op.digest, sizeof op.digest);
}

static void check_published(void)
{
    char path[96], why[160] = "";
    size_t size = 0, record_size = 0;
    struct model_file file;
    struct record record;
    uint8_t hash[DIGEST_BYTES];
    snprintf(path, sizeof path, "%s.agreement.json", out);
    uint8_t *model, *text;
    bool there = !durable_read(out, &model, &size, op.why, sizeof op.why) &&
                 !durable_read(path, &text, &record_size, op.why, sizeof op.why);
    check(there, "model and record are there");
    if (!there) return;
    check(!model_file_open(&file, model, size, op.why, sizeof op.why), "the model opens");
    check(!model_file_verify(&file, op.why, sizeof op.why), "it has the digest it states");
    check(file.meta.scaling == 1 && *(const float *)file.meta.scale == 2, "scaling is in");
    check(!record_decode(&record, text, record_size, why, sizeof why), "the record opens");
    check(!digest_bytes(model, size, hash) &&
              !record_match(&record, op.digest, hash, 7, why, sizeof why),
          "the record is about this file");
    record_close(&record);
    model_file_close(&file);
    free(model);
    free(text);
}

static void drop_record(void)
{
    record_close(op.record);
    free(op.record);
    op.record = NULL;
}

static void publishes(void)
{
    struct files files;
    open_files(&files, out);
    files_write(&files, &op);
    check(op.done.done.ok && count_files() == 1 && access(out, F_OK), "only a part after writing");
    make_record(41, 1);
    files_publish(&files, &op);
    check(op.done.done.ok && count_files() == 2, "model and record after publishing");
    check_published();
    drop_record();
    files_close(&files);
    check(count_files() == 2, "what was published stays");
}

static void publish_without_a_record(void)
{
    struct files files;
    open_files(&files, out);
    files_write(&files, &op);
    files_publish(&files, &op);
    check(op.done.done.ok, "a model without a record");
    files_close(&files);
}

static void drops_what_is_of_another_file(void)
{
    publish_without_a_record();
    check(count_files() == 2, "a record of this very file stays");
    check_published();
    block[0]++;
    publish_without_a_record();
    check(count_files() == 1 && access(out, F_OK) == 0, "a record of another file goes");
}

static void hash_of_out(uint8_t hash[DIGEST_BYTES])
{
    uint8_t *bytes;
    size_t size;
    if (durable_read(out, &bytes, &size, op.why, sizeof op.why)) exit(1);
    check(!digest_bytes(bytes, size, hash), "a hash");
    free(bytes);
}

/* Of this node's cluster (42 is its boot) or another, by so many: whether it gives way to what
 * `held` agree on with this node; 0: nobody knows by how many. */
static bool gives_way(uint64_t first, uint32_t held, uint32_t own)
{
    struct files files;
    char aside[80], record[100];
    uint8_t before[DIGEST_BYTES], after[DIGEST_BYTES];
    snprintf(aside, sizeof aside, "%s.n0", out);
    snprintf(record, sizeof record, "%s.agreement.json", aside);
    for (int i = 0; i < 2; i++) {
        block[0]++;
        open_files(&files, out);
        files_write(&files, &op);
        if (i == 0 || own > 0) make_record(i == 0 ? first : 42, i == 0 ? held : own);
        if (i == 0) unlink(out);
        files_publish(&files, &op);
        check(op.done.done.ok, "it is published");
        if (i == 0) files_close(&files);
        if (op.record) drop_record();
        hash_of_out(i == 0 ? before : after);
    }
    bool gives = !files.aside;
    check(gives == (access(aside, F_OK) != 0) && gives == !op.why[0], "a line says where it is");
    check(gives || own == 0 || !access(record, F_OK), "with its record");
    check(gives == (memcmp(before, after, sizeof after) != 0), "the other keeps its name");
    unlink(aside);
    unlink(record);
    files_close(&files);
    return gives;
}

static void leaves_what_others_agreed_on(void)
{
    check(!gives_way(41, 3, 1), "three agreed without this node");
    check(!gives_way(41, 3, 3), "as many as with it");
    check(!gives_way(41, 3, 0), "or nobody knows with how many");
    check(gives_way(41, 3, 4), "but more agree with it");
    check(gives_way(43, 3, 1), "and of another cluster nothing stays");
}

/* What three others have agreed on, who call the data by that name. */
static void agree_without(const char *path, const char *data)
{
    struct files files;
    open_files(&files, path);
    strcpy(files.meta.data, data);
    files_write(&files, &op);
    make_record(41, 3);
    files_publish(&files, &op);
    drop_record();
    files_close(&files);
}

static void agrees_with_who_calls_the_data_otherwise(void)
{
    struct files files;
    agree_without(out, "other");
    open_files(&files, out);
    files_write(&files, &op);
    make_record(42, 1);
    files_publish(&files, &op);
    check(op.done.done.ok && !files.aside && !op.why[0], "one model in two files is no other");
    check_published();
    drop_record();
    files_close(&files);
}

static void says_where_its_own_is(void)
{
    enum { LONGEST = 191 };
    struct files files;
    char path[sizeof folder + LONGEST + 20], aside[sizeof path + 3], record[sizeof aside + 20];
    snprintf(path, sizeof path, "%s/%0*d", folder, LONGEST, 0);
    snprintf(aside, sizeof aside, "%s.n0", path);
    snprintf(record, sizeof record, "%s.agreement.json", aside);
    agree_without(path, "");
    block[0]++;
    check(!mkdir(record, 0700), "a folder where the record should be");
    open_files(&files, path);
    files_write(&files, &op);
    make_record(42, 1);
    files_publish(&files, &op);
    check(op.done.done.ok && !access(aside, F_OK), "it is published under the longest name");
    check(strstr(op.why, "3 agreed on another model") && strstr(op.why, "0.n0; no record"),
          "it says where, and what else went wrong");
    drop_record();
    files_close(&files);
    rmdir(record);
    unlink(aside);
    unlink(path);
    strcat(path, ".agreement.json");
    unlink(path);
}

/* Who may make files in the folder has made them first, of names that can be guessed. */
static void writes_to_no_file_of_others(void)
{
    static const char precious[] = "precious";
    char path[96], other[96], found[sizeof precious] = "";
    const struct piece piece = {precious, strlen(precious)}, model = {block, sizeof block};
    struct stat status;
    snprintf(path, sizeof path, "%s/export.part", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    int before = count_files();
    for (int hard = 0; hard < 2; hard++) {
        check(!durable_write(other, &piece, 1, op.why, sizeof op.why), "a precious file");
        check(!(hard ? link(other, path) : symlink(other, path)), "a link to it");
        path[strlen(path) - strlen(".part")] = 0;
        check(!durable_replace(path, &model, 1, op.why, sizeof op.why), "the model is written");
        FILE *file = fopen(other, "r");
        check(file && fread(found, 1, sizeof found, file) == piece.size &&
                  memcmp(found, precious, piece.size) == 0,
              "what the link leads to stays as it is");
        if (file) fclose(file);
        check(!lstat(path, &status) && S_ISREG(status.st_mode) && status.st_size == sizeof block,
              "the model is a file of its own");
        unlink(path);
        unlink(other);
        strcat(path, ".part");
    }
    check(count_files() == before, "nothing else is left");
}

/* It would wait for ever, and no signal but the last one would end it. */
static void waits_for_no_pipe(void)
{
    struct files files;
    char path[96], record[128];
    int before = count_files();
    snprintf(path, sizeof path, "%s/piped", folder);
    snprintf(record, sizeof record, "%s.agreement.json", path);
    check(!mkfifo(record, 0666), "a pipe where the record should be");
    open_files(&files, path);
    files_write(&files, &op);
    make_record(42, 1);
    alarm(20);
    files_publish(&files, &op);
    alarm(0);
    check(op.done.done.ok && !access(path, F_OK) && strstr(op.why, "is empty"),
          "the model is published beside it");
    check(!unlink(record) && !unlink(path) && count_files() == before, "with its record");
    drop_record();
    files_close(&files);
}

static void cleans_up(void)
{
    struct files files;
    char missing[96];
    int before = count_files();
    open_files(&files, out);
    files_write(&files, &op);
    check(count_files() == before + 1, "a part is written");
    files_close(&files);
    check(count_files() == before, "an unpublished part is removed");

    snprintf(missing, sizeof missing, "%s/no", folder); /* it goes while the node trains */
    check(mkdir(missing, 0700) == 0, "a directory is made");
    snprintf(missing, sizeof missing, "%s/no/model", folder);
    open_files(&files, missing);
    missing[strlen(missing) - strlen("/model")] = 0;
    check(rmdir(missing) == 0, "and removed");
    files_write(&files, &op);
    check(!op.done.done.ok && strstr(op.why, missing), "a missing directory is named");
    files_close(&files);

    struct rlimit limit = {FLOATS, FLOATS};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    open_files(&files, out);
    files_write(&files, &op);
    check(!op.done.done.ok && strstr(op.why, "write"), "a full disk fails the write");
    check(count_files() == before, "and leaves nothing behind");
    files_publish(&files, &op);
    check(!op.done.done.ok, "nothing to publish then");
    files_close(&files);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    snprintf(out, sizeof out, "%s/model", folder);
    for (int i = 0; i < FLOATS; i++)
        block[i] = (float)i;
    publishes();
    drops_what_is_of_another_file();
    leaves_what_others_agreed_on();
    agrees_with_who_calls_the_data_otherwise();
    says_where_its_own_is();
    writes_to_no_file_of_others();
    waits_for_no_pipe();
    cleans_up();
    unlink(out);
    strcat(out, ".agreement.json");
    unlink(out);
    check(rmdir(folder) == 0, "the folder is empty at the end");
    return failures ? 1 : 0;
}
