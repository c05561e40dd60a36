// SPDX-License-Identifier: GPL-3.0-or-later
/* Events: who observes them, and those of a session that only carry a text. */
#include <string.h>

#include "base/grow.h"
#include "engine/session_impl.h"

int gd_debugger_observe(struct gd_debugger *debugger, gd_observer_fn fn, void *ctx)
{
    struct gd_debugger_impl *impl = debugger->impl;

    if (!gd_grow_list(&impl->observers, impl->observer_count, &impl->observer_cap,
                      sizeof(*impl->observers))) {
        return GD_ENOMEM;
    }
    impl->observers[impl->observer_count++] = (struct debugger_observer){.fn = fn, .ctx = ctx};
    return GD_OK;
}

void gd_debugger_unobserve(struct gd_debugger *debugger, gd_observer_fn fn, void *ctx)
{
    struct gd_debugger_impl *impl = debugger->impl;

    for (size_t i = 0; i < impl->observer_count; i++) {
        if (impl->observers[i].fn == fn && impl->observers[i].ctx == ctx) {
            impl->observer_count--;
            memmove(impl->observers + i, impl->observers + i + 1,
                    (impl->observer_count - i) * sizeof(*impl->observers));
            return;
        }
    }
}

void gd_debugger_emit(struct gd_debugger *debugger, const struct gd_event *event)
{
    if (debugger->impl->ending) {
        return;
    }
    for (size_t i = 0; i < debugger->impl->observer_count; i++) {
        debugger->impl->observers[i].fn(debugger->impl->observers[i].ctx, event);
    }
    debugger->impl->on_event(debugger, event);
}

void session_emit(struct gd_session *session, enum gd_event_type type, const char *text,
                  const struct gd_hit *hit)
{
    struct gd_event event = {.type = type, .session = session, .text = text, .hit = hit};

    gd_debugger_emit(session->debugger, &event);
}

void gd_session_on_log(struct gd_session *session, const char *text)
{
    session_emit(session, GD_EV_LOG, text, NULL);
}

void gd_session_on_warning(struct gd_session *session, const char *text)
{
    session_emit(session, GD_EV_WARNING, text, NULL);
}
