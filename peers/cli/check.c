/* check.c: `parley check`: settings, data, model and peer list, by the very code of `node`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "report/human.h"
#include "seed_list.h"
#include "settings/list.h"
#include "task.h"
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
    int error = seed_list_make(list, settings, why, size);
    if (!error) {
        printf("seeds      %" PRIu32 "%s", list->count, list->count ? ":" : ": starts a cluster");
        for (uint32_t i = 0; i < list->count; i++)
            printf(" %s", list->items[i]);
        printf("\n");
    }
    free(list);
    return error;
}

static void print_task(const struct task *task, const struct parley_config *config)
{
    char memory[HUMAN_BYTES], model[HUMAN_BYTES];
    const struct dataset *set = &task->load.train;
    uint64_t bytes = config->parameters * sizeof(float);
    uint64_t vectors = config->vectors + parley_config_buffers(config);
    printf("data       %s: %" PRIu32 " samples, %" PRIu32 " for test, %" PRIu32
           " values each, %" PRIu32 " classes\n",
           task->load.name, set->count, task->load.test.count, set->features, set->classes);
    printf("model      %s: %" PRIu64 " parameters, %s; %" PRIu64 " vectors: %s\n",
           model_spec(task->model), config->parameters, human_bytes(model, bytes), vectors,
           human_bytes(memory, vectors * bytes));
    printf("run        %016" PRIx64 " in cluster %s\n", task->run, config->cluster);
}

int check_command(const struct settings *settings)
{
    struct task task;
    struct parley_options options;
    char why[512] = "";
    int error = print_settings(settings);
    if (error) return say_failure(error, NULL);
    printf("\n");
    error = task_init(&task, settings, why, sizeof why);
    if (!error) {
        task_options(&task, &options);
        print_task(&task, &options.config);
        error = print_seeds(settings, why, sizeof why);
    }
    task_close(&task);
    fflush(stdout);
    if (error) return say_failure(error, why);
    printf("all of it would be accepted\n");
    return 0;
}
