// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The commands layout, focus, winheight, refresh, bind and `help keys`. gradbrc is read before the
 * panes open, so what they set is kept here until then.
 */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <string.h>

#include "repl/core/repl.h"
#include "tui/panes/pane_tensor_view.h"

static struct {
    enum tui_layout layout;
    enum tui_pane_id focus;
    int console_rows;
} wish = {.focus = TUI_CONSOLE};

static int control_layout(void *ctx, const char *name, struct gd_err *err)
{
    struct tui *tui = ctx;
    enum tui_layout layout = tui ? tui->layout : wish.layout;
    bool next = strcmp(name, "next") == 0;

    if (next || strcmp(name, "prev") == 0) {
        layout = (enum tui_layout)((layout + (next ? 1 : LAYOUT_COUNT - 1)) % LAYOUT_COUNT);
    } else {
        int rc = layout_find(name, &layout, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    wish.layout = layout;
    if (tui) {
        tui_set_layout(tui, layout);
    }
    return GD_OK;
}

static const char *control_layout_name(void *ctx)
{
    const struct tui *tui = ctx;
    return layout_name(tui ? tui->layout : wish.layout);
}

static int control_focus(void *ctx, const char *name, struct gd_err *err)
{
    struct tui *tui = ctx;
    enum tui_pane_id pane = TUI_CONSOLE;
    bool next = strcmp(name, "next") == 0;

    if (next || strcmp(name, "prev") == 0) {
        if (tui) {
            tui_show(tui, tui_next_pane(tui, next ? 1 : -1));
        }
        return GD_OK;
    }
    int rc = tui_pane_find(name, &pane, err);
    if (rc != GD_OK) {
        return rc;
    }
    wish.focus = pane;
    if (tui) {
        tui_show(tui, pane);
    }
    return GD_OK;
}

static void control_height(void *ctx, int rows)
{
    struct tui *tui = ctx;

    wish.console_rows = rows;
    if (tui) {
        tui->console_rows = rows;
        tui_redraw(tui);
    }
}

/* As drawn, if the layout chose it. */
static int control_height_now(void *ctx)
{
    const struct tui *tui = ctx;

    if (wish.console_rows > 0) {
        return wish.console_rows;
    }
    return tui && tui->console.rows > 0 ? tui->console.rows : 10;
}

static void control_refresh(void *ctx)
{
    struct tui *tui = ctx;

    if (tui) {
        draw_forget(tui->draw);
        tui_redraw(tui);
    }
}

static int control_bind(void *ctx, const char *pane_name, const char *key, const char *command,
                        struct gd_err *err)
{
    enum tui_pane_id pane = TUI_PANE_COUNT;

    (void)ctx;
    int rc = pane_name ? tui_pane_find(pane_name, &pane, err) : GD_OK;
    return rc == GD_OK ? tui_key_bind(key, pane, command, err) : rc;
}

struct key_call {
    void (*fn)(void *ctx, const struct repl_key *key);
    void *ctx;
};

static void tell_key(void *ctx, const char *group, const struct tui_key *key, const char *help,
                     bool same)
{
    const struct key_call *call = ctx;
    char panes[120];

    tui_key_panes(key, panes, sizeof(panes));
    call->fn(call->ctx, &(struct repl_key){
                            .name = key->name,
                            .group = group,
                            .help = help,
                            .panes = panes,
                            .command = key->command ? key->command : "",
                            .same = same,
                            .bound = tui_key_is_bound(key),
                        });
}

static void control_keys(void *ctx, void (*fn)(void *fn_ctx, const struct repl_key *key),
                         void *fn_ctx)
{
    struct key_call call = {fn, fn_ctx};

    (void)ctx;
    tui_keys_each(tell_key, &call);
}

static int control_tensor(void *ctx, const char *text, const char *mode, struct gd_err *err)
{
    return ctx ? tui_tensor_open(ctx, text, mode, err)
               : gd_fail(err, GD_ESTATE, "the panes are not open");
}

static int control_tensor_act(void *ctx, const char *action, const char *argument,
                              struct gd_err *err)
{
    return ctx ? tui_tensor_act(ctx, action, argument, err)
               : gd_fail(err, GD_ESTATE, "the panes are not open");
}

static int control_plot(void *ctx, const struct series_key *keys, size_t count,
                        const struct chart_options *options, struct gd_err *err)
{
    return ctx ? tui_history_plot(ctx, keys, count, options, err)
               : gd_fail(err, GD_ESTATE, "the panes are not open");
}

static const struct repl_screen_ops control_ops = {
    .layout = control_layout,
    .layout_name = control_layout_name,
    .focus = control_focus,
    .height = control_height,
    .height_now = control_height_now,
    .tensor = control_tensor,
    .tensor_act = control_tensor_act,
    .plot = control_plot,
    .refresh = control_refresh,
    .bind = control_bind,
    .keys = control_keys,
};

void tui_lend_screen(struct repl *repl)
{
    repl_set_screen(repl, &control_ops, NULL);
}

void tui_control_start(struct tui *tui)
{
    tui->layout = wish.layout;
    tui->focus = TUI_CONSOLE;
    tui->shown = tui->next = wish.focus;
    tui->console_rows = wish.console_rows;
    repl_set_screen(tui->repl, &control_ops, tui);
}

void tui_control_stop(struct tui *tui)
{
    wish.layout = tui->layout;
    wish.focus = tui_shown(tui);
    repl_set_screen(tui->repl, &control_ops, NULL);
}
