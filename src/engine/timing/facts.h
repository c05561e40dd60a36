// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a training process knows about its times, from the JSON that it sends: docs/protocol.md
 * lists the members. Only those that are there change something.
 */
#ifndef GD_ENGINE_TIMING_FACTS_H
#define GD_ENGINE_TIMING_FACTS_H

#include "engine/timing/report.h"

/* Bad text and members of a wrong type are ignored. */
void gd_time_read_facts(struct gd_time_report *report, const char *json);

#endif
