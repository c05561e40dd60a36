// SPDX-License-Identifier: GPL-3.0-or-later
/* The options of `compare` and first-divergence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/glob.h"
#include "repl/compare/compare_files.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

/* Parses "--map FILE" or "--map=FILE" at word i. Returns how many words it took; 0: no such
 * option. */
static int option_at(const struct command_call *call, int i, const char *option, const char **ret)
{
    size_t len = strlen(option);

    *ret = NULL;
    if (strncmp(call->argv[i], option, len) != 0) {
        return 0;
    }
    if (call->argv[i][len] == '=') {
        *ret = call->argv[i] + len + 1;
        return 1;
    }
    if (call->argv[i][len] == '\0') {
        *ret = i + 1 < call->argc ? call->argv[i + 1] : NULL;
        return *ret ? 2 : 1;
    }
    return 0;
}

static int tolerance_of(const char *text, double *ret, struct gd_err *err)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= 0) || isinf(value)) {
        return gd_fail(err, GD_EINVAL, "\"%.80s\": a tolerance must be a number, 0 or more", text);
    }
    *ret = value;
    return GD_OK;
}

/* "PATTERN=RTOL,ATOL" */
static int take_own(struct command_call *call, struct compare_options *options, const char *text,
                    struct gd_err *err)
{
    const char *sign = strrchr(text, '='), *comma = sign ? strchr(sign, ',') : NULL;
    struct own_tolerance *own = &options->own[options->own_count];
    int rc;

    if (!comma || sign == text) {
        return gd_fail(err, GD_EUSAGE, "--tol %.80s: write PATTERN=RTOL,ATOL", text);
    }
    if (options->own_count == MAX_OWN_TOLERANCES) {
        return gd_fail(err, GD_ELIMIT, "--tol: at most %d patterns", MAX_OWN_TOLERANCES);
    }
    rc = tolerance_of(inspect_printf(call, "%.*s", (int)(comma - sign - 1), sign + 1),
                      &own->tolerance.rtol, err);
    rc = rc == GD_OK ? tolerance_of(comma + 1, &own->tolerance.atol, err) : rc;
    own->pattern = inspect_printf(call, "%.*s", (int)(sign - text), text);
    options->own_count += rc == GD_OK;
    return rc;
}

static int take_match(struct compare_options *options, const char *text, struct gd_err *err)
{
    for (int how = GD_HOW_NAME; how <= GD_HOW_ORDER; how++) {
        if (strcmp(text, gd_how_name((enum gd_how)how)) == 0) {
            options->last = (enum gd_how)how;
            return GD_OK;
        }
    }
    return gd_fail(err, GD_EUSAGE, "--match %.80s: must be name, rules, values or order", text);
}

static int take_sort(struct compare_options *options, const char *text, struct gd_err *err)
{
    static const char *const names[] = {"order", "name", "worst"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            options->shown.sort = (enum rows_sort)i;
            return GD_OK;
        }
    }
    return gd_fail(err, GD_EUSAGE, "--sort %.80s: must be order, name or worst", text);
}

/* "12,11": step of A, step of B */
static int take_steps(struct command_call *call, struct compare_options *options, const char *text,
                      struct gd_err *err)
{
    const char *comma = strchr(text, ',');
    int rc = comma ? arg_count(inspect_printf(call, "%.*s", (int)(comma - text), text), 0,
                               INT64_MAX - 1, &options->step, err)
                   : gd_fail(err, GD_EUSAGE, "--steps %.80s: write STEP-OF-A,STEP-OF-B", text);

    return rc == GD_OK ? arg_count(comma + 1, 0, INT64_MAX - 1, &options->step_b, err) : rc;
}

static int take_value(struct command_call *call, struct compare_options *options,
                      const char *option, const char *value, struct gd_err *err)
{
    if (strcmp(option, "--map") == 0) {
        gd_map_free(options->map);
        options->map = NULL;
        return gd_map_read(value, &options->map, err);
    }
    if (strcmp(option, "--as") == 0) {
        int view = gd_tool_from_name(value);

        options->shown.view = view < 0 ? GD_TOOL_OWN : (enum gd_tool)view;
        return view < 0 ? gd_fail(err, GD_EUSAGE,
                                  "--as %.80s: must be gradb, allclose, troubleshooter or msprobe",
                                  value)
                        : GD_OK;
    }
    if (strcmp(option, "--profile") == 0) {
        options->profile = gd_profile_from_name(value);
        return options->profile == GD_PROFILE_COUNT
                   ? gd_fail(err, GD_EUSAGE, "--profile %.80s: must be cross, strict or numpy",
                             value)
                   : GD_OK;
    }
    if (strcmp(option, "--csv") == 0 || strcmp(option, "--on") == 0) {
        *(option[2] == 'c' ? &options->csv : &options->on) = value;
        return GD_OK;
    }
    if (strcmp(option, "--step") == 0) {
        return arg_count(value, 0, INT64_MAX - 1, &options->step, err);
    }
    if (strcmp(option, "--steps") == 0) {
        return take_steps(call, options, value, err);
    }
    if (strcmp(option, "--rank") == 0) {
        return arg_count(value, 0, INT32_MAX, &options->rank, err);
    }
    if (strcmp(option, "--limit") == 0) {
        return arg_count(value, 0, INT32_MAX, &options->shown.limit, err);
    }
    return strcmp(option, "--tol") == 0     ? take_own(call, options, value, err)
           : strcmp(option, "--match") == 0 ? take_match(options, value, err)
                                            : take_sort(options, value, err);
}

static bool take_flag(const char *word, struct compare_options *options)
{
    if (strcmp(word, "--only-differing") == 0) {
        options->shown.only_differing = true;
    } else if (strcmp(word, "--shape") == 0) {
        options->shown.shapes = true;
    } else if (strcmp(word, "-equal-nan") == 0 || strcmp(word, "--equal-nan") == 0) {
        options->equal_nan = true;
    } else {
        return false;
    }
    return true;
}

int compare_options_take(struct command_call *call, struct compare_options *ret, struct gd_err *err)
{
    static const char *const with_value[] = {"--map",   "--as",   "--profile", "--csv",
                                             "--on",    "--step", "--rank",    "--limit",
                                             "--steps", "--tol",  "--match",   "--sort"};
    int kept = 0, rc = GD_OK;

    *ret = (struct compare_options){.last = GD_HOW_ORDER,
                                    .step = INT64_MIN,
                                    .step_b = INT64_MIN,
                                    .rank = -1,
                                    .shown = {.limit = -1}};
    for (int i = 0; rc == GD_OK && i < call->argc; i++) {
        const char *word = call->argv[i], *value = NULL;
        int used = 0;

        for (size_t j = 0; !used && j < sizeof(with_value) / sizeof(with_value[0]); j++) {
            used = option_at(call, i, with_value[j], &value);
            if (used) {
                rc = value && value[0]
                         ? take_value(call, ret, with_value[j], value, err)
                         : gd_fail(err, GD_EUSAGE, "%s: a value is missing", with_value[j]);
            }
        }
        if (used) {
            i += used - 1;
        } else if (strncmp(word, "rtol=", 5) == 0) {
            ret->has_rtol = true;
            rc = tolerance_of(word + 5, &ret->rtol, err);
        } else if (strncmp(word, "atol=", 5) == 0) {
            ret->has_atol = true;
            rc = tolerance_of(word + 5, &ret->atol, err);
        } else if (!take_flag(word, ret)) {
            call->argv[kept++] = call->argv[i];
        }
    }
    call->argc = kept;
    return rc == GD_OK ? inspect_no_options(call, err) : rc;
}

void compare_options_free(struct compare_options *options)
{
    gd_map_free(options->map);
    options->map = NULL;
}

static bool is_like(const char *pattern, const char *name)
{
    return name && (strstr(name, pattern) || gd_glob_match(pattern, name, false));
}

bool compare_tolerance(const struct compare_options *options, const char *a, const char *b,
                       struct gd_tolerance *ret)
{
    for (int i = 0; i < options->own_count; i++) {
        if (is_like(options->own[i].pattern, a) || is_like(options->own[i].pattern, b)) {
            *ret = options->own[i].tolerance;
            return true;
        }
    }
    *ret = (struct gd_tolerance){options->rtol, options->atol};
    return options->has_rtol || options->has_atol;
}

/* Options with a value, which is not a name. */
static bool takes_value(const char *word)
{
    return strncmp(word, "--", 2) == 0 && !strchr(word, '=') &&
           strcmp(word, "--only-differing") != 0 && strcmp(word, "--shape") != 0 &&
           strcmp(word, "--equal-nan") != 0;
}

bool compare_is_of_files(struct command_call *call)
{
    int files = 0, words = 0;

    for (int i = 0; i < call->argc; i++) {
        const char *word = call->argv[i];

        if (strncmp(word, "--", 2) == 0) {
            files++; /* options for tensors have a single dash */
            i += takes_value(word);
        } else if (word[0] != '-' && strncmp(word, "rtol=", 5) != 0 &&
                   strncmp(word, "atol=", 5) != 0) {
            words++;
            files += side_is_meant(call, word);
        }
    }
    return files > 0 && words == 2;
}
