/* fallback.c: see fallback.h. */
#include "settings/fallback.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "parley/config.h"
#include "settings/judge.h"
#include "train/trainer.h"

/* --lr is for one batch, and the strategy's steps are of several. gd has no batch, and a quadratic
 * no scale. */
static bool scales(const struct settings *settings)
{
    return !judge_is_quadratic(settings) && strcmp(settings->optimizer, "gd") != 0 &&
           parley_strategy_sums_batches((enum parley_strategy)settings->strategy);
}

static const char *of_strategy(const struct settings *settings, enum option_id id,
                               char text[FALLBACK_BYTES])
{
    bool grows = settings->lr_scale == TRAINER_SCALE_CLUSTER; /* it is settled before a warm-up */
    int strategy = settings->strategy;
    uint32_t steps = parley_strategy_mix_every((enum parley_strategy)strategy);
    switch (id) {
    case OPTION_ID_LR_SCALE:
        return scales(settings) ? "cluster" : NULL;
    case OPTION_ID_WARMUP: /* a rate that grows with the nodes is not met at once */
        return scales(settings) && grows && !judge_ends_by_target(settings) ? "0.05" : NULL;
    case OPTION_ID_MOMENTUM_MODE: /* where x is not just averaged, a momentum can't follow that */
        return strategy == PARLEY_STRATEGY_NOLOCO || strategy == PARLEY_STRATEGY_PUSH_SUM ? "local"
                                                                                          : NULL;
    case OPTION_ID_MIX_EVERY:
        snprintf(text, FALLBACK_BYTES, "%" PRIu32, steps);
        return steps > 1 ? text : NULL;
    case OPTION_ID_CODEC:
        return strategy == PARLEY_STRATEGY_CHOCO ? "topk:0.01" : NULL;
    default:
        return NULL;
    }
}

bool fallback_varies(enum option_id id)
{
    return id == OPTION_ID_LR_SCALE || id == OPTION_ID_WARMUP || id == OPTION_ID_MOMENTUM_MODE ||
           id == OPTION_ID_MIX_EVERY || id == OPTION_ID_CODEC;
}

const char *fallback_of(const struct settings *settings, enum option_id id,
                        char text[FALLBACK_BYTES])
{
    const struct option_info *info = option_info(id);
    if (!info->fallback || !(info->fallback_verbs & VERB_BIT(settings->verb))) return NULL;
    const char *own = judge_is_of_several(settings) ? NULL : of_strategy(settings, id, text);
    return own ? own : info->fallback;
}
