// SPDX-License-Identifier: GPL-3.0-or-later
/* Events: who observes them, and those of a session that only carry a text. */
#include <stdio.h>
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

void gd_session_on_event(struct gd_session *session, const char *kind, const char *text,
                         int64_t step, gd_node_id node)
{
    char kept_kind[GD_EVENT_KIND_SIZE], kept_text[GD_EVENT_TEXT_SIZE];
    char line[sizeof(kept_kind) + sizeof(kept_text) + 64];
    struct gd_note note = {.kind = kept_kind, .text = kept_text, .step = step, .node = node};
    struct gd_event event = {.type = GD_EV_EVENT, .session = session, .note = &note};

    if (session_has_ended(session)) {
        return;
    }
    session_reach(session, step);
    snprintf(kept_kind, sizeof(kept_kind), "%s", kind && kind[0] ? kind : "event");
    snprintf(kept_text, sizeof(kept_text), "%s", text ? text : "");
    gd_event_log_add(&session->events, step, kept_kind, kept_text, node);
    snprintf(line, sizeof(line), "%s at step %lld%s%s", kept_kind, (long long)step,
             kept_text[0] ? ": " : "", kept_text);
    gd_session_on_log(session, line);
    gd_debugger_emit(session->debugger, &event);
}

void gd_session_changed(struct gd_session *session, const char *text)
{
    int64_t step = gd_session_step(session);

    if (session->by_hand.count++ == 0) {
        session->by_hand.first_step = step;
    }
    session->by_hand.last_step = step;
    gd_session_on_event(session, "set", text, step, GD_NO_NODE);
}
