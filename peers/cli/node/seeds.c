/* seeds.c: the peer list read again, for names that change in DNS and after SIGHUP.
 *
 * A resolver or a file system that does not answer holds up a thread of its own, one at a time:
 * meanwhile the control thread takes signals. It is not waited for at the end either: it may be
 * there until the process is gone, so that all it touches is its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/node/node.h"
#include "quiet.h"

enum { DNS_MS = 5000 };

struct seed_lookup {
    struct seeds join; /* copies: the settings may be gone before the thread */
    char *peers_file;  /* NULL: none */
    bool asked;        /* by SIGHUP: what was read is said */
    struct seed_list list;
    int error;
    char why[512];

    /* Guarded by the lock. */
    uv_async_t *done; /* NULL: the node has ended, and the thread frees this */
    bool over;        /* the thread touches this no more */
};

/* Of no node, since a thread may want it when there is none any more. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lookup_free(struct seed_lookup *lookup)
{
    if (!lookup) return;
    free(lookup->peers_file);
    free(lookup->join.items);
    free(lookup);
}

/* NULL: out of memory. */
static struct seed_lookup *lookup_new(const struct settings *settings)
{
    size_t bytes = settings->join.count * sizeof *settings->join.items;
    struct seed_lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup) return NULL;
    lookup->join.count = settings->join.count;
    if (bytes > 0 && !(lookup->join.items = malloc(bytes))) goto out;
    if (bytes > 0) memcpy(lookup->join.items, settings->join.items, bytes);
    if (settings->peers_file && !(lookup->peers_file = strdup(settings->peers_file))) goto out;
    return lookup;
out:
    lookup_free(lookup);
    return NULL;
}

static void look_up(void *argument)
{
    struct seed_lookup *lookup = argument;
    lookup->error = seed_list_make(&lookup->list, &lookup->join, lookup->peers_file, lookup->why,
                                   sizeof lookup->why);
    pthread_mutex_lock(&lock);
    bool wanted = lookup->done;
    lookup->over = true;
    if (wanted) uv_async_send(lookup->done);
    pthread_mutex_unlock(&lock);
    if (!wanted) lookup_free(lookup);
}

/* Once, unless somebody asks: names are looked up every few seconds, and a file may stay bad. */
static void say_unread(struct node *node, const char *why, int error, bool asked)
{
    struct node_control *control = &node->control;
    if (!why[0]) why = parley_error_text(error);
    if (!asked && strcmp(why, control->unread) == 0) return;
    snprintf(control->unread, sizeof control->unread, "%s", why);
    say(PARLEY_LOG_ERROR, "the peer list stays as it was: %s", why);
}

static void on_dns(uv_timer_t *timer)
{
    node_seeds_read(timer->loop->data, false);
}

/* Again and again, as long as there are names to be looked up. */
static int look_again(struct node *node, bool asks_dns)
{
    if (!asks_dns) return uv_timer_stop(&node->control.dns);
    return uv_timer_start(&node->control.dns, on_dns, DNS_MS, DNS_MS);
}

static void take(struct node *node, const struct seed_lookup *lookup)
{
    const struct seed_list *list = &lookup->list;
    int error = lookup->error;
    if (!error) look_again(node, list->asks_dns);
    if (!error && !seed_list_equal(list, &node->seeds)) {
        error = parley_seeds(node->p, list->items, list->count);
        for (uint32_t i = 0; !error && i < list->count; i++)
            strcpy(node->seeds.text[i], list->text[i]);
        if (!error) node->seeds.count = list->count;
    }
    if (error)
        say_unread(node, lookup->why, error, lookup->asked);
    else if (lookup->asked)
        say(PARLEY_LOG_INFO, "read the peer list again: %u addresses%s", list->count,
            list->left_out > 0 ? ", and more than are dialled" : "");
    if (!error) node->control.unread[0] = 0;
}

/* True once the thread is done with it; `leaves`: if it is not, it is the thread's to free. */
static bool is_over(struct seed_lookup *lookup, bool leaves)
{
    pthread_mutex_lock(&lock);
    bool over = lookup->over;
    if (leaves) lookup->done = NULL;
    pthread_mutex_unlock(&lock);
    return over;
}

static void on_done(uv_async_t *async)
{
    struct node *node = async->loop->data;
    struct seed_lookup *lookup = node->control.lookup;
    if (!lookup || !is_over(lookup, false)) return;
    node->control.lookup = NULL;
    take(node, lookup);
    lookup_free(lookup);
    if (node->control.asked_again) node_seeds_read(node, true);
}

void node_seeds_read(struct node *node, bool asked)
{
    struct node_control *control = &node->control;
    uv_thread_t thread;
    if (control->lookup) {
        control->asked_again |= asked; /* what changed may have been read before */
        return;
    }
    control->asked_again = false;
    struct seed_lookup *lookup = lookup_new(node->settings);
    if (lookup) {
        lookup->asked = asked;
        lookup->done = &control->looked_up;
        if (!quiet_thread_start(&thread, look_up, lookup)) {
            pthread_detach(thread);
            control->lookup = lookup;
            return;
        }
    }
    lookup_free(lookup);
    say_unread(node, "no memory or thread to read it again", PARLEY_ENOMEM, asked);
}

int node_seeds_start(struct node *node)
{
    struct node_control *control = &node->control;
    int code = uv_async_init(&control->loop, &control->looked_up, on_done);
    if (!code) code = uv_timer_init(&control->loop, &control->dns);
    return code ? code : look_again(node, node->seeds.asks_dns);
}

void node_seeds_end(struct node *node)
{
    struct seed_lookup *lookup = node->control.lookup;
    node->control.lookup = NULL;
    if (lookup && is_over(lookup, true)) lookup_free(lookup);
}
