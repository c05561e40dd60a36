// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session_impl.h"

#define BAR_LEAST 10 /* columns */
#define BAR_MOST  30

struct gd_progress {
    struct gd_progress *next;
    struct gd_debugger *debugger;
    char what[160];
    char unit[16];
    uint64_t done, total;
    double since;
    bool stopped;
};

struct gd_progress *gd_progress_begin(struct gd_debugger *debugger, const char *what,
                                      const char *unit, uint64_t total)
{
    struct gd_progress *progress = calloc(1, sizeof(*progress));

    if (!progress) {
        return NULL;
    }
    progress->debugger = debugger;
    progress->total = total;
    progress->since = debugger_now(debugger);
    snprintf(progress->what, sizeof(progress->what), "%s", what);
    snprintf(progress->unit, sizeof(progress->unit), "%s", unit);
    struct gd_progress **end = &debugger->impl->progress;
    while (*end) {
        end = &(*end)->next;
    }
    *end = progress;
    return progress;
}

void gd_progress_at(struct gd_progress *progress, uint64_t done)
{
    if (progress) {
        progress->done = done;
    }
}

void gd_progress_of(struct gd_progress *progress, uint64_t total)
{
    if (progress) {
        progress->total = total;
    }
}

void gd_progress_end(struct gd_progress *progress)
{
    if (!progress) {
        return;
    }
    struct gd_progress **link = &progress->debugger->impl->progress;
    while (*link != progress) {
        link = &(*link)->next;
    }
    *link = progress->next;
    free(progress);
}

bool gd_progress_is_stopped(const struct gd_progress *progress)
{
    return progress && progress->stopped;
}

void gd_progress_stop_all(struct gd_debugger *debugger)
{
    for (struct gd_progress *at = debugger->impl->progress; at; at = at->next) {
        at->stopped = true;
    }
}

bool gd_progress_current(const struct gd_debugger *debugger, struct gd_progress_info *ret)
{
    const struct gd_progress *oldest = debugger->impl->progress;

    while (oldest && oldest->stopped) { /* the worker may look much later */
        oldest = oldest->next;
    }
    if (!oldest) {
        return false;
    }
    double seconds = debugger_now(debugger) - oldest->since;
    memcpy(ret->what, oldest->what, sizeof(ret->what));
    memcpy(ret->unit, oldest->unit, sizeof(ret->unit));
    ret->done = oldest->done;
    ret->total = oldest->total;
    ret->seconds = seconds > 0 ? seconds : 0; /* the clock may have been set */
    ret->rate = seconds > 0 ? (double)oldest->done / seconds : 0;
    return true;
}

/* ---- as a line ---- */

struct scale { /* the unit of an amount */
    double factor;
    const char *name;
};

static struct scale scale_of(const struct gd_progress_info *info, double amount)
{
    static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct scale scale = {1, info->unit};

    if (strcmp(info->unit, "B") == 0) {
        int power = 0;
        for (; power < 4 && amount >= scale.factor * 1024; power++) {
            scale.factor *= 1024;
        }
        scale.name = bytes[power];
    }
    return scale;
}

static void print_amount(double amount, const struct scale *scale, char *ret, size_t size)
{
    snprintf(ret, size, "%.*f", scale->factor > 1 ? 1 : 0, amount / scale->factor);
}

void gd_progress_amount(const struct gd_progress_info *info, char *ret, unsigned size)
{
    double most = (double)(info->total > info->done ? info->total : info->done);
    struct scale scale = scale_of(info, most);
    char done[32], total[40] = "";

    print_amount((double)info->done, &scale, done, sizeof(done));
    if (info->total > 0) {
        memcpy(total, " of ", 5);
        print_amount((double)info->total, &scale, total + 4, sizeof(total) - 4);
    }
    snprintf(ret, size, "%s%s %s", done, total, scale.name);
}

/* "1.2 of 3.4 GiB  410.0 MiB/s" */
static void amount_text(const struct gd_progress_info *info, char *ret, size_t size)
{
    struct scale rate_scale = scale_of(info, info->rate);
    char amount[128], rate[64] = "";

    gd_progress_amount(info, amount, sizeof(amount));
    if (info->rate > 0) {
        char number[32];
        print_amount(info->rate, &rate_scale, number, sizeof(number));
        snprintf(rate, sizeof(rate), "  %s %s/s", number, rate_scale.name);
    }
    snprintf(ret, size, "%s%s", amount, rate);
}

/* Appends " [####----]" of that many columns. */
static void add_bar(const struct gd_progress_info *info, int cols, bool utf8, char *ret,
                    size_t size)
{
    int inside = cols - 4;
    double part = (double)info->done / (double)info->total;
    int full = part >= 1 ? inside : (int)(part * inside);
    size_t at = strlen(ret);

    at += (size_t)snprintf(ret + at, size - at, "  [");
    for (int i = 0; i < inside; i++) {
        const char *cell = i < full ? (utf8 ? "\u2588" : "#") : (utf8 ? "\u2591" : "-");
        at += (size_t)snprintf(ret + at, size - at, "%s", cell);
    }
    snprintf(ret + at, size - at, "]");
}

void gd_progress_text(const struct gd_progress_info *info, int cols, bool utf8, char *ret,
                      unsigned size)
{
    char amount[160], line[512];
    cols = cols > 0 ? cols : 0;
    int what = (int)strlen(info->what); /* columns; more bytes where letters have several */

    amount_text(info, amount, sizeof(amount));
    int left = cols - what - 2 - (int)strlen(amount);
    snprintf(line, sizeof(line), "%s", info->what);
    if (info->total > 0 && left >= BAR_LEAST) {
        add_bar(info, left < BAR_MOST ? left : BAR_MOST, utf8, line, sizeof(line));
    }
    size_t at = strlen(line);
    snprintf(line + at, sizeof(line) - at, "  %s", amount);
    if (left < 0) { /* the amount matters more than the name */
        snprintf(line, sizeof(line), "%s", amount);
    }
    snprintf(ret, size, "%s", line);
    if (left < 0 && (unsigned)cols < size) {
        ret[cols] = '\0'; /* an amount is ASCII */
    }
}
