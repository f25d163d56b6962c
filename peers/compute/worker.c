/* worker.c: see worker.h. */
#include "compute/worker.h"

#include "prompt.h"
#include "quiet.h"

static void carry(struct worker *worker, struct op *op)
{
    if (op->update.type == PARLEY_UPDATE_WRITE)
        files_write(worker->files, op);
    else if (op->update.type == PARLEY_UPDATE_PUBLISH)
        files_publish(worker->files, op);
    else
        vectors_carry(worker->vectors, op);
}

static void run(void *argument)
{
    prompt_thread(200);
    struct worker *worker = argument;
    for (;;) {
        uv_mutex_lock(&worker->box.lock);
        while (!worker->ended && !worker->box.first)
            uv_cond_wait(&worker->box.arrived, &worker->box.lock);
        bool ended = worker->ended;
        struct op *op = worker->box.first;
        if (op && !(worker->box.first = op->next)) worker->box.last = &worker->box.first;
        uv_mutex_unlock(&worker->box.lock);
        if (ended) return;
        op->next = NULL;
        carry(worker, op);
        mailbox_put(worker->answers, op);
    }
}

int worker_init(struct worker *worker, struct vectors *vectors, struct files *files,
                struct mailbox *answers)
{
    worker->vectors = vectors;
    worker->files = files;
    worker->answers = answers;
    worker->ended = false;
    int code = mailbox_init(&worker->box, NULL);
    if (code) return code;
    if (quiet_thread_start(&worker->thread, run, worker)) {
        mailbox_close(&worker->box);
        return PARLEY_EFAIL;
    }
    return PARLEY_OK;
}

void worker_put(struct worker *worker, struct op *op)
{
    mailbox_put(&worker->box, op);
}

void worker_end(struct worker *worker)
{
    uv_mutex_lock(&worker->box.lock);
    worker->ended = true;
    uv_cond_signal(&worker->box.arrived);
    uv_mutex_unlock(&worker->box.lock);
    uv_thread_join(&worker->thread);
}

void worker_close(struct worker *worker)
{
    mailbox_close(&worker->box);
}
