// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a watchpoint is judged, for display. */
#include <stdio.h>

#include "engine/watch/watch_impl.h"

static const struct watch_cover *cover_of(const struct gd_session *session, int number)
{
    const struct gd_watching *w = session ? session->watching : NULL;
    for (size_t i = 0; w && i < w->cover_count; i++) {
        if (w->covers[i].number == number) {
            return &w->covers[i];
        }
    }
    return NULL;
}

/* If tensors are examined right after their operators for one watchpoint, the others that cover
 * them are judged there, too. */
static bool is_exact(const struct gd_watching *w, uint32_t cover)
{
    for (size_t i = 0; i < w->tensor_count; i++) {
        const struct watch_set *set = w->tensors[i].set;
        for (uint32_t p = 0; p < set->part_count; p++) {
            const struct watch_part *part = &set->part[p];
            for (uint32_t k = 0; part->exact && k < part->serve_count; k++) {
                if (set->cover[part->serve[k].which] == cover) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* As configured, when there is no process to decide. */
static enum gd_watch_place meant_place(const struct gd_watchpoint *watch,
                                       const struct gd_settings *settings)
{
    struct watch_wants wants;
    if (watch->condition && watch->condition->initial_only) {
        return GD_WATCH_PLACE_START;
    }
    watching_wants(watch, settings, &wants);
    return wants.exact ? GD_WATCH_PLACE_EXACT : GD_WATCH_PLACE_STEP_END;
}

enum gd_watch_place gd_watchpoint_place(const struct gd_watchpoint *watch,
                                        const struct gd_debugger *debugger,
                                        const struct gd_session *session, char *why, size_t size)
{
    const struct watch_cover *cover = cover_of(session, watch->number);
    if (size) {
        why[0] = '\0';
    }
    if (!cover || !session->target) {
        return meant_place(watch, &debugger->settings);
    }
    if (cover->problem) {
        snprintf(why, size, "%s", cover->problem_text);
        return GD_WATCH_PLACE_NONE;
    }
    switch (cover->mode) {
    case WATCH_MODE_REMOTE: return GD_WATCH_PLACE_PROCESS;
    case WATCH_MODE_INITIAL: return GD_WATCH_PLACE_START;
    case WATCH_MODE_PLAN:
        return is_exact(session->watching, (uint32_t)(cover - session->watching->covers))
                   ? GD_WATCH_PLACE_EXACT
                   : GD_WATCH_PLACE_STEP_END;
    default: return GD_WATCH_PLACE_STEP_END;
    }
}
