// SPDX-License-Identifier: GPL-3.0-or-later
// An emulated accelerator, without PyTorch: memory that the host cannot read, streams that run
// late, events, and failures on demand. What it shows: reads of the host without a wait, or of
// device memory; uses of memory that is free. What it cannot show: anything about real kernels,
// their speed, and drivers.
//
// Memory. Each device has two ranges of addresses of one size. The public one is what pointers are
// made of; the host cannot read it. Kernels use the private one, at the same distance from its
// start. Memory that is free, or not yet written, is filled with 0xFF: NaN in each floating-point
// type, -1 in integers. It is filled in the order of the stream that it was allocated for, as
// CUDA's caching allocator reuses it, and not given out again within REUSE allocations.
//
// Streams. Each is a thread with a queue. Its work runs when the schedule says so: at once (eager),
// after a delay from the seed unless somebody waits (random), or not before somebody waits (lazy:
// deterministic, and the worst case).
//
// Errors. An exception of a piece of work ends its device: later work is dropped, and error_of()
// says why until clear().
//
// All functions may be called by any thread, unless the process was forked after streams had
// started.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace emulated
{

constexpr int DEVICES = 2;
constexpr int STREAMS =
    33; // of a device: the default one, 0, and a pool from which new ones are taken in turn
constexpr size_t MEMORY = size_t(8) << 30;
constexpr long REUSE = 64; // allocations

enum class Schedule { eager, random, lazy };

// What is counted. WAITS_* are of the host; IMPLICIT are waits within an operator or a copy.
enum Count {
    KERNELS,
    COPIES_TO_DEVICE,
    COPIES_TO_HOST,
    COPIES_ON_DEVICE,
    WAITS_STREAM,
    WAITS_EVENT,
    WAITS_DEVICE,
    WAITS_IMPLICIT,
    QUERIES,
    RECORDS,
    BLOCKS,
    ALLOCATIONS,
    FREES,
    PINNED,
    COUNTS
};
const char *count_name(int count);
long count_of(int count);
void add_count(Count count);
void reset_counts();

using Work = std::function<void()>;

// A queue of work. Streams live for ever.
class Stream
{
  public:
    Stream(int device, int id);
    // Returns the ticket of the work: the number of pieces so far.
    uint64_t push(Work work);
    // Waits until that many pieces are done.
    void wait(uint64_t ticket);
    bool is_done(uint64_t ticket);  // counts as asking for it: a lazy stream begins to run
    bool has_done(uint64_t ticket); // does not
    uint64_t last();

    const int device, id;

  private:
    void run();
    bool may_run() const;

    std::mutex mutex;
    std::condition_variable wake, done;
    std::deque<Work> queue;
    uint64_t submitted = 0, completed = 0, demanded = 0;
    bool started = false;
};

Stream &stream_of(int device, int id);
int new_stream(int device); // its id
void wait_for_device(int device);

// A moment in a stream.
struct Moment {
    Stream *stream;
    uint64_t ticket;
    double time = 0; // seconds, when the stream reached it
};
std::shared_ptr<Moment> record(Stream &stream);
// The stream runs what is pushed later only after the moment.
void block(const std::shared_ptr<Moment> &moment, Stream &stream);

void set_schedule(Schedule schedule, uint64_t seed);

// What runs around the loop of each stream's thread: it calls its argument.
extern void (*around_threads)(const Work &loop);

// ---- memory ----

// A block for that stream; its address is public. nullptr: out of memory.
void *allocate(int device, size_t bytes, int stream);
void release(void *block);
// The block is in use on that stream, too: it is not filled before what is in the stream's queue at
// its release.
void use_on_stream(void *block, int stream);
// The device of a public address, or -1.
int device_of(const void *address);
// What kernels use instead of a public address.
void *private_of(const void *address);
struct Usage {
    size_t bytes, peak;
};
Usage usage_of(int device);
void reset_peak(int device);
// Allocations fail that would make it use more; at first MEMORY.
void set_limit(int device, size_t bytes);

// Host memory that streams may copy from and to.
void *allocate_pinned(size_t bytes);
void release_pinned(void *block);
bool is_pinned(const void *address);
// A stream's queue uses it, up to the ticket.
void use_pinned(const void *address, Stream &stream, uint64_t ticket);

// ---- failures ----

void fail_allocation(long number); // the nth from now fails; 0: none
void fail_kernel(long number); // the nth piece of work pushed from now fails when it runs; 0: none
bool has_failed(int device);
std::string error_of(int device); // "": none
void clear(int device);
// A read of device memory by the host ends the process with a line that says so.
void report_faults();
bool was_forked();

} // namespace emulated
