// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/losslog.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

#define MAX_LINE  65536
#define MAX_LINES ((size_t)50000000)

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* The value after a word and ":", "=", "is" or "[". */
static const char *value_of(const char *at)
{
    at = skip_blanks(at);
    at = skip_blanks(at + strspn(at, ":="));
    if (strncasecmp(at, "is", 2) == 0 && (at[2] == ' ' || at[2] == ':')) {
        at = skip_blanks(at + 3);
    }
    return skip_blanks(at + (*at == '['));
}

static bool number_at(const char *at, double *ret)
{
    char *end;

    if (!(isdigit((unsigned char)*at) || strchr("+-.nNiI", *at)) || *at == '\0') {
        return false;
    }
    *ret = strtod(at, &end);
    return end != at;
}

/* The first occurrence of the word with a number after it: "loss_scale" is not the loss. */
static bool number_behind(const char *line, const char *word, double *ret)
{
    for (const char *at = line; (at = strcasestr(at, word)) && *word != '\0';) {
        at += strlen(word);
        if (number_at(value_of(at), ret)) {
            return true;
        }
    }
    return false;
}

/* -1: none. */
static int64_t count_behind(const char *line, const char *word)
{
    double value;

    return number_behind(line, word, &value) && value >= 0 && value < 9e15 && value == floor(value)
               ? (int64_t)value
               : -1;
}

bool gd_loss_line(const char *line, const char *tag, struct gd_loss *ret)
{
    const char *overflow = strcasestr(line, "overflow");

    *ret =
        (struct gd_loss){.step = count_behind(line, "step"), .epoch = count_behind(line, "epoch")};
    if (!number_behind(line, tag, &ret->value)) {
        /* MindSpore's LossMonitor uses these words when it ends a training with a non-finite
         * loss. */
        if (ret->step < 0 || strcmp(tag, "loss") != 0 || !strstr(line, ". Invalid loss, ")) {
            return false;
        }
        ret->value = NAN;
    }
    overflow = overflow ? value_of(overflow + strlen("overflow")) : NULL;
    if (overflow &&
        (strncasecmp(overflow, "true", 4) == 0 || strncasecmp(overflow, "false", 5) == 0)) {
        ret->has_overflow = true;
        ret->overflow = tolower((unsigned char)*overflow) == 't';
    }
    ret->has_scale = number_behind(line, "scale", &ret->scale);
    return true;
}

/* Steps may restart in each epoch. */
static bool is_after(const struct gd_loss *loss, const struct gd_loss *before, bool by_epoch)
{
    return by_epoch && loss->epoch != before->epoch ? loss->epoch > before->epoch
                                                    : loss->step > before->step;
}

static int add_loss(struct gd_loss_log *log, const struct gd_loss *loss, struct gd_err *err)
{
    if (log->count == MAX_LINES) {
        return gd_fail(err, GD_ELIMIT, "more than %zu losses", MAX_LINES);
    }
    if (!gd_grow_list(&log->loss, log->count, &log->room, sizeof(*log->loss))) {
        return gd_fail_nomem(err);
    }
    const struct gd_loss *before = log->count ? &log->loss[log->count - 1] : NULL;
    log->has_steps = before ? log->has_steps && is_after(loss, before, false) : loss->step >= 0;
    log->has_epochs = loss->step >= 0 && loss->epoch >= 0 &&
                      (!before || (log->has_epochs && is_after(loss, before, true)));
    log->loss[log->count++] = *loss;
    return GD_OK;
}

/* Overlong lines are cut; losses are printed in short ones. */
static int read_lines(FILE *file, const char *tag, struct gd_loss_log *ret, struct gd_err *err)
{
    char *line = malloc(MAX_LINE);
    struct gd_loss loss;
    int rc = line ? GD_OK : gd_fail_nomem(err);

    while (rc == GD_OK && fgets(line, MAX_LINE, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (gd_loss_line(line, tag, &loss)) {
            rc = add_loss(ret, &loss, err);
        }
    }
    free(line);
    return rc;
}

int gd_loss_log_read(const char *path, const char *tag, struct gd_loss_log *ret, struct gd_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat there;
    FILE *file;
    int rc;

    *ret = (struct gd_loss_log){.loss = NULL};
    if (fd < 0) {
        return gd_fail_errno(err, errno == ENOENT ? GD_ENOTFOUND : GD_EIO, "cannot read %.300s",
                             path);
    }
    if (fstat(fd, &there) != 0 || !S_ISREG(there.st_mode) || !(file = fdopen(fd, "r"))) {
        close(fd);
        return gd_fail(err, GD_EIO, "%.300s is not a regular file", path);
    }
    rc = read_lines(file, tag, ret, err);
    fclose(file);
    if (rc == GD_OK && ret->count == 0) {
        rc = gd_fail(
            err, GD_ENODATA,
            "%.200s: no line has a number after \"%.80s\": set the word before the loss with --tag",
            path, tag);
    }
    if (rc != GD_OK) {
        gd_loss_log_free(ret);
    }
    return rc;
}

void gd_loss_log_free(struct gd_loss_log *log)
{
    free(log->loss);
    *log = (struct gd_loss_log){.loss = NULL};
}

void gd_loss_figures(const struct gd_loss_log *log, struct gd_loss_figures *ret)
{
    size_t finite = 0, run = 0;

    *ret = (struct gd_loss_figures){
        .max = -INFINITY, .min = INFINITY, .first_nonfinite = log->count, .least_scale = NAN};
    for (size_t i = 0; i < log->count; i++) {
        const struct gd_loss *loss = &log->loss[i];

        if (isfinite(loss->value)) {
            ret->max = fmax(ret->max, loss->value);
            ret->min = fmin(ret->min, loss->value);
            ret->mean += (loss->value - ret->mean) / (double)++finite;
        } else if (ret->nonfinite++ == 0) {
            ret->first_nonfinite = i;
        }
        run = loss->overflow ? run + 1 : 0;
        ret->overflows += loss->overflow;
        ret->longest_run = run > ret->longest_run ? run : ret->longest_run;
        if (i + 100 >= log->count) {
            ret->last_hundred += loss->overflow;
            ret->last_counted += loss->has_overflow;
        }
        if (loss->has_scale) {
            ret->least_scale = fmin(loss->scale, ret->least_scale);
        }
    }
}

static void compare_pair(const struct gd_loss_log *a, const struct gd_loss_log *b, size_t i,
                         size_t j, double tolerance, struct gd_loss_difference *ret)
{
    double x = a->loss[i].value, y = b->loss[j].value, apart = fabs(x - y);
    bool differs = isfinite(x) && isfinite(y) ? apart > tolerance * fmax(fabs(x), fabs(y))
                                              : !(x == y || (isnan(x) && isnan(y)));

    ret->pairs++;
    ret->nonfinite += !isfinite(x) && !differs;
    if (isfinite(apart)) {
        ret->max_abs = fmax(ret->max_abs, apart);
        ret->max_rel = x != 0 ? fmax(ret->max_rel, apart / fabs(x)) : ret->max_rel;
    }
    if (differs && !ret->differs) {
        ret->differs = true;
        ret->first_a = i;
        ret->first_b = j;
    }
}

void gd_loss_compare(const struct gd_loss_log *a, const struct gd_loss_log *b, double tolerance,
                     struct gd_loss_difference *ret)
{
    bool steps = a->has_steps && b->has_steps, epochs = a->has_epochs && b->has_epochs;

    *ret = (struct gd_loss_difference){.by_step = steps || epochs};
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        bool later = ret->by_step && is_after(&a->loss[i], &b->loss[j], !steps);
        if (later || (ret->by_step && is_after(&b->loss[j], &a->loss[i], !steps))) {
            *(later ? &j : &i) += 1;
            continue;
        }
        compare_pair(a, b, i++, j++, tolerance, ret);
    }
}
