// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A toy training in the manner of an eager framework, in a thread of the test's process: nothing is
 * known before it has run, nothing has a place that the agent was told of, and the agent asks.
 *
 * Its nodes: a parameter net/w (no phase), then operators net/op0, net/op1, ... (forward), each of
 * EAGER_COUNT float32 elements: element i of operator k in step s is 1000 * s + 10 * k + i, of the
 * parameter 7000 + 1000 * s + i, written when the step ends.
 *
 * Like Python with its global lock, the toy holds `big_lock` whenever its own code runs, in the
 * source as well, and gives it up when it calls libgradb.
 */
#ifndef TESTS_AGENT_EAGER_H
#define TESTS_AGENT_EAGER_H

#include "world.h"

#include <semaphore.h>

#define EAGER_COUNT 6
#define EAGER_OPS   4096 /* at most */

enum eager_odd { /* what the source tells instead of what is so */
                 EAGER_SANE,
                 EAGER_GONE, /* every operator's value of this step */
                 EAGER_SPARSE,
                 EAGER_BROKEN,
                 EAGER_STRANGE_ANSWER,
                 EAGER_NO_ADDRESS,
                 EAGER_WRONG_TYPE,
                 EAGER_RANK_33,
                 EAGER_NEGATIVE_SIZE,
                 EAGER_HUGE_SHAPE,
                 EAGER_FAR_STRIDES,
                 EAGER_LONG_WHY, /* fills it without a NUL */
};

struct eager {
    pthread_t thread;
    pthread_mutex_t big_lock;
    char address[64];
    /* how it goes about it; set before eager_start */
    int ops;      /* operators of a step */
    int batch;    /* new nodes before a gradb_sync; 0: gradb_publish after the first step alone */
    bool no_wait; /* the first stop is at the first step */
    bool stats;   /* the source computes statistics */
    bool told;    /* gradb_did_with instead of gradb_did; data NULL */
    bool keeps;   /* the source keeps values of the step before */
    bool parameter_first; /* net/w is published before the first stop */
    bool times;           /* gradb_timing and gradb_event in each step */
    bool looks;    /* gradb_on_look; the scalar "loss" of each step, its number, is put off */
    int64_t steps; /* 0: until told to end */
    int nan_op;    /* in step nan_step its element 3 is NaN; -1 never */
    int64_t nan_step;
    int64_t rests_from; /* from this step on the last operator does not run; 0 never */
    /* what it says of itself */
    gradb *agent;
    atomic_int odd;       /* enum eager_odd */
    _Atomic int64_t gate; /* not 0: it waits before the step after this one */
    atomic_int end, done;
    _Atomic int64_t step; /* the last one done */
    atomic_int waited;    /* what gradb_wait said, plus 1 */
    atomic_int locates, releases, located, stats_calls, keep_calls, kept, commands;
    atomic_int announced, put_off; /* values; numbers that were reported after their step */
    atomic_int synced, unsynced;   /* gradb_sync said true, false */
    atomic_int wrong_thread;       /* the source was asked on another thread than the training's */
    atomic_int holding;            /* the command "hold", or the next, is under way */
    atomic_int hold_weight;        /* 1: the next statistics of net/w wait for let_go */
    atomic_int in_child;
    sem_t let_go; /* for both */
    /* its own */
    pthread_t self;
    bool here; /* `self` is known */
    gradb_node w, node[EAGER_OPS];
    int added, told_of; /* operators */
    float value[EAGER_OPS][EAGER_COUNT], kept_value[EAGER_OPS][EAGER_COUNT];
    float weight[EAGER_COUNT], kept_weight[EAGER_COUNT];
    int64_t kept_step;
    int64_t owed; /* the step whose loss is to be reported; 0: none */
    int64_t value_step[EAGER_OPS];
};

float eager_value(int64_t step, int op, int i);
float eager_weight(int64_t step, int i);
void eager_start(struct eager *eager, const struct world *world);
void eager_join(struct eager *eager); /* tells it to end and waits */
/* Starts the training and waits for its first stop. */
void eager_begin(struct eager *eager, struct world *world);
/* Lets the training run to its end, whatever stops it, and joins its thread. */
void eager_end(struct eager *eager, struct world *world);

#endif
