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

#define MAX_LINE  65536
#define MAX_LINES ((size_t)50000000)

/* What stands behind a word and its colon; NULL: the word is not there. */
static const char *behind(const char *line, const char *word)
{
    const char *at = strcasestr(line, word);

    if (!at) {
        return NULL;
    }
    at += strlen(word);
    while (*at == ':' || *at == '=' || isspace((unsigned char)*at)) {
        at++;
    }
    return at;
}

static bool number_at(const char *at, double *ret)
{
    char *end;

    if (!at || !(isdigit((unsigned char)*at) || strchr("+-.nNiI", *at)) || *at == '\0') {
        return false;
    }
    *ret = strtod(at, &end);
    return end != at;
}

bool gd_loss_line(const char *line, const char *tag, struct gd_loss *ret)
{
    const char *overflow = behind(line, "overflow");
    double step;

    *ret = (struct gd_loss){.step = -1};
    if (!number_at(behind(line, tag), &ret->value)) {
        return false;
    }
    if (number_at(behind(line, "step"), &step) && step >= 0 && step < 9e15 && step == floor(step)) {
        ret->step = (int64_t)step;
    }
    if (overflow &&
        (strncasecmp(overflow, "true", 4) == 0 || strncasecmp(overflow, "false", 5) == 0)) {
        ret->has_overflow = true;
        ret->overflow = tolower((unsigned char)*overflow) == 't';
    }
    ret->has_scale = number_at(behind(line, "scale"), &ret->scale);
    return true;
}

static int add(struct gd_loss_log *log, const struct gd_loss *loss, struct gd_err *err)
{
    if (log->count == MAX_LINES) {
        return gd_fail(err, GD_ELIMIT, "more than %zu losses", MAX_LINES);
    }
    if (log->count == log->room) {
        size_t room = log->room ? log->room * 2 : 256;
        struct gd_loss *more = reallocarray(log->loss, room, sizeof(*more));

        if (!more) {
            return gd_fail(err, GD_ENOMEM, "out of memory for a log");
        }
        log->loss = more;
        log->room = room;
    }
    log->has_steps = log->count == 0
                         ? loss->step >= 0
                         : log->has_steps && loss->step > log->loss[log->count - 1].step;
    log->loss[log->count++] = *loss;
    return GD_OK;
}

/* Lines that are longer than any loss is printed in are cut. */
static int read_lines(FILE *file, const char *tag, struct gd_loss_log *ret, struct gd_err *err)
{
    char *line = malloc(MAX_LINE);
    struct gd_loss loss;
    int rc = line ? GD_OK : gd_fail(err, GD_ENOMEM, "out of memory for a log");

    while (rc == GD_OK && fgets(line, MAX_LINE, file)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (gd_loss_line(line, tag, &loss)) {
            rc = add(ret, &loss, err);
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
        return gd_fail(err, GD_EIO, "%.300s is no regular file", path);
    }
    rc = read_lines(file, tag, ret, err);
    fclose(file);
    if (rc == GD_OK && ret->count == 0) {
        rc = gd_fail(err, GD_ENODATA,
                     "%.200s: no line has a number behind \"%.80s\": --tag says what "
                     "stands before the loss",
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
    *ret = (struct gd_loss_difference){.by_step = a->has_steps && b->has_steps};
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        if (ret->by_step && a->loss[i].step != b->loss[j].step) {
            *(a->loss[i].step < b->loss[j].step ? &i : &j) += 1;
            continue;
        }
        compare_pair(a, b, i++, j++, tolerance, ret);
    }
}
