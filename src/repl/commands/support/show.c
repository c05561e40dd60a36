// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: show. Also "info settings". */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/commands/support/support.h"
#include "repl/core/settings_table.h"

void setting_record(const struct setting *setting, const struct gd_settings *settings,
                    cJSON *object)
{
    struct gd_settings defaults;
    struct gd_buf text = GD_BUF_INIT(4096);

    gd_settings_init(&defaults);
    out_set(object, OUT_TEXT("name", setting->name));
    setting_print(setting, settings, &text);
    out_set(object, OUT_TEXT("value", gd_buf_text(&text)));
    gd_buf_clear(&text);
    setting_print(setting, &defaults, &text);
    out_set(object, OUT_TEXT("default", gd_buf_text(&text)));
    gd_buf_clear(&text);
    setting_range(setting, &text);
    out_set(object, OUT_TEXT("takes", gd_buf_text(&text)), OUT_TEXT("unit", setting->unit),
            OUT_TEXT("text", setting->text));
    gd_buf_deinit(&text);
}

/* The two lines of `show NAME`: value and meaning. */
static void show_one(struct command_call *call, const struct setting *setting)
{
    struct gd_buf text = GD_BUF_INIT(4096);
    bool has_unit = setting->unit[0] != '\0' && setting->type != SETTING_SIZE;

    setting_print(setting, &call->debugger->settings, &text);
    out_printf(call->out, "%s = %s%s%s\n%s.\n", setting->name,
               setting->type == SETTING_TEXT && text.len == 0 ? "(empty)"
                                                              : out_safe(call, gd_buf_text(&text)),
               has_unit ? " " : "", has_unit ? setting->unit : "", setting->text);
    gd_buf_deinit(&text);
    setting_record(setting, &call->debugger->settings, out_record(call->out, "setting"));
}

int info_settings(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"name", "Setting", false},
                                                {"value", "Value", false},
                                                {"default", "Default", false},
                                                {"text", "Meaning", false}};
    struct gd_settings defaults;
    struct gd_buf value = GD_BUF_INIT(4096);
    struct gd_buf usual = GD_BUF_INIT(4096);
    struct out_table *table = out_table_begin(call->out, "settings", columns, 4);

    (void)err;
    gd_settings_init(&defaults);
    for (const struct setting *s = settings_table; s->name; s++) {
        gd_buf_clear(&value);
        gd_buf_clear(&usual);
        setting_print(s, &call->debugger->settings, &value);
        setting_print(s, &defaults, &usual);
        out_put(table, OUT_TEXT("name", s->name), OUT_TEXT("value", gd_buf_text(&value)),
                OUT_TEXT("default", gd_buf_text(&usual)), OUT_TEXT("text", s->text));
    }
    out_table_end(table);
    gd_buf_deinit(&value);
    gd_buf_deinit(&usual);
    return GD_OK;
}

static int run_show(struct command_call *call, struct gd_err *err)
{
    const struct setting *setting = NULL;
    const char *rest = NULL;

    if (call->line[0] == '\0') {
        return info_settings(call, err);
    }
    if (strcmp(call->line, "version") == 0) {
        out_printf(call->out, "gradb %s\n", GRADB_VERSION);
        out_set(out_record(call->out, "version"), OUT_TEXT("version", GRADB_VERSION));
        return GD_OK;
    }
    int rc = setting_find(call->line, &setting, &rest, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (*rest != '\0') {
        return gd_fail(err, GD_EINVAL, "unexpected \"%.60s\" after %s: show takes one setting",
                       rest, setting->name);
    }
    show_one(call, setting);
    return GD_OK;
}

const struct command cmd_show = {
    .name = "show",
    .group = "support",
    .usage = "show [NAME | version]",
    .summary = "Show a setting and its meaning, or all settings",
    .examples = "show print precision",
    .flags = CMD_SHOWS,
    .args = {ARG_SETTING},
    .run = run_show,
};
