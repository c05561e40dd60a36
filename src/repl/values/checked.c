// SPDX-License-Identifier: GPL-3.0-or-later
/* What an answer is based on: how much was checked, and why the rest was not. */
#include "repl/values/checked.h"
#include "engine/watch/condition.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

void inspect_not_checked(struct command_call *call, struct inspect_checked *checked,
                         const char *why)
{
    checked->not_done++;
    if (!checked->why && why && why[0] != '\0') {
        checked->why = inspect_printf(call, "%s", why);
    }
}

const char *inspect_checked_text(struct command_call *call, const struct inspect_checked *checked,
                                 const char *noun, const char *verb)
{
    const char *text =
        inspect_printf(call, "%s %s", inspect_plural(call, checked->done, noun), verb);

    if (checked->not_done == 0) {
        return text;
    }
    return inspect_printf(call, "%s, %s not%s%s", text, inspect_number(call, checked->not_done),
                          checked->why ? ": " : "",
                          checked->why ? out_safe(call, checked->why) : "");
}

void inspect_add_checked(cJSON *object, const struct inspect_checked *checked)
{
    out_set(object, OUT_INT("checked", checked->done), OUT_INT("not_checked", checked->not_done),
            OUT_IF(checked->why, OUT_TEXT("why_not_checked", checked->why)));
}

int inspect_need_checked(const struct inspect_checked *checked, const char *noun, const char *verb,
                         struct gd_err *err)
{
    if (checked->done > 0) {
        return GD_OK;
    }
    if (checked->not_done == 0) {
        return gd_fail(err, GD_ENODATA, "no %s was %s: there are none", noun, verb);
    }
    return gd_fail(err, GD_ENODATA, "no %s was %s: %llu could not be%s%.200s%s", noun, verb,
                   (unsigned long long)checked->not_done, checked->why ? " (" : "",
                   checked->why ? checked->why : "", checked->why ? ")" : "");
}

const char *hits_checked(struct command_call *call, uint64_t checks, uint64_t unclear,
                         unsigned errors)
{
    const char *text = inspect_plural(call, checks - unclear, "check");
    char why[256];

    if (unclear == 0) {
        return text;
    }
    gd_hit_error_text(errors, why, sizeof(why));
    return inspect_printf(call, "%s, %s more could not be made%s%s", text,
                          inspect_number(call, unclear), why[0] ? ": " : "", why);
}

void hits_add_checked(cJSON *record, uint64_t checks, uint64_t unclear, unsigned errors)
{
    char why[256];

    out_set(record, OUT_INT("checks", checks - unclear), OUT_INT("unclear", unclear));
    gd_hit_error_text(errors, why, sizeof(why));
    out_set(record, OUT_SOME("why_unclear", why));
}

int hits_need_checked(uint64_t hits, uint64_t checks, uint64_t unclear, unsigned errors,
                      struct gd_err *err)
{
    char why[256];

    if (hits > 0 || checks > unclear) {
        return GD_OK;
    }
    if (unclear == 0) {
        return gd_fail(err, GD_ENODATA,
                       "no watchpoint was checked: none covers an available value, or their \"if\" "
                       "was never true");
    }
    gd_hit_error_text(errors, why, sizeof(why));
    return gd_fail(err, GD_ENODATA,
                   "no watchpoint could be checked: %llu %s could not be made"
                   "%s%s",
                   (unsigned long long)unclear, unclear == 1 ? "check" : "checks",
                   why[0] ? ": " : "", why);
}
