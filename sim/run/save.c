/* save.c: see save.h. */
#include "run/save.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/record.h"
#include "run/output.h"

/* Simulated nodes write no record; that of another model would stand beside this one. */
static void drop_record(const char *path)
{
    static const char end[] = RECORD_SUFFIX;
    size_t length = strlen(path);
    char *record = malloc(length + sizeof end);
    if (!record) return;
    memcpy(record, path, length);
    memcpy(record + length, end, sizeof end);
    unlink(record);
    free(record);
}

int sim_save(const struct job *job, const float *x, const uint8_t *digest, uint64_t run,
             const char *path)
{
    struct model_meta meta;
    struct piece pieces[MODEL_FILE_PIECES];
    uint32_t count;
    const struct tensor *tensors = model_tensors(job->model, &count);
    job_meta(job, &meta);
    meta.run = run;
    memcpy(meta.digest, digest, sizeof meta.digest);
    int error =
        model_file_pieces(&meta, x, trainer_parameters(job->trainer), tensors, count, pieces);
    if (error) return error;
    drop_record(path);
    error = sim_output_replace("out", path, pieces, MODEL_FILE_PIECES);
    free((void *)pieces[0].bytes);
    return error == PARLEY_EFAIL ? PARLEY_ENOT_WRITTEN : error;
}
