// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The form of a watchpoint: a condition from the list or an expression, its parameters and their
 * ranges, and what it applies to. It builds the command line that a user would type: `watch ...`,
 * or `edit N ...` with the changes.
 */
#include "tui/tui_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/watch/watchpoint.h"
#include "tui/panes/pane_tree_impl.h"

#define HELP_SIZE  256
#define MAX_FIELDS 32
#define MAX_OFFERS (8 + GD_MAX_SCALARS)
#define EXPRESSION "an expression"

struct watch_form {
    struct form_ops ops; /* with this form's own title */
    char title[64];
    struct tui *tui;
    int number;                           /* 0: a new one */
    const struct gd_condition *condition; /* NULL: an expression */
    char (*name)[64];                     /* of the conditions, as displayed */
    const struct gd_condition **kind;     /* the conditions available here */
    const char **choice;
    size_t choice_count;
    const char *offer[MAX_OFFERS]; /* suggested selectors */
    char current[FORM_TEXT];       /* what the tree chose, else the current node: a selector */
    char default_where[FORM_TEXT];
    char help[MAX_FIELDS][HELP_SIZE];
    /* The fields: [condition], parameters or the expression, where, guard, [when, action]. */
    size_t params, where;
    bool chosen; /* `current` was chosen in the tree: it is filled in */
    const struct gd_condition_param *param[GD_MAX_CONDITION_PARAMS];
    char before[MAX_FIELDS][FORM_TEXT]; /* when editing: the initial texts */
};

static const char *const truths[] = {"", "true", "false", NULL};
static const char *const whens[] = {"auto", "exact", "step", NULL};
static const char *const actions[] = {"watch", "trace", "twatch", NULL};

/* ---- what may be chosen -------------------------------------------------------------------- */

/* Leaves out what would be refused: overflow flags of another device, initial weights after the
 * start. */
static bool is_offered(const struct watch_form *form, const struct gd_condition *condition)
{
    struct gd_session *session = form->tui->debugger->current;

    return !session || !session->target || gd_watch_can(session, condition);
}

static int make_choices(struct watch_form *form)
{
    size_t count = 0;

    while (gd_condition_at(count)) {
        count++;
    }
    form->name = calloc(count + 1, sizeof(*form->name));
    form->choice = calloc(count + 2, sizeof(*form->choice));
    form->kind = calloc(count + 1, sizeof(struct gd_condition *));
    if (!form->name || !form->choice || !form->kind) {
        return GD_ENOMEM;
    }
    count = 0;
    for (size_t i = 0; gd_condition_at(i); i++) {
        const struct gd_condition *condition = gd_condition_at(i);
        if (!is_offered(form, condition)) {
            continue;
        }
        snprintf(form->name[count], sizeof(form->name[count]), "%s (%s)", condition->id,
                 condition->abbr);
        form->choice[count] = form->name[count];
        form->kind[count++] = condition;
    }
    form->choice[count] = EXPRESSION;
    form->choice_count = count;
    return GD_OK;
}

/* What is ticked in the tree, or where its cursor is if the form was opened there; otherwise the
 * current node. */
static void note_current(struct watch_form *form)
{
    struct gd_buf text = GD_BUF_INIT(FORM_TEXT);
    struct gd_session *session;

    form->chosen = tree_ticks_selector(form->tui, &text);
    if (!form->chosen) {
        gd_node_id node = tui_node(form->tui, &session);
        tree_selector_of_node(session, node, &text);
    }
    snprintf(form->current, sizeof(form->current), "%s", gd_buf_text(&text));
    gd_buf_deinit(&text);
}

static void add_offer(struct watch_form *form, size_t *count, const char *text)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(form->offer[i], text) == 0) {
            return;
        }
    }
    if (text[0] != '\0' && *count + 1 < MAX_OFFERS) {
        form->offer[(*count)++] = text;
    }
    form->offer[*count] = NULL;
}

static bool is_scalar(const struct watch_form *form)
{
    return form->condition && form->condition->target == GD_COND_SCALAR;
}

static void make_offers(struct watch_form *form)
{
    static const char *const classes[] = {"weights", "gradients", "activations", "all"};
    struct gd_session *session = form->tui->debugger->current;
    size_t count = 0;

    add_offer(form, &count, form->default_where);
    for (int i = 0; is_scalar(form) && session && i < session->scalar_count; i++) {
        add_offer(form, &count, session->scalar[i].name);
    }
    add_offer(form, &count, form->current);
    for (int i = 0; i < 4; i++) {
        add_offer(form, &count, classes[i]);
    }
}

/* ---- fields -------------------------------------------------------------------------------- */

static void add_field(struct tui_form *to, const char *label, const char *const *choices, bool open,
                      const char *text, const char *help)
{
    struct form_field field = {.label = label, .choices = choices, .open = open, .help = help};

    if (tui_form_count(to) < MAX_FIELDS) {
        snprintf(field.text, sizeof(field.text), "%s", text);
        tui_form_add(to, &field);
    }
}

/* Room for the help of the next field. */
static char *help_of_next(struct watch_form *form, const struct tui_form *to)
{
    size_t index = tui_form_count(to);
    return form->help[index < MAX_FIELDS ? index : MAX_FIELDS - 1];
}

static void add_condition(struct watch_form *form, struct tui_form *to)
{
    const struct gd_condition *condition = form->condition;
    char *help = help_of_next(form, to);
    const char *text = EXPRESSION;

    snprintf(help, HELP_SIZE, "true of a tensor's statistics: max > 1e4 || nan > 0");
    for (size_t i = 0; i < form->choice_count; i++) {
        text = form->kind[i] == condition ? form->choice[i] : text;
    }
    if (condition) {
        snprintf(help, HELP_SIZE, "%s%s%s", condition->fires,
                 condition->ascend_only ? "; only on Ascend" : "",
                 condition->initial_only ? "; only before the first step" : "");
    }
    add_field(to, "condition", form->choice, false, text, help);
}

/* "0 to 100; 100 when no test is given" */
static void param_help(const struct gd_condition *condition, const struct gd_condition_param *param,
                       char *help)
{
    struct gd_condition_value meant[GD_MAX_CONDITION_PARAMS];
    bool is_meant = false;
    int count = gd_condition_complete(condition, NULL, 0, meant, NULL);

    for (int i = 0; i < count; i++) {
        is_meant = is_meant || strcmp(meant[i].name, param->name) == 0;
    }
    int used = snprintf(help, HELP_SIZE, "%s",
                        param->type == GD_PARAM_BOOL ? "true or false"
                                                     : gd_param_range_text(param->range));
    if (param->has_default && param->type == GD_PARAM_FLOAT && used > 0) {
        used += snprintf(help + used, (size_t)(HELP_SIZE - used), ", default %g%s", param->value,
                         is_meant && !param->support ? " when no test is given" : "");
    }
    if (param->needs_range && used > 0 && used < HELP_SIZE) {
        snprintf(help + used, (size_t)(HELP_SIZE - used), "; needs the start and end of a range");
    } else if (param->support && used > 0 && used < HELP_SIZE) {
        snprintf(help + used, (size_t)(HELP_SIZE - used), "; used together with a test");
    }
}

static void param_text(const struct gd_watchpoint *watch, const struct gd_condition_param *param,
                       char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; watch && i < watch->value_count; i++) {
        const struct gd_condition_value *value = &watch->values[i];
        if (strcmp(value->name, param->name) != 0) {
            continue;
        }
        if (value->type == GD_PARAM_BOOL) {
            snprintf(text, size, "%s", value->value != 0 ? "true" : "false");
            continue;
        }
        /* the fewest digits that parse back to the same number */
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, size, "%.*g", digits, value->value);
            if (strtod(text, NULL) == value->value) {
                break;
            }
        }
    }
}

static void add_params(struct watch_form *form, struct tui_form *to,
                       const struct gd_watchpoint *watch)
{
    const struct gd_condition *condition = form->condition;
    char text[64];

    form->params = tui_form_count(to);
    memset(form->param, 0, sizeof(form->param));
    if (!condition) {
        add_field(to, "expression", NULL, false,
                  watch && watch->expr ? gd_expr_text(watch->expr) : "",
                  "statistics and metrics: max > 1e4 || nan > 0");
        return;
    }
    size_t count = 0;
    for (int i = 0; i < condition->param_count; i++) {
        const struct gd_condition_param *param = &condition->param[i];
        if (param->hidden) {
            continue;
        }
        form->param[count++] = param;
        char *help = help_of_next(form, to);
        param_help(condition, param, help);
        param_text(watch, param, text, sizeof(text));
        add_field(to, param->name, param->type == GD_PARAM_BOOL ? truths : NULL, false, text, help);
    }
}

struct kept { /* survives the choice of another condition */
    char where[FORM_TEXT], guard[FORM_TEXT], when[16], action[16];
};

static void add_rest(struct watch_form *form, struct tui_form *to, const struct kept *kept)
{
    form->where = tui_form_count(to);
    add_field(to, "on", form->offer, true, kept->where,
              is_scalar(form) ? "a metric, or tensors with one element"
                              : "a selector: weights, fc1, *bias, type:ReLU");
    add_field(to, "if", NULL, false, kept->guard, "a further condition: step > 10");
    if (form->number != 0) {
        return;
    }
    add_field(to, "when", whens, false, kept->when,
              "exact: after the operator; step: at the end of the step; auto: set watch-when");
    add_field(to, "action", actions, false, kept->action,
              "watch stops the training; trace only reports; twatch stops once");
}

static void build_fields(struct watch_form *form, struct tui_form *to, const struct kept *kept,
                         const struct gd_watchpoint *watch)
{
    make_offers(form);
    tui_form_clear(to);
    if (form->number == 0) {
        add_condition(form, to);
    }
    add_params(form, to, watch);
    add_rest(form, to, kept);
}

static const char *text_of(struct tui_form *of, size_t index)
{
    const struct form_field *field = tui_form_field(of, index);
    return field ? field->text : "";
}

static void set_default_where(struct watch_form *form)
{
    const char *usual = form->condition ? gd_condition_selector(form->condition) : "";

    snprintf(form->default_where, sizeof(form->default_where), "%s",
             form->chosen && !is_scalar(form) ? form->current : usual);
}

static void build_first(struct watch_form *form, struct tui_form *to)
{
    const struct gd_watchpoint *watch =
        form->number != 0 ? gd_watchpoint_at(form->tui->debugger, form->number) : NULL;
    struct kept kept = {.when = "auto", .action = "watch"};

    form->condition = watch ? watch->condition : form->kind[0];
    set_default_where(form);
    snprintf(kept.where, sizeof(kept.where), "%s", watch ? watch->where : form->default_where);
    if (watch && watch->guard) {
        snprintf(kept.guard, sizeof(kept.guard), "%s", gd_expr_text(watch->guard));
    }
    build_fields(form, to, &kept, watch);
    for (size_t i = 0; i < tui_form_count(to); i++) {
        snprintf(form->before[i], sizeof(form->before[i]), "%s", text_of(to, i));
    }
    if (watch && tree_tick_count(form->tui) > 0 && !is_scalar(form)) { /* the user's change */
        struct form_field *on = tui_form_field(to, form->where);
        snprintf(on->text, sizeof(on->text), "%s", form->current);
    }
}

/* Another condition has other parameters; the selector changes unless the user has set it. */
static void build_again(struct watch_form *form, struct tui_form *to,
                        const struct gd_condition *condition)
{
    struct kept kept;
    bool own = strcmp(text_of(to, form->where), form->default_where) != 0;

    snprintf(kept.where, sizeof(kept.where), "%s", text_of(to, form->where));
    snprintf(kept.guard, sizeof(kept.guard), "%s", text_of(to, form->where + 1));
    snprintf(kept.when, sizeof(kept.when), "%.15s", text_of(to, form->where + 2));
    snprintf(kept.action, sizeof(kept.action), "%.15s", text_of(to, form->where + 3));
    form->condition = condition;
    set_default_where(form);
    if (!own) {
        snprintf(kept.where, sizeof(kept.where), "%s", form->default_where);
    }
    build_fields(form, to, &kept, NULL);
}

static const struct gd_condition *chosen_condition(const struct watch_form *form,
                                                   struct tui_form *of)
{
    for (size_t i = 0; i < form->choice_count; i++) {
        if (strcmp(form->choice[i], text_of(of, 0)) == 0) {
            return form->kind[i];
        }
    }
    return NULL;
}

static int field_changed(void *ctx, struct tui_form *to, size_t field)
{
    struct watch_form *form = ctx;

    if (tui_form_count(to) == 0) {
        build_first(form, to);
    } else if (form->number == 0 && field == 0 && chosen_condition(form, to) != form->condition) {
        build_again(form, to, chosen_condition(form, to));
    }
    return GD_OK;
}

/* ---- what was filled in -------------------------------------------------------------------- */

struct given { /* parameters */
    struct gd_condition_value value[GD_MAX_CONDITION_PARAMS];
    size_t field[GD_MAX_CONDITION_PARAMS];
    size_t count;
};

static const char *trim_text(struct tui_form *of, size_t index)
{
    const char *text = text_of(of, index);
    return text + strspn(text, " \t");
}

static int take_value(const struct gd_condition_param *param, const char *text,
                      struct gd_condition_value *ret, struct gd_err *err)
{
    char *end = NULL;

    *ret = (struct gd_condition_value){.name = param->name, .type = param->type};
    if (param->type == GD_PARAM_BOOL) {
        ret->value = text[0] == 't';
        return GD_OK;
    }
    ret->value = strtod(text, &end);
    if (end == text || end[strspn(end, " \t%")] != '\0' || isnan(ret->value)) {
        return gd_fail(err, GD_EINVAL, "%s: \"%.40s\" is not a number; expected %s", param->name,
                       text, gd_param_range_text(param->range));
    }
    return GD_OK;
}

/* The field of the parameter that the message names; of several, the longest name. */
static size_t field_named(const struct given *given, const char *message, size_t otherwise)
{
    size_t best = 0;

    for (size_t i = 0; i < given->count; i++) {
        size_t len = strlen(given->value[i].name);
        if (len > best && strstr(message, given->value[i].name)) {
            best = len;
            otherwise = given->field[i];
        }
    }
    return otherwise;
}

static int take_params(const struct watch_form *form, struct tui_form *of, struct given *ret,
                       size_t *field, struct gd_err *err)
{
    struct gd_condition_value meant[GD_MAX_CONDITION_PARAMS];

    ret->count = 0;
    for (size_t i = 0; i < GD_MAX_CONDITION_PARAMS && form->param[i]; i++) {
        const char *text = trim_text(of, form->params + i);
        if (text[0] == '\0') {
            continue;
        }
        *field = form->params + i;
        int rc = take_value(form->param[i], text, &ret->value[ret->count], err);
        if (rc != GD_OK) {
            return rc;
        }
        ret->field[ret->count++] = *field;
    }
    int rc = gd_condition_check(form->condition, ret->value, ret->count, err);
    if (rc == GD_OK && gd_condition_complete(form->condition, ret->value, ret->count, meant, err) <
                           0) { /* no test is filled in */
        rc = err->code;
    }
    if (rc != GD_OK) {
        *field = field_named(ret, err->text, form->params);
    }
    return rc;
}

static int check_expression(struct tui_form *of, size_t index, const char *what, size_t *field,
                            struct gd_err *err)
{
    struct gd_expr *expr = NULL;
    const char *text = trim_text(of, index);

    *field = index;
    if (text[0] == '\0') {
        return gd_fail(err, GD_EINVAL, "%s is missing; for example max > 1e4", what);
    }
    int rc = gd_expr_parse(text, &expr, err);
    gd_expr_destroy(expr);
    return rc;
}

static int check_rest(const struct watch_form *form, struct tui_form *of, size_t *field,
                      struct gd_err *err)
{
    struct gd_selector *selector = NULL;
    const char *where = trim_text(of, form->where);

    if (where[0] != '\0' && !is_scalar(form)) {
        *field = form->where;
        int rc = gd_selector_parse(where, &selector, err);
        gd_selector_destroy(selector);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return trim_text(of, form->where + 1)[0] != '\0'
               ? check_expression(of, form->where + 1, "the guard", field, err)
               : GD_OK;
}

/* ---- the command line ---------------------------------------------------------------------- */

static void put_expression(struct tui_form *of, size_t index, struct gd_buf *out)
{
    const char *text = trim_text(of, index);
    bool quoted = strchr(text, '\'') == NULL;

    gd_buf_printf(out, quoted ? " '%s'" : " %s", text);
}

static void put_rest(struct tui_form *of, size_t where, bool with_where, bool with_guard,
                     struct gd_buf *out)
{
    if (with_where && trim_text(of, where)[0] != '\0') {
        gd_buf_printf(out, " on %s", trim_text(of, where));
    }
    if (with_guard && trim_text(of, where + 1)[0] != '\0') {
        gd_buf_printf(out, " if %s", trim_text(of, where + 1));
    }
}

static void put_new(const struct watch_form *form, struct tui_form *of, const struct given *given,
                    struct gd_buf *out)
{
    const char *when = text_of(of, form->where + 2);

    gd_buf_puts(out, text_of(of, form->where + 3));
    if (strcmp(when, "auto") != 0) {
        gd_buf_printf(out, " -%s", when);
    }
    if (!form->condition) {
        put_expression(of, form->params, out);
    } else {
        gd_buf_printf(out, " %s", form->condition->abbr);
        for (size_t i = 0; i < given->count; i++) {
            gd_buf_printf(out, " %s=%s", given->value[i].name, trim_text(of, given->field[i]));
        }
    }
    put_rest(of, form->where, true, true, out);
}

static bool field_differs(const struct watch_form *form, struct tui_form *of, size_t index)
{
    return strcmp(form->before[index], text_of(of, index)) != 0;
}

/* Only the changes. */
static int put_edit(const struct watch_form *form, struct tui_form *of, struct gd_buf *out,
                    struct gd_err *err)
{
    char guard[48];
    bool where = field_differs(form, of, form->where),
         guarded = field_differs(form, of, form->where + 1);
    bool unguarded = guarded && trim_text(of, form->where + 1)[0] == '\0';

    gd_buf_printf(out, "edit %d", form->number);
    size_t empty = out->len;
    if (!form->condition && field_differs(form, of, form->params)) {
        put_expression(of, form->params, out);
    }
    for (size_t i = 0; i < GD_MAX_CONDITION_PARAMS && form->param[i]; i++) {
        const char *text = trim_text(of, form->params + i);
        if (field_differs(form, of, form->params + i)) {
            gd_buf_printf(out, " %s=%s", form->param[i]->name, text[0] != '\0' ? text : "off");
        }
    }
    put_rest(of, form->where, where, guarded, out);
    if (unguarded) { /* a separate command */
        snprintf(guard, sizeof(guard), "condition %d", form->number);
        if (out->len == empty) {
            gd_buf_clear(out);
            return gd_buf_puts(out, guard);
        }
        tui_run_line(form->tui, guard);
    }
    return out->len > empty ? GD_OK
                            : gd_fail(err, GD_EINVAL, "nothing was changed; press Esc to leave");
}

static int take_all(const struct watch_form *form, struct tui_form *of, struct given *given,
                    size_t *field, struct gd_err *err)
{
    int rc = !form->condition ? check_expression(of, form->params, "the expression", field, err)
                              : take_params(form, of, given, field, err);

    return rc == GD_OK ? check_rest(form, of, field, err) : rc;
}

static int check_form(void *ctx, struct tui_form *of, size_t *field, struct gd_err *err)
{
    struct given given = {.count = 0};
    return take_all(ctx, of, &given, field, err);
}

static int make_command(void *ctx, struct tui_form *of, struct gd_buf *out, size_t *field,
                        struct gd_err *err)
{
    struct watch_form *form = ctx;
    struct given given = {.count = 0};
    size_t here = *field;
    int rc = take_all(form, of, &given, field, err);

    if (rc != GD_OK) {
        return rc;
    }
    *field = here; /* no field is wrong */
    tree_ticks_clear(form->tui);
    if (form->number == 0) {
        put_new(form, of, &given, out);
        return GD_OK;
    }
    if (!gd_watchpoint_at(form->tui->debugger, form->number)) {
        return gd_fail(err, GD_ENOTFOUND, "watchpoint %d no longer exists; press Esc to leave",
                       form->number);
    }
    return put_edit(form, of, out, err);
}

/* ---- the form ------------------------------------------------------------------------------ */

static void free_form(void *ctx)
{
    struct watch_form *form = ctx;

    free(form->name);
    free(form->kind);
    free(form->choice);
    free(form);
}

static int open_form(struct tui *tui, int number, struct gd_err *err)
{
    const struct gd_watchpoint *watch =
        number != 0 ? gd_watchpoint_at(tui->debugger, number) : NULL;

    if (number != 0 && !watch) {
        return gd_fail(err, GD_ENOTFOUND, "there is no watchpoint %d", number);
    }
    struct watch_form *form = calloc(1, sizeof(*form));
    if (!form) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a form");
    }
    form->tui = tui;
    form->number = number;
    if (number == 0) {
        snprintf(form->title, sizeof(form->title), " a new watchpoint ");
    } else {
        snprintf(form->title, sizeof(form->title), " watchpoint %d: %s ", number,
                 watch->condition ? watch->condition->id : "an expression");
    }
    form->ops = (struct form_ops){.title = form->title,
                                  .changed = field_changed,
                                  .check = check_form,
                                  .command = make_command,
                                  .destroy = free_form};
    if (make_choices(form) != GD_OK) {
        free_form(form);
        return gd_fail(err, GD_ENOMEM, "out of memory for a form");
    }
    note_current(form);
    return tui_form_open(tui, &form->ops, form, err);
}

void tui_watch_form(struct tui *tui, int number)
{
    struct gd_err err = {.code = GD_OK};

    if (open_form(tui, number, &err) != GD_OK) {
        tui_console_add(tui, DRAW_ERROR, err.text, strlen(err.text));
    }
}
