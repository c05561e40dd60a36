// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/log/monitor_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST ((int64_t)1 << 40) /* steps and epochs */

/* Skips the text and blanks after it; case is ignored. */
static bool take_text(const char **at, const char *text)
{
    size_t len = strlen(text);

    if (strncasecmp(*at, text, len) != 0) {
        return false;
    }
    *at += len + strspn(*at + len, " ");
    return true;
}

static bool take_count(const char **at, int64_t *ret)
{
    size_t digits = strspn(*at, "0123456789");

    *ret = digits > 0 && digits < 16 ? strtoll(*at, NULL, 10) : -1;
    *at += digits + strspn(*at + digits, " ");
    return *ret >= 0 && *ret < MOST;
}

static bool take_number(const char **at, double *ret)
{
    char *end = NULL;

    *ret = strtod(*at, &end);
    bool some = end != *at && (*end == '\0' || strchr(" ,\r\n]", *end));
    *at = end + strspn(end, " ");
    return some;
}

static bool parse_loss(const char *at, struct gd_monitor_line *ret)
{
    return take_text(&at, "epoch:") && take_count(&at, &ret->epoch) && take_text(&at, "step") &&
           (take_text(&at, ":") || true) && take_count(&at, &ret->step) && ret->step > 0 &&
           take_text(&at, ",") && take_text(&at, "loss is") && take_number(&at, &ret->loss);
}

static bool parse_time(const char *at, struct gd_monitor_line *ret)
{
    take_text(&at, "Train ");
    return take_text(&at, "epoch time:") && take_number(&at, &ret->epoch_ms) &&
           take_text(&at, "ms,") && take_text(&at, "per step time:") &&
           take_number(&at, &ret->step_ms) && take_text(&at, "ms") && ret->step_ms >= 0 &&
           ret->epoch_ms >= 0 && isfinite(ret->step_ms) && isfinite(ret->epoch_ms);
}

bool gd_monitor_parse(const char *line, struct gd_monitor_line *ret)
{
    struct gd_monitor_line parsed = {
        .epoch = -1, .step = -1, .loss = NAN, .epoch_ms = -1, .step_ms = -1};
    const char *at = line + strspn(line, " \t");
    bool is_loss = parse_loss(at, &parsed);

    if (!is_loss) {
        parsed = (struct gd_monitor_line){
            .epoch = -1, .step = -1, .loss = NAN, .epoch_ms = -1, .step_ms = -1};
    }
    *ret = parsed;
    return is_loss || parse_time(at, ret);
}

/* An epoch ended: its steps are before the next one. */
static void end_epoch(struct gd_monitor *monitor)
{
    int64_t steps = monitor->per_epoch > monitor->last ? monitor->per_epoch : monitor->last;

    monitor->per_epoch = steps;
    monitor->before += steps < MOST - monitor->before ? steps : 0;
    monitor->last = 0;
}

int64_t gd_monitor_step(struct gd_monitor *monitor, const struct gd_monitor_line *line)
{
    if (line->step < 0) { /* the time line of the current epoch says how many steps it has */
        double steps = line->step_ms > 0 ? floor(line->epoch_ms / line->step_ms + 0.5) : 0;
        if (steps >= (double)monitor->last && steps < (double)MOST && monitor->last > 0) {
            monitor->per_epoch = (int64_t)steps;
        }
        return monitor->before + monitor->last;
    }
    if (monitor->last > 0 && (line->epoch != monitor->epoch || line->step < monitor->last)) {
        end_epoch(monitor);
    }
    monitor->epoch = line->epoch;
    monitor->last = line->step;
    return monitor->before + line->step;
}
