/* save.c: see save.h. */
#include "run/save.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/output.h"

/* Simulated nodes write no record; that of another model would stand beside this one. */
static void drop_record(const char *path)
{
    static const char end[] = ".agreement.json";
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
    const struct dataset *set = &job->data.train;
    struct model_meta meta;
    uint32_t count;
    uint8_t *header = NULL;
    const struct tensor *tensors = model_tensors(job->model, &count);
    size_t n = trainer_parameters(job->trainer);
    job_meta(job, &meta);
    meta.run = run;
    memcpy(meta.digest, digest, sizeof meta.digest);
    size_t scaling = meta.scaling * sizeof(float);
    struct sim_piece pieces[] = {{NULL, 0},
                                 {x, n * sizeof *x},
                                 {set->shift, scaling},
                                 {set->scale, scaling},
                                 {set->label, meta.numbers ? sizeof set->label : 0}};
    int error = model_file_header(&meta, n, tensors, count, &header, &pieces[0].size);
    if (error) return error;
    pieces[0].bytes = header;
    drop_record(path);
    error = sim_output_replace("out", path, pieces, sizeof pieces / sizeof *pieces);
    free(header);
    return error == PARLEY_EFAIL ? PARLEY_ENOT_WRITTEN : error;
}
