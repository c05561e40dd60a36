// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emulated
{

void (*around_threads)(const Work &loop) = [](const Work &loop) { loop(); };

namespace
{

const char *const names[COUNTS] = {"kernels",        "copies_to_device",
                                   "copies_to_host", "copies_on_device",
                                   "waits_stream",   "waits_event",
                                   "waits_device",   "waits_implicit",
                                   "queries",        "records",
                                   "blocks",         "allocations",
                                   "frees",          "pinned"};
std::atomic<long> counts[COUNTS];
std::atomic<Schedule> schedule{Schedule::eager};
std::atomic<uint64_t> seed{0};
std::atomic<long> kernel_to_fail{0}, allocation_to_fail{0};
bool forked = false;

constexpr size_t SMALLEST = 512;
constexpr int POISON = 0xFF;
constexpr auto LONGEST_DELAY = std::chrono::microseconds(2000);

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// A number from the seed: the same for the same place in the same stream.
uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = seed + 0x9E3779B97F4A7C15ull * (a + 1) + 0xBF58476D1CE4E5B9ull * (b + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

struct Block {
    size_t bytes = 0;
    int stream = 0;
    std::vector<std::pair<int, uint64_t>>
        others; // streams that use it, too; when free: up to these tickets
};

struct Device {
    char *shown = nullptr, *kept = nullptr; // starts of the public and the private range
    size_t top = 0, used = 0, peak = 0, limit = MEMORY;
    long allocations = 0;
    std::unordered_map<size_t, Block> blocks; // by offset: in use
    std::map<std::pair<int, size_t>, std::deque<std::pair<size_t, long>>>
        free; // (stream, bytes) -> (offset, freed)
    std::array<std::unique_ptr<Stream>, STREAMS> streams;
    int next = 0;
    std::string error;
    std::atomic<bool> failed{false}; // there is an error
    std::recursive_mutex mutex;
};

void map_memory(Device &device)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *shown = mmap(nullptr, MEMORY, PROT_NONE, flags, -1, 0);
    void *kept = mmap(nullptr, MEMORY, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (shown == MAP_FAILED || kept == MAP_FAILED)
        throw std::runtime_error("emulated device: no addresses for its memory");
    madvise(kept, MEMORY, MADV_DONTFORK);
    device.shown = static_cast<char *>(shown);
    device.kept = static_cast<char *>(kept);
}

// They live for ever: streams' threads use them until the process has ended.
std::array<Device, DEVICES> &devices()
{
    static auto *all = new std::array<Device, DEVICES>;
    return *all;
}

// Called at the first use. A process that is forked before may use the devices; later, it has no
// streams.
void start()
{
    static std::once_flag once;
    std::call_once(once, [] {
        for (Device &device : devices())
            map_memory(device);
        pthread_atfork(nullptr, nullptr, [] { forked = true; });
    });
}

void fail(int number, const std::string &why)
{
    Device &device = devices()[number];
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    if (device.error.empty())
        device.error = why;
    device.failed = true;
}

// Whether this is the call that is to fail.
bool is_chosen(std::atomic<long> &left)
{
    long before = left.load();
    while (before > 0 && !left.compare_exchange_weak(before, before - 1)) {
    }
    return before == 1;
}

} // namespace

// ---- counts ----

const char *count_name(int count)
{
    return names[count];
}

long count_of(int count)
{
    return counts[count];
}

void add_count(Count count)
{
    ++counts[count];
}

void reset_counts()
{
    for (auto &count : counts)
        count = 0;
}

// ---- streams ----

Stream::Stream(int device, int id) : device(device), id(id)
{
}

uint64_t Stream::push(Work work)
{
    start();
    if (is_chosen(kernel_to_fail))
        work = [] { throw std::runtime_error("injected error"); };
    std::lock_guard<std::mutex> lock(mutex);
    if (!started) {
        started = true;
        std::thread([this] { around_threads([this] { run(); }); }).detach();
    }
    queue.push_back(std::move(work));
    wake.notify_all();
    return ++submitted;
}

bool Stream::may_run() const
{
    return !queue.empty() && (schedule != Schedule::lazy || demanded > completed);
}

void Stream::run()
{
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
        wake.wait(lock, [this] { return may_run(); });
        if (schedule == Schedule::random) {
            const auto delay =
                LONGEST_DELAY * (mixed(device * STREAMS + id, completed) % 1024) / 1024;
            wake.wait_for(lock, delay, [this] { return demanded > completed; });
        }
        Work work = std::move(queue.front());
        queue.pop_front();
        lock.unlock();
        try {
            if (!has_failed(device))
                work();
        } catch (const std::exception &error) {
            fail(device, error.what());
        }
        work = nullptr;
        lock.lock();
        ++completed;
        done.notify_all();
    }
}

void Stream::wait(uint64_t ticket)
{
    std::unique_lock<std::mutex> lock(mutex);
    if (ticket > demanded)
        demanded = ticket;
    wake.notify_all();
    done.wait(lock, [this, ticket] { return completed >= ticket; });
}

bool Stream::has_done(uint64_t ticket)
{
    std::lock_guard<std::mutex> lock(mutex);
    return completed >= ticket;
}

bool Stream::is_done(uint64_t ticket)
{
    std::lock_guard<std::mutex> lock(mutex);
    if (ticket > demanded) // else a loop that asks again and again would never end
        demanded = ticket;
    wake.notify_all();
    return completed >= ticket;
}

uint64_t Stream::last()
{
    std::lock_guard<std::mutex> lock(mutex);
    return submitted;
}

Stream &stream_of(int number, int id)
{
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    auto &stream = device.streams.at(id);
    if (!stream)
        stream = std::make_unique<Stream>(number, id);
    return *stream;
}

int new_stream(int number)
{
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    return 1 + device.next++ % (STREAMS - 1);
}

void wait_for_device(int number)
{
    std::vector<Stream *> used;
    {
        Device &device = devices().at(number);
        std::lock_guard<std::recursive_mutex> lock(device.mutex);
        for (auto &stream : device.streams)
            if (stream)
                used.push_back(stream.get());
    }
    for (Stream *stream : used)
        stream->wait(stream->last());
}

std::shared_ptr<Moment> record(Stream &stream)
{
    auto moment = std::make_shared<Moment>();
    moment->stream = &stream;
    moment->ticket = stream.push([moment] { moment->time = now(); });
    return moment;
}

void block(const std::shared_ptr<Moment> &moment, Stream &stream)
{
    if (moment->stream != &stream)
        stream.push([moment] { moment->stream->wait(moment->ticket); });
}

void set_schedule(Schedule chosen, uint64_t number)
{
    for (int device = 0; device < DEVICES; ++device)
        wait_for_device(device);
    seed = number;
    schedule = chosen;
}

// ---- memory ----

namespace
{

// A free block of that size, or new memory; MEMORY: there is none.
size_t find_place(Device &device, int stream, size_t bytes)
{
    auto &free = device.free[{stream, bytes}];
    if (!free.empty() && device.allocations - free.front().second >= REUSE) {
        const size_t offset = free.front().first;
        free.pop_front();
        return offset;
    }
    if (bytes > MEMORY - device.top)
        return MEMORY;
    const size_t offset = device.top;
    device.top += bytes;
    memset(device.kept + offset, POISON, bytes); // nobody has it yet
    return offset;
}

// When what uses the block has run, fills it, in the order of its stream.
void poison(int number, size_t offset, const Block &block)
{
    char *kept = devices()[number].kept + offset;
    stream_of(number, block.stream).push([number, kept, block] {
        for (const auto &other : block.others)
            stream_of(number, other.first).wait(other.second);
        memset(kept, POISON, block.bytes);
    });
}

} // namespace

void *allocate(int number, size_t bytes, int stream)
{
    start();
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    add_count(ALLOCATIONS);
    ++device.allocations;
    Block block;
    block.bytes = (bytes + SMALLEST - 1) / SMALLEST * SMALLEST;
    block.stream = stream;
    const bool fails = is_chosen(allocation_to_fail) || device.used + block.bytes > device.limit;
    const size_t offset = fails ? MEMORY : find_place(device, stream, block.bytes);
    if (offset == MEMORY)
        return nullptr;
    device.used += block.bytes;
    device.peak = std::max(device.peak, device.used);
    device.blocks[offset] = block;
    return device.shown + offset;
}

void release(void *address)
{
    const int number = device_of(address);
    if (number < 0 || forked)
        return;
    Device &device = devices()[number];
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    const size_t offset = static_cast<char *>(address) - device.shown;
    auto found = device.blocks.find(offset);
    if (found == device.blocks.end())
        return;
    add_count(FREES);
    Block block = found->second;
    device.blocks.erase(found);
    for (auto &other : block.others)
        other.second = stream_of(number, other.first).last();
    poison(number, offset, block);
    device.used -= block.bytes;
    device.free[{block.stream, block.bytes}].push_back({offset, device.allocations});
}

void use_on_stream(void *address, int stream)
{
    const int number = device_of(address);
    if (number < 0)
        return;
    Device &device = devices()[number];
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    auto found = device.blocks.find(static_cast<char *>(address) - device.shown);
    if (found != device.blocks.end() && found->second.stream != stream)
        found->second.others.push_back({stream, 0});
}

int device_of(const void *address)
{
    for (int number = 0; number < DEVICES; ++number) {
        const char *shown = devices()[number].shown;
        if (shown && address >= shown && address < shown + MEMORY)
            return number;
    }
    return -1;
}

void *private_of(const void *address)
{
    const int number = device_of(address);
    if (number < 0)
        return nullptr;
    const Device &device = devices()[number];
    return device.kept + (static_cast<const char *>(address) - device.shown);
}

Usage usage_of(int number)
{
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    return {device.used, device.peak};
}

void reset_peak(int number)
{
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    device.peak = device.used;
}

void set_limit(int number, size_t bytes)
{
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    device.limit = bytes;
}

// ---- pinned memory ----

namespace
{

struct Pinned {
    size_t bytes;
    std::vector<std::pair<Stream *, uint64_t>> uses;
};

struct Host {
    std::mutex mutex;
    std::map<const char *, Pinned> blocks;          // in use, by their start
    std::deque<std::pair<char *, Pinned>> released; // that streams may still use, or that rest
    long allocations = 0;
};

Host &host()
{
    static auto *one = new Host;
    return *one;
}

std::map<const char *, Pinned>::iterator find_pinned(const void *address)
{
    auto &blocks = host().blocks;
    auto next = blocks.upper_bound(static_cast<const char *>(address));
    if (next == blocks.begin())
        return blocks.end();
    --next;
    return static_cast<const char *>(address) < next->first + next->second.bytes ? next
                                                                                 : blocks.end();
}

// Returns blocks to the system that nobody uses any more; the last ones stay, filled.
void sweep()
{
    auto &released = host().released;
    while (released.size() > size_t(REUSE)) {
        for (const auto &use : released.front().second.uses)
            if (!use.first->has_done(use.second))
                return;
        free(released.front().first);
        released.pop_front();
    }
}

} // namespace

void *allocate_pinned(size_t bytes)
{
    std::lock_guard<std::mutex> lock(host().mutex);
    add_count(PINNED);
    sweep();
    const size_t size = (bytes + SMALLEST - 1) / SMALLEST * SMALLEST;
    void *block = aligned_alloc(SMALLEST, size);
    if (!block)
        return nullptr;
    memset(block, POISON, size);
    host().blocks[static_cast<char *>(block)] = {size, {}};
    return block;
}

void release_pinned(void *block)
{
    if (forked)
        return;
    std::lock_guard<std::mutex> lock(host().mutex);
    auto found = host().blocks.find(static_cast<char *>(block));
    if (found == host().blocks.end())
        return;
    bool used = false;
    for (const auto &use : found->second.uses)
        used = used || !use.first->has_done(use.second);
    if (!used)
        memset(block, POISON, found->second.bytes);
    host().released.push_back({static_cast<char *>(block), found->second});
    host().blocks.erase(found);
}

bool is_pinned(const void *address)
{
    std::lock_guard<std::mutex> lock(host().mutex);
    return find_pinned(address) != host().blocks.end();
}

void use_pinned(const void *address, Stream &stream, uint64_t ticket)
{
    std::lock_guard<std::mutex> lock(host().mutex);
    auto found = find_pinned(address);
    if (found != host().blocks.end())
        found->second.uses.push_back({&stream, ticket});
}

// ---- failures ----

void fail_allocation(long number)
{
    allocation_to_fail = number;
}

void fail_kernel(long number)
{
    kernel_to_fail = number;
}

bool has_failed(int number)
{
    return devices()[number].failed;
}

std::string error_of(int number)
{
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    return device.error;
}

void clear(int number)
{
    wait_for_device(number);
    Device &device = devices().at(number);
    std::lock_guard<std::recursive_mutex> lock(device.mutex);
    device.error.clear();
    device.failed = false;
}

namespace
{

struct sigaction before;

void say_fault(int, siginfo_t *info, void *)
{
    if (device_of(info->si_addr) >= 0) {
        static const char text[] = "emulated device: the host has read or written device memory\n";
        if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
            // nobody reads it
        }
    }
    sigaction(SIGSEGV, &before, nullptr); // the fault happens again
}

} // namespace

void report_faults()
{
    devices(); // it must exist before a signal handler looks at it
    struct sigaction action = {};
    action.sa_sigaction = say_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before);
}

bool was_forked()
{
    return forked;
}

} // namespace emulated
