/* check.c: `parley check`: settings, data, model and peer list, by the very code of `node`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "data/remarks.h"
#include "job/job.h"
#include "read_file.h"
#include "report/human.h"
#include "seed_list.h"
#include "settings/list.h"
#include "train/model.h"

static int print_settings(const struct settings *settings)
{
    char *text = settings_list_text(settings);
    if (!text) return PARLEY_ENOMEM;
    fputs(text, stdout);
    free(text);
    return 0;
}

static int print_seeds(const struct settings *settings, char *why, size_t size)
{
    struct seed_list *list = malloc(sizeof *list);
    if (!list) return PARLEY_ENOMEM;
    int error = seed_list_make(list, &settings->join, settings->peers_file, why, size);
    if (!error) {
        printf("seeds      %" PRIu32 "%s", list->count, list->count ? ":" : ": starts a cluster");
        for (uint32_t i = 0; i < list->count; i++)
            printf(" %s", list->items[i]);
        printf("\n");
    }
    free(list);
    return error;
}

/* What has names is listed as far as a line holds it. */
static void print_data(const struct source *data)
{
    const struct dataset *set = &data->train;
    char list[400];
    printf("data       %s: %" PRIu32 " samples, %" PRIu32 " for test, %" PRIu32 " %s each, %" PRIu32
           " %s\n",
           data->name, set->count, data->test.count, set->features,
           set->text            ? "characters"
           : set->features == 1 ? "value"
                                : "values",
           set->classes,
           set->text           ? "different ones"
           : set->targets      ? "number"
           : set->classes == 1 ? "class"
                               : "classes");
    if (data->shape.classes.count > 0)
        printf("%s %s\n", set->text ? "characters" : "classes   ",
               names_list(&data->shape.classes, list, sizeof list));
    if (data->shape.columns.count > 0)
        printf("columns    %s\n", names_list(&data->shape.columns, list, sizeof list));
}

static void print_job(const struct job *job)
{
    struct parley_config config;
    char memory[HUMAN_BYTES], model[HUMAN_BYTES];
    parley_config_defaults(&config);
    job_config(job, &config);
    uint64_t bytes = config.parameters * sizeof(float);
    uint64_t vectors = config.vectors + config.averaged * parley_config_buffers(&config) +
                       trainer_keeps_gradient(job->trainer);
    printf("model      %s: %" PRIu64 " parameters, %s; %" PRIu64 " vectors, %s at most\n",
           model_spec(job->model), config.parameters, human_bytes(model, bytes), vectors,
           human_bytes(memory, vectors * bytes));
    printf("run        %016" PRIx64 " in cluster %s\n", job->run, job->settings->cluster);
}

int check_command(const struct settings *settings)
{
    struct job job;
    struct remarks remarks;
    char why[512] = "";
    int error = print_settings(settings);
    if (error) return say_failure(error, NULL);
    printf("\n");
    error = job_init(&job, settings, NULL, &file_reader, why, sizeof why);
    if (job.data.name[0]) print_data(&job.data); /* even if the model can't take them */
    if (!error) {
        print_job(&job);
        remarks_of(&remarks, &job.data);
        for (uint32_t i = 0; i < remarks.count; i++)
            printf("remark     %s\n", remarks.text[i]);
        error = print_seeds(settings, why, sizeof why);
    }
    job_close(&job);
    if (!error) {
        printf("all of it would be accepted\n");
        return 0;
    }
    fflush(stdout); /* what was printed comes before the line */
    return say_failure(error, why);
}
