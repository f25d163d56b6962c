/* roster.c: see roster.h. */
#include "core/membership/roster.h"

#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

int roster_init(struct parley_roster *roster, uint32_t max, uint64_t steps_budget)
{
    uint32_t places = 4;
    while (places < 2 * max)
        places *= 2;
    *roster = (struct parley_roster){.max = max,
                                     .index_mask = places - 1,
                                     .steps_budget = steps_budget,
                                     .generation = 1,
                                     .one_digest = true,
                                     .sampled = 1};
    roster->newest[ROSTER_ANY] = roster->newest[ROSTER_NEWS] = NONE;
    roster->records = calloc(max, sizeof *roster->records);
    roster->places = calloc(max, sizeof *roster->places);
    roster->line = calloc(max, sizeof *roster->line);
    roster->live = calloc(max, sizeof *roster->live);
    roster->waited = calloc(max, sizeof *roster->waited);
    roster->index = malloc(places * sizeof *roster->index);
    if (!roster->records || !roster->places || !roster->line || !roster->live || !roster->waited ||
        !roster->index)
        return PARLEY_ENOMEM;
    memset(roster->index, 0xff, places * sizeof *roster->index);
    for (int i = 0; i < SKETCHES_MAX; i++) {
        roster->sketches[i].buckets = calloc(MESSAGE_BUCKETS, sizeof(float));
        if (!roster->sketches[i].buckets) return PARLEY_ENOMEM;
    }
    return 0;
}

void roster_close(struct parley_roster *roster)
{
    for (int i = 0; i < SKETCHES_MAX; i++)
        free(roster->sketches[i].buckets);
    topology_close(&roster->topology);
    free(roster->index);
    free(roster->waited);
    free(roster->live);
    free(roster->line);
    free(roster->places);
    free(roster->records);
}

int roster_use_topology(struct parley_roster *roster, const struct parley_config *c)
{
    if (roster->topology.table) return 0;
    roster->topology_turnover = UINT64_MAX;
    return topology_init(&roster->topology, c->topology, c->topology_degree, roster->max, c->graph);
}

const struct topology *roster_topology(struct parley_roster *roster, uint64_t seed)
{
    struct topology *t = &roster->topology;
    if (roster->topology_turnover == roster->turnover) return t;
    t->n = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        uint32_t member = roster->line[i];
        const struct record *r = &roster->records[member];
        if (!record_is_live(r)) continue;
        if (t->graph) t->table[t->n] = topology_place(t->graph, r->name);
        roster->places[member].live = t->n;
        roster->live[t->n++] = member;
    }
    topology_draw(t, seed);
    roster->topology_turnover = roster->turnover;
    return t;
}

const uint32_t *roster_waited(struct parley_roster *roster)
{
    if (roster->waited_waits == roster->waits) return roster->waited;
    uint32_t place = 0;
    for (uint32_t i = 0; i < roster->count; i++) {
        uint32_t member = roster->line[i];
        if (!record_is_waited_for(&roster->records[member])) continue;
        roster->places[member].waited = place;
        roster->waited[place++] = member;
    }
    roster->waited_waits = roster->waits;
    return roster->waited;
}

int parley_roster_new(struct parley_roster **result, uint32_t max, uint64_t steps_budget)
{
    *result = NULL;
    if (max == 0 || max > PARLEY_MEMBERS_MAX) return PARLEY_EUSAGE;
    struct parley_roster *roster = malloc(sizeof *roster);
    if (!roster) return PARLEY_ENOMEM;
    int error = roster_init(roster, max, steps_budget);
    roster->shared = true;
    if (!error)
        *result = roster;
    else
        parley_roster_free(roster);
    return error;
}

void parley_roster_free(struct parley_roster *roster)
{
    if (roster) roster_close(roster);
    free(roster);
}

void parley_roster_dead(struct parley_roster *roster, uint64_t boot)
{
    int member = roster_find(roster, boot);
    if (member == NONE || roster->records[member].state == PARLEY_MEMBER_LEFT) return;
    roster->records[member].state = PARLEY_MEMBER_DEAD;
    roster_changed(roster, member, true);
}

/* ---- Looking up ------------------------------------------------------------------------------ */

int roster_find(const struct parley_roster *roster, uint64_t boot)
{
    for (uint32_t at = (uint32_t)rng_mix(boot);; at++) {
        int member = roster->index[at & roster->index_mask];
        if (member == NONE || roster->records[member].boot == boot) return member;
    }
}

/* All nodes have one order: of one name by boot. */
static bool is_before(const struct record *r, const char *name, uint64_t boot)
{
    int order = strcmp(r->name, name);
    return order < 0 || (order == 0 && r->boot < boot);
}

/* Of these or of what comes after them, if so many stand in line. */
static uint32_t place_in_line(const struct parley_roster *roster, uint32_t count, const char *name,
                              uint64_t boot)
{
    uint32_t from = 0, to = count;
    while (from < to) {
        uint32_t middle = (from + to) / 2;
        if (is_before(&roster->records[roster->line[middle]], name, boot))
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

int roster_named(const struct parley_roster *roster, const char *name, uint32_t *at)
{
    if (*at == 0) *at = place_in_line(roster, roster->count, name, 0);
    if (*at >= roster->count) return NONE;
    uint32_t member = roster->line[(*at)++];
    return strcmp(roster->records[member].name, name) == 0 ? (int)member : NONE;
}

int roster_namesake(const struct parley_roster *roster, const char *name, uint64_t boot)
{
    int member;
    for (uint32_t at = 0; (member = roster_named(roster, name, &at)) != NONE;) {
        const struct record *r = &roster->records[member];
        if (record_is_live(r) && r->boot != boot) return member;
    }
    return NONE;
}

static bool is_known(const struct record *r)
{
    return r->state != PARLEY_MEMBER_LEFT || r->phase == PARLEY_PHASE_DONE;
}

/* A restarted node is counted once: its boots stand in line side by side. Of those that live each
 * counts. */
static uint32_t count_known(const struct parley_roster *roster)
{
    const char *name = NULL;
    uint32_t known = 0, live = 0;
    for (uint32_t at = 0; at < roster->count; at++) {
        const struct record *r = &roster->records[roster->line[at]];
        if (!is_known(r)) continue;
        bool another = !name || strcmp(name, r->name) != 0;
        if (another) live = 0;
        live += record_is_live(r);
        known += another || (record_is_live(r) && live > 1);
        name = r->name;
    }
    return known;
}

uint32_t roster_known(struct parley_roster *roster)
{
    if (roster->known_knows != roster->knows) roster->known = count_known(roster);
    roster->known_knows = roster->knows;
    return roster->known;
}

/* ---- Changing -------------------------------------------------------------------------------- */

static void unlink_place(struct parley_roster *roster, int member, enum roster_list list)
{
    struct roster_place *place = &roster->places[member];
    int newer = place->newer[list], older = place->older[list];
    if (newer != NONE)
        roster->places[newer].older[list] = older;
    else
        roster->newest[list] = older;
    if (older != NONE) roster->places[older].newer[list] = newer;
}

static void link_newest(struct parley_roster *roster, int member, enum roster_list list)
{
    struct roster_place *place = &roster->places[member];
    place->newer[list] = NONE;
    place->older[list] = roster->newest[list];
    if (roster->newest[list] != NONE) roster->places[roster->newest[list]].newer[list] = member;
    roster->newest[list] = member;
    place->change[list] = roster->change;
}

static void move_forward(struct parley_roster *roster, int member, enum roster_list list)
{
    unlink_place(roster, member, list);
    link_newest(roster, member, list);
}

/* Where `lined` others stand. */
static void line_up(struct parley_roster *roster, uint32_t member, uint32_t lined)
{
    const struct record *r = &roster->records[member];
    uint32_t from = place_in_line(roster, lined, r->name, r->boot);
    memmove(roster->line + from + 1, roster->line + from, (lined - from) * sizeof *roster->line);
    roster->line[from] = member;
}

static void leave_line(struct parley_roster *roster, uint32_t member)
{
    uint32_t at = 0;
    while (roster->line[at] != member)
        at++;
    memmove(roster->line + at, roster->line + at + 1,
            (roster->count - at - 1) * sizeof *roster->line);
}

static void add_to_index(struct parley_roster *roster, int member)
{
    uint32_t at = (uint32_t)rng_mix(roster->records[member].boot);
    while (roster->index[at & roster->index_mask] != NONE)
        at++;
    roster->index[at & roster->index_mask] = member;
}

static uint32_t classes_of(const struct parley_roster *roster, const struct record *r)
{
    bool live = record_is_live(r), waited = record_is_waited_for(r);
    bool joining = live && r->phase == PARLEY_PHASE_JOINING;
    bool dead = r->state == PARLEY_MEMBER_DEAD;
    bool trains = live && r->phase == PARLEY_PHASE_TRAIN;
    bool newest = waited && r->generation == roster->generation;
    bool in[ROSTER_CLASSES] = {
        [ROSTER_LIVE] = live,
        [ROSTER_KNOWN] = is_known(r),
        [ROSTER_WAITED] = waited,
        [ROSTER_JOINING] = joining,
        [ROSTER_TRAINS] = trains,
        [ROSTER_ENDING] = live && r->phase > PARLEY_PHASE_TRAIN && r->phase <= PARLEY_PHASE_DONE,
        [ROSTER_STOPPED] = !dead && r->stop != PARLEY_STOP_NONE,
        [ROSTER_DONE] = !dead && r->phase == PARLEY_PHASE_DONE,
        [ROSTER_SERVES] = live && r->phase == PARLEY_PHASE_DONE,
        [ROSTER_UNMADE] = (trains || joining) && !r->aside && r->version < roster->steps_budget,
        [ROSTER_SETTLES] = waited && r->phase >= PARLEY_PHASE_SETTLE,
        [ROSTER_FAR] = waited && r->phase == PARLEY_PHASE_SETTLE && !r->near,
        [ROSTER_UNMEASURED] = waited && r->phase >= PARLEY_PHASE_PROPOSED && !r->measured,
        [ROSTER_DISTRUSTS] = waited && r->distrusts[MESSAGE_DISTRUSTS_MAX - 1] != 0,
        [ROSTER_HAS_LOCK] = waited && r->lock_generation > 0,
        [ROSTER_PROPOSED] = newest && r->phase >= PARLEY_PHASE_PROPOSED,
        [ROSTER_HELD] = newest && r->phase >= PARLEY_PHASE_HELD,
        [ROSTER_LOCKED] = newest && r->phase >= PARLEY_PHASE_LOCKED,
    };
    uint32_t classes = 0;
    for (int i = 0; i < ROSTER_CLASSES; i++)
        classes |= (uint32_t)in[i] << i;
    return classes;
}

/* What all had used when their cluster was killed, less what those bring along who are back. */
static void count_absent(struct parley_roster *roster)
{
    uint64_t absent = roster->kept_all > roster->kept ? roster->kept_all - roster->kept : 0;
    roster->samples += absent - roster->samples_absent;
    roster->samples_gone += absent - roster->samples_absent;
    roster->samples_absent = absent;
}

/* The most that anybody's file tells of. */
static void count_kept_all(struct parley_roster *roster, struct roster_place *place, uint64_t all)
{
    bool less = all < place->kept_all && place->kept_all == roster->kept_all;
    place->kept_all = all;
    if (less) roster->kept_all = 0;
    for (uint32_t i = 0; less && i < roster->count; i++)
        if (roster->places[i].kept_all > roster->kept_all)
            roster->kept_all = roster->places[i].kept_all;
    if (all > roster->kept_all) roster->kept_all = all;
}

/* What a live process goes on from may be known of those before it of its name: where it began
 * before it met who counts that. It takes it back itself then (joining.c). Who has much more in its
 * file brings it from elsewhere. */
static bool is_counted_twice(const struct parley_roster *roster, const struct record *r)
{
    uint64_t samples = 0;
    int other;
    if (r->kept == 0 || !record_is_live(r)) return false;
    for (uint32_t at = 0; (other = roster_named(roster, r->name, &at)) != NONE;)
        if (!record_is_live(&roster->records[other])) samples += roster->records[other].samples;
    for (int i = 0; i < ROSTER_FORGOTTEN; i++)
        if (strcmp(roster->forgotten[i].name, r->name) == 0)
            samples += roster->forgotten[i].samples;
    return samples > 0 && samples >= r->kept / 2;
}

uint64_t roster_samples(const struct parley_roster *roster, int member)
{
    const struct record *r = &roster->records[member];
    uint64_t twice = roster->places[member].twice ? r->kept : 0;
    return r->samples > twice ? r->samples - twice : 0;
}

static void count_work(struct parley_roster *roster, struct roster_place *place, uint32_t classes,
                       const struct record *r)
{
    bool was_live = place->classes >> ROSTER_LIVE & 1u, lives = classes >> ROSTER_LIVE & 1u;
    place->twice = place->twice || is_counted_twice(roster, r);
    uint64_t kept = place->twice ? 0 : r->kept;
    uint64_t samples = roster_samples(roster, (int)(place - roster->places));
    roster->samples += samples - place->samples;
    roster->samples_gone += (lives ? 0 : samples) - (was_live ? 0 : place->samples);
    roster->steps += (lives ? r->version : 0) - (was_live ? place->steps : 0);
    roster->kept += kept - place->kept;
    count_kept_all(roster, place, place->twice ? 0 : r->kept_all);
    count_absent(roster);
    place->samples = samples;
    place->kept = kept;
    place->steps = r->version;
}

static void count(struct parley_roster *roster, int member)
{
    const struct record *r = &roster->records[member];
    struct roster_place *place = &roster->places[member];
    uint32_t classes = classes_of(roster, r), changed = classes ^ place->classes;
    uint64_t digest = 0;
    for (int i = 0; changed && i < ROSTER_CLASSES; i++)
        roster->counts[i] += (classes >> i & 1u) - (place->classes >> i & 1u);
    bool waited = classes >> ROSTER_WAITED & 1u, came_or_went = changed >> ROSTER_WAITED & 1u;
    if (came_or_went) roster->among += waited ? rng_mix(r->boot) : -rng_mix(r->boot);
    roster->turnover += changed >> ROSTER_LIVE & 1u;
    roster->knows += (changed >> ROSTER_KNOWN & 1u) + (changed >> ROSTER_LIVE & 1u);
    roster->waits += came_or_went;
    roster->sampled += came_or_went || changed >> ROSTER_UNMEASURED & 1u;
    if (classes >> ROSTER_HELD & 1u) memcpy(&digest, r->digest, sizeof digest);
    roster->holds += changed >> ROSTER_HELD & 1u || digest != place->digest;
    count_work(roster, place, classes, r);
    roster->fetched += r->fetched - place->fetched;
    place->fetched = r->fetched;
    place->classes = classes;
    place->digest = digest;
}

/* What their files tell of may be known of this one. */
static void count_namesakes(struct parley_roster *roster, int member)
{
    const struct record *r = &roster->records[member];
    int other;
    roster->files |= r->kept > 0;
    for (uint32_t at = 0; roster->files && (other = roster_named(roster, r->name, &at)) != NONE;)
        if (other != member && roster->records[other].kept > 0) count(roster, other);
}

/* Who counts as having proposed changes with the newest generation of all. */
static void follow_generation(struct parley_roster *roster, int member)
{
    const struct record *r = &roster->records[member];
    bool waited = record_is_waited_for(r), newer = waited && r->generation > roster->generation;
    bool was_newest = roster->generation > 1 && roster_in(roster, (uint32_t)member, ROSTER_WAITED);
    if (!newer && (!was_newest || (waited && r->generation == roster->generation))) return;
    uint32_t newest = 1;
    for (uint32_t i = 0; i < roster->count; i++)
        if (record_is_waited_for(&roster->records[i]) && roster->records[i].generation > newest)
            newest = roster->records[i].generation;
    if (newest == roster->generation) return;
    roster->generation = newest;
    for (uint32_t i = 0; i < roster->count; i++)
        count(roster, (int)i);
}

void roster_changed(struct parley_roster *roster, int member, bool news)
{
    roster->change++;
    if (news) roster->news = roster->change;
    if (!roster->shared) move_forward(roster, member, ROSTER_ANY);
    if (!roster->shared && news) move_forward(roster, member, ROSTER_NEWS);
    follow_generation(roster, member);
    count(roster, member);
    count_namesakes(roster, member);
}

static void recall(struct parley_roster *roster, uint64_t boot)
{
    for (int i = 0; i < ROSTER_FORGOTTEN; i++) {
        struct roster_forgotten *f = &roster->forgotten[i];
        if (f->boot != boot) continue;
        roster->samples -= f->samples;
        roster->samples_gone -= f->samples;
        roster->samples_forgotten -= f->samples;
        roster->kept -= f->kept;
        *f = (struct roster_forgotten){0};
    }
}

static void forget(struct parley_roster *roster, int member)
{
    const struct roster_place *place = &roster->places[member];
    const struct record *r = &roster->records[member];
    struct roster_forgotten *f = &roster->forgotten[roster->forgotten_next++ % ROSTER_FORGOTTEN];
    roster->samples_forgotten += place->samples;
    *f = (struct roster_forgotten){.boot = r->boot, .samples = place->samples, .kept = place->kept};
    memcpy(f->name, r->name, sizeof f->name);
}

static void take_place(struct parley_roster *roster, int member, const struct record *record)
{
    struct record *r = &roster->records[member];
    *r = (struct record){.boot = record->boot, .state = PARLEY_MEMBER_DEAD};
    memcpy(r->name, record->name, sizeof r->name);
    memcpy(r->address, record->address, sizeof r->address);
    roster->places[member] = (struct roster_place){0};
    roster->change++;
    for (int list = 0; list < ROSTER_LISTS; list++)
        link_newest(roster, member, (enum roster_list)list);
    count(roster, member);
}

int roster_add(struct parley_roster *roster, const struct record *record)
{
    if (roster->count == roster->max) return NONE;
    int member = (int)roster->count++;
    recall(roster, record->boot);
    take_place(roster, member, record);
    line_up(roster, (uint32_t)member, (uint32_t)member);
    add_to_index(roster, member);
    return member;
}

void roster_replace(struct parley_roster *roster, int member, const struct record *record)
{
    recall(roster, record->boot); /* before it might be the oldest in the ring, and pushed out */
    forget(roster, member);
    for (int list = 0; list < ROSTER_LISTS; list++)
        unlink_place(roster, member, (enum roster_list)list);
    leave_line(roster, (uint32_t)member);
    for (int i = 0; i < ROSTER_CLASSES; i++)
        roster->counts[i] -= roster->places[member].classes >> i & 1u;
    take_place(roster, member, record);
    line_up(roster, (uint32_t)member, roster->count - 1);
    memset(roster->index, 0xff, (roster->index_mask + 1) * sizeof *roster->index);
    for (uint32_t i = 0; i < roster->count; i++)
        add_to_index(roster, (int)i);
}
