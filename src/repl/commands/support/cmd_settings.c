// SPDX-License-Identifier: GPL-3.0-or-later
/* set, show, info settings. */
#include "repl/commands/files/dump_live.h"
#include "repl/core/commands.h"
#include "repl/core/repl_impl.h"
#include "repl/core/settings_table.h"

#include "engine/cache.h"
#include "engine/watch/watchpoint.h"

#include <string.h>

/* Quotes around a whole value are the user's way of typing blanks or nothing. */
static const char *unquote(struct command_call *call, const char *value)
{
    size_t len = strlen(value);
    if (len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0]) {
        return gd_arena_strndup(call->arena, value + 1, len - 2);
    }
    return value;
}

/* Settings that live elsewhere, too, are carried there. */
static int apply(struct command_call *call, const struct gd_settings *before, struct gd_err *err)
{
    const struct gd_settings *now = &call->debugger->settings;

    for (size_t i = 0; i < call->debugger->session_count; i++) {
        gd_cache_set_max(call->debugger->sessions[i]->cache, call->debugger->settings.max_cache);
    }
    if (now->evaluate != before->evaluate || now->watch_when != before->watch_when ||
        now->stop_on_hit != before->stop_on_hit || now->history_bytes != before->history_bytes) {
        gd_watchpoints_apply(call->debugger);
    }
    if (strcmp(now->dump_config, before->dump_config) != 0) {
        int rc = repl_dump_set_config(call, now->dump_config, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return gd_debugger_apply_keep_previous(call->debugger, err);
}

static void setting_record(const struct setting *setting, const struct gd_settings *settings,
                           cJSON *object)
{
    struct gd_settings defaults;
    struct gd_buf text = GD_BUF_INIT(4096);

    gd_settings_init(&defaults);
    cJSON_AddStringToObject(object, "name", setting->name);
    setting_print(setting, settings, &text);
    cJSON_AddStringToObject(object, "value", gd_buf_text(&text));
    gd_buf_clear(&text);
    setting_print(setting, &defaults, &text);
    cJSON_AddStringToObject(object, "default", gd_buf_text(&text));
    gd_buf_clear(&text);
    setting_range(setting, &text);
    cJSON_AddStringToObject(object, "takes", gd_buf_text(&text));
    cJSON_AddStringToObject(object, "unit", setting->unit);
    cJSON_AddStringToObject(object, "text", setting->text);
    gd_buf_deinit(&text);
}

static int run_set(struct command_call *call, struct gd_err *err)
{
    const struct setting *setting = NULL;
    const char *value = NULL;
    struct gd_settings changed = call->debugger->settings;

    if (call->line[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "set: the name of a setting is missing");
    }
    int rc = setting_find(call->line, &setting, &value, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (*value == '=') {
        value += 1 + strspn(value + 1, " \t");
    }
    value = unquote(call, value);
    if (!value) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    rc = setting_parse(setting, value, &changed, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_settings before = call->debugger->settings;
    call->debugger->settings = changed;
    rc = apply(call, &before, err);
    if (rc == GD_EINVAL || strcmp(before.dump_config, changed.dump_config) != 0) {
        call->debugger->settings = rc == GD_OK ? changed : before;
    }
    if (rc != GD_OK) {
        return rc;
    }
    setting_record(setting, &call->debugger->settings, out_record(call->out, "setting"));
    return GD_OK;
}

/* Both lines of `show NAME`: the value, and what it means. */
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

int cmd_info_settings(struct command_call *call, struct gd_err *err)
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
        const char *cells[] = {s->name, out_safe(call, gd_buf_text(&value)), gd_buf_text(&usual),
                               s->text};
        out_table_row(table, cells);
    }
    out_table_end(table);
    gd_buf_deinit(&value);
    gd_buf_deinit(&usual);
    return GD_OK;
}

int cmd_help_setting(struct command_call *call, const char *name, struct gd_err *err)
{
    const struct setting *setting = NULL;
    const char *rest = NULL;
    struct gd_buf range = GD_BUF_INIT(4096);
    int rc = setting_find(name + strspn(name, " \t"), &setting, &rest, err);

    if (rc == GD_OK && *rest != '\0') {
        rc = gd_fail(err, GD_ENOTFOUND, "there is no setting \"%.80s\"", out_safe(call, name));
    }
    if (rc != GD_OK) {
        return rc;
    }
    setting_range(setting, &range);
    cJSON *record = out_record(call->out, "help");
    cJSON_AddStringToObject(record, "name", setting->name);
    cJSON_AddStringToObject(record, "group", "settings");
    cJSON_AddStringToObject(record, "text", setting->text);
    cJSON_AddStringToObject(record, "range", gd_buf_text(&range));
    out_printf(call->out, "set %s VALUE\n%s.\n\nVALUE: %s\n", setting->name, setting->text,
               gd_buf_text(&range));
    gd_buf_deinit(&range);
    return GD_OK;
}

static int run_show(struct command_call *call, struct gd_err *err)
{
    const struct setting *setting = NULL;
    const char *rest = NULL;

    if (call->line[0] == '\0') {
        return cmd_info_settings(call, err);
    }
    if (strcmp(call->line, "version") == 0) {
        out_printf(call->out, "gradb %s\n", GRADB_VERSION);
        cJSON_AddStringToObject(out_record(call->out, "version"), "version", GRADB_VERSION);
        return GD_OK;
    }
    int rc = setting_find(call->line, &setting, &rest, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (*rest != '\0') {
        return gd_fail(err, GD_EINVAL, "\"%.60s\" after %s: show takes one setting", rest,
                       setting->name);
    }
    show_one(call, setting);
    return GD_OK;
}

const struct command cmd_settings_table[] = {
    {.name = "set",
     .group = "support",
     .usage = "set NAME VALUE",
     .summary = "Change a setting",
     .help = "The name may be shortened as long as it is unique; \"info settings\" lists all.\n"
             "Sizes take KiB, MiB, GiB.\n"
             "Examples:\n"
             "  set print precision 4\n"
             "  set max-tensor 2 GiB\n"
             "  set confirm off",
     .args = {ARG_SETTING, ARG_WORD},
     .flags = CMD_RAW,
     .run = run_set},
    {.name = "show",
     .group = "support",
     .usage = "show [NAME | version]",
     .summary = "Show a setting and what it means, or all settings",
     .help = "Example:\n"
             "  show print precision",
     .args = {ARG_SETTING},
     .run = run_show},
    {.name = NULL},
};
