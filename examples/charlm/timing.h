// SPDX-License-Identifier: MIT
/*
 * How long the operators and phases of a step take, for gradb_timing. The time between two calls
 * counts for what the second one names; time inside of gradb counts for nothing.
 */
#ifndef CHARLM_TIMING_H
#define CHARLM_TIMING_H

#include "agent/gradb.h"
#include "graph.h"

struct timing {
    bool wanted;      /* from the next step on */
    bool on;          /* this step is measured */
    enum phase phase; /* that runs; 0: none yet */
    double since;     /* when gradb was left last; seconds */
    double spent[PHASE_OPTIMIZER + 1];
    gradb_op_time *op; /* of this step */
    size_t op_count, op_cap;
};

/* A step begins. */
void timing_begin(struct timing *timing);
void timing_phase(struct timing *timing, enum phase phase);
/* The node has run. */
void timing_ran(struct timing *timing, gradb_node node);
/* Call it when a function of gradb that may stop has returned. */
void timing_resume(struct timing *timing);
/* The step ends: reports it to gradb. */
void timing_end(struct timing *timing, gradb *g);
void timing_free(struct timing *timing);

#endif
