// SPDX-License-Identifier: GPL-3.0-or-later
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "base/workers.h"

#define PARTS 1000

struct tally {
    atomic_int done[PARTS];
    pthread_t caller;
    atomic_int elsewhere;      /* parts done by other threads than the caller */
    atomic_int open_elsewhere; /* of these, with a signal not blocked */
    pthread_barrier_t *meet;   /* where the first parts wait for each other */
    size_t meeting;
};

static void do_part(void *ctx, size_t part)
{
    struct tally *tally = ctx;
    sigset_t blocked;

    atomic_fetch_add(&tally->done[part], 1);
    if (!pthread_equal(pthread_self(), tally->caller)) {
        pthread_sigmask(SIG_SETMASK, NULL, &blocked);
        atomic_fetch_add(&tally->elsewhere, 1);
        if (!sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGPROF) ||
            !sigismember(&blocked, SIGTERM)) {
            atomic_fetch_add(&tally->open_elsewhere, 1);
        }
    }
    if (part < tally->meeting) {
        pthread_barrier_wait(tally->meet);
    }
}

static bool all_once(const struct tally *tally, size_t count)
{
    for (size_t i = 0; i < PARTS; i++) {
        if (atomic_load(&tally->done[i]) != (i < count ? 1 : 0)) {
            return false;
        }
    }
    return true;
}

static void each_part_once(void **state)
{
    static const size_t counts[] = {0, 1, 2, 3, 17, PARTS};

    for (int threads = -1; threads < 8; threads++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            struct tally tally = {.caller = pthread_self()};

            gd_workers_run(threads, counts[i], do_part, &tally);
            assert_true(all_once(&tally, counts[i]));
            if (threads <= 1) {
                assert_int_equal(tally.elsewhere, 0);
            }
        }
    }
}

/* Four parts that wait for each other prove that there are four threads. */
static void at_the_same_time(void **state)
{
    struct tally tally = {.caller = pthread_self(), .meeting = 4};
    pthread_barrier_t meet;
    sigset_t before, after;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    pthread_barrier_init(&meet, NULL, 4);
    tally.meet = &meet;
    gd_workers_run(4, PARTS, do_part, &tally);
    pthread_barrier_destroy(&meet);
    assert_true(all_once(&tally, PARTS));
    assert_true(tally.elsewhere >= 3);
    assert_int_equal(tally.open_elsewhere, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

static void *call_often(void *arg)
{
    bool *good = arg;

    *good = true;
    for (int i = 0; i < 50; i++) {
        struct tally tally = {.caller = pthread_self()};

        gd_workers_run(3, 100, do_part, &tally);
        *good &= all_once(&tally, 100);
    }
    return NULL;
}

static void several_callers(void **state)
{
    pthread_t threads[4];
    bool good[4];

    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &good[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
}

/* Runs in the child. The parts wait for each other, so it needs its own threads; an alarm ends a
 * child that hangs. */
static int in_a_fork(void)
{
    struct tally tally = {.caller = pthread_self(), .meeting = 2};
    pthread_barrier_t meet;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(60);
        pthread_barrier_init(&meet, NULL, 2);
        tally.meet = &meet;
        gd_workers_run(2, PARTS, do_part, &tally);
        _exit(all_once(&tally, PARTS) ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void after_a_fork(void **state)
{
    struct tally tally = {.caller = pthread_self()};

    gd_workers_run(4, PARTS, do_part, &tally); /* creates the threads */
    assert_int_equal(in_a_fork(), 0);
    assert_int_equal(in_a_fork(), 0);
}

static void *run_until(void *arg)
{
    atomic_bool *stop = arg;

    while (!atomic_load(stop)) {
        struct tally tally = {.caller = pthread_self()};

        gd_workers_run(2, 10, do_part, &tally);
    }
    return NULL;
}

/* Forks while another thread is calling, so that mutexes are sometimes held. */
static void a_fork_in_between(void **state)
{
    atomic_bool stop = false;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run_until, &stop), 0);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(in_a_fork(), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* ---- the program's threads ------------------------------------------------------------------- */

#define TEAM 4

static struct {
    void (*work)(void *);
    void *ctx;
    atomic_int regions;
    int max_threads, in_parallel;
} team;

static void *be_in_team(void *arg)
{
    team.work(team.ctx);
    return arg;
}

static void run_region(void (*work)(void *), void *ctx, unsigned threads, unsigned flags)
{
    pthread_t others[TEAM - 1];

    assert_int_equal(threads, 0);
    assert_int_equal(flags, 0);
    atomic_fetch_add(&team.regions, 1);
    team.work = work;
    team.ctx = ctx;
    for (int i = 0; i < TEAM - 1; i++) {
        assert_int_equal(pthread_create(&others[i], NULL, be_in_team, NULL), 0);
    }
    be_in_team(NULL);
    for (int i = 0; i < TEAM - 1; i++) {
        pthread_join(others[i], NULL);
    }
}

static int max_threads(void)
{
    return team.max_threads;
}

static int in_parallel(void)
{
    return team.in_parallel;
}

/* The regions that a call with that many threads opens. */
static int regions_of(int threads, size_t count)
{
    struct tally tally = {.caller = pthread_self()};

    atomic_store(&team.regions, 0);
    gd_workers_run(threads, count, do_part, &tally);
    assert_true(all_once(&tally, count));
    return atomic_load(&team.regions);
}

/* Two threads of the team take parts at the same time. */
static void two_of_the_team(void **state)
{
    struct tally tally = {.caller = pthread_self(), .meeting = 2};
    pthread_barrier_t meet;

    gd_workers_use_openmp(&(struct gd_openmp){run_region, max_threads, in_parallel});
    team.max_threads = TEAM;
    pthread_barrier_init(&meet, NULL, 2);
    tally.meet = &meet;
    gd_workers_run(2, PARTS, do_part, &tally);
    pthread_barrier_destroy(&meet);
    assert_true(all_once(&tally, PARTS));
    gd_workers_use_openmp(&(struct gd_openmp){.parallel = NULL});
}

static void the_programs_threads(void **state)
{
    const size_t large = 4 << 20, less = 256 << 10;

    assert_true(gd_workers_pay(large) && !gd_workers_pay(large - 1));
    gd_workers_use_openmp(&(struct gd_openmp){run_region, max_threads, in_parallel});
    team.max_threads = TEAM;
    assert_true(gd_workers_pay(less) && !gd_workers_pay(less - 1));
    assert_int_equal(regions_of(2, PARTS), 1);
    assert_int_equal(regions_of(8, 2), 1);
    assert_int_equal(regions_of(1, PARTS), 0);
    assert_int_equal(regions_of(2, 1), 0);
    team.in_parallel = 1;
    assert_int_equal(regions_of(2, PARTS), 0);
    assert_true(gd_workers_pay(large) && !gd_workers_pay(large - 1));
    team.in_parallel = 0;
    team.max_threads = 1;
    assert_int_equal(regions_of(2, PARTS), 0);
    assert_true(gd_workers_pay(large) && !gd_workers_pay(large - 1));
    gd_workers_use_openmp(&(struct gd_openmp){.parallel = NULL});
    assert_true(gd_workers_pay(large) && !gd_workers_pay(large - 1));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_part_once),    cmocka_unit_test(at_the_same_time),
    cmocka_unit_test(several_callers),   cmocka_unit_test(after_a_fork),
    cmocka_unit_test(a_fork_in_between), cmocka_unit_test(the_programs_threads),
    cmocka_unit_test(two_of_the_team),
};

RUN_TESTS()
