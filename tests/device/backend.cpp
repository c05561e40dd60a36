// SPDX-License-Identifier: GPL-3.0-or-later
// Allocators, device guard, hooks and generators: what PyTorch must find registered for a device.
#include "backend.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <ATen/EmptyTensor.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Generator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace emulated
{

namespace
{

bool is_cuda()
{
    const char *name = getenv("GRADB_EMULATED");
    return name && strcmp(name, "cuda") == 0;
}

thread_local int current = 0;
thread_local std::array<int, DEVICES> streams = {};

} // namespace

c10::DeviceType type()
{
    static const auto chosen = is_cuda() ? c10::DeviceType::CUDA : c10::DeviceType::PrivateUse1;
    return chosen;
}

c10::DispatchKey key()
{
    static const auto chosen = is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::PrivateUse1;
    return chosen;
}

int current_device()
{
    return current;
}

void set_current_device(int index)
{
    TORCH_CHECK(index >= 0 && index < DEVICES, "invalid device ordinal: ", index, " of ", DEVICES);
    current = index;
}

int index_of(c10::Device device)
{
    return device.has_index() ? device.index() : current;
}

Stream &current_stream(int device)
{
    return stream_of(device, streams.at(device));
}

Stream &stream_of(const c10::Stream &stream)
{
    return stream_of(index_of(stream.device()), static_cast<int>(stream.id()));
}

void check(int device)
{
    if (!has_failed(device))
        return;
    throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, 700,
                                "emulated device: " + error_of(device));
}

namespace
{

c10::Stream as_torch(int device, int id)
{
    return c10::Stream(c10::Stream::UNSAFE,
                       c10::Device(emulated::type(), static_cast<c10::DeviceIndex>(device)), id);
}

// ---- memory ----

// As CUDA's allocator writes it.
std::string size_text(size_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    if (bytes <= 1024)
        return std::to_string(bytes) + " bytes";
    double size = static_cast<double>(bytes) / 1024;
    size_t unit = 0;
    for (; size > 1024 && unit < 2; ++unit)
        size /= 1024;
    char text[32];
    snprintf(text, sizeof(text), "%.2f %s", size, units[unit]);
    return text;
}

struct Memory final : c10::DeviceAllocator {
    c10::DataPtr allocate(size_t bytes) override
    {
        const c10::Device device(emulated::type(), static_cast<c10::DeviceIndex>(current));
        if (bytes == 0)
            return {nullptr, nullptr, &release, device};
        TORCH_CHECK(!was_forked(), "Cannot re-initialize ", type(),
                    " in a forked process: its streams are not there. ",
                    "Use the 'spawn' start method");
        void *block = emulated::allocate(current, bytes, streams[current]);
        TORCH_CHECK_WITH(OutOfMemoryError, block, "emulated device out of memory. ",
                         "Tried to allocate ", size_text(bytes), ". GPU ", current,
                         " has a total capacity of ", size_text(MEMORY), ".");
        return {block, block, &release, device};
    }

    c10::DeleterFnPtr raw_deleter() const override
    {
        return &release;
    }

    void copy_data(void *to, const void *from, size_t bytes) const override
    {
        Stream &stream = current_stream(current);
        stream.push([=] { memcpy(private_of(to), private_of(from), bytes); });
    }

    bool initialized() override
    {
        return true;
    }

    void emptyCache(c10::MempoolId_t) override
    {
    }

    void recordStream(const c10::DataPtr &block, c10::Stream stream) override
    {
        use_on_stream(block.get(), static_cast<int>(stream.id()));
    }

    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override
    {
        using c10::CachingAllocator::StatType;
        c10::CachingDeviceAllocator::DeviceStats stats;
        const Usage usage = usage_of(device);
        for (auto *of : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes}) {
            auto &all = of->at(static_cast<size_t>(StatType::AGGREGATE));
            all.current = static_cast<int64_t>(usage.bytes);
            all.peak = static_cast<int64_t>(usage.peak);
        }
        return stats;
    }

    void resetAccumulatedStats(c10::DeviceIndex) override
    {
    }

    void resetPeakStats(c10::DeviceIndex device) override
    {
        reset_peak(device);
    }

    std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override
    {
        return {MEMORY - usage_of(device).bytes, MEMORY};
    }

    static void release(void *block)
    {
        emulated::release(block);
    }
};

struct PinnedMemory final : at::HostAllocator {
    c10::DataPtr allocate(size_t bytes) override
    {
        if (bytes == 0)
            return {nullptr, nullptr, &release_pinned, at::kCPU};
        void *block = allocate_pinned(bytes);
        TORCH_CHECK_WITH(OutOfMemoryError, block, "out of pinned memory");
        return {block, block, &release_pinned, at::kCPU};
    }

    c10::DeleterFnPtr raw_deleter() const override
    {
        return &release_pinned;
    }

    void copy_data(void *to, const void *from, size_t bytes) const override
    {
        memcpy(to, from, bytes);
    }

    bool record_event(void *block, void *, c10::Stream stream) override
    {
        Stream &own = stream_of(stream);
        use_pinned(block, own, own.last());
        return true;
    }

    void empty_cache() override
    {
    }
    at::HostStats get_stats() override
    {
        return {};
    }
    void reset_accumulated_stats() override
    {
    }
    void reset_peak_stats() override
    {
    }
};

Memory &memory()
{
    static auto *one = new Memory;
    return *one;
}

PinnedMemory &pinned_memory()
{
    static auto *one = new PinnedMemory;
    return *one;
}

// ---- the guard: current device and stream, events ----

using Event = std::shared_ptr<Moment>;

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override
    {
        return emulated::type();
    }

    c10::Device exchangeDevice(c10::Device device) const override
    {
        const c10::Device before = getDevice();
        set_current_device(index_of(device));
        return before;
    }

    c10::Device getDevice() const override
    {
        return {emulated::type(), static_cast<c10::DeviceIndex>(current)};
    }
    void setDevice(c10::Device device) const override
    {
        set_current_device(index_of(device));
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override
    {
        current = index_of(device);
    }
    c10::DeviceIndex deviceCount() const noexcept override
    {
        return DEVICES;
    }
    c10::DeviceCapability getDeviceCapability(c10::Device) const override
    {
        return {};
    }

    c10::Stream getStream(c10::Device device) const override
    {
        const int index = index_of(device);
        return as_torch(index, streams.at(index));
    }

    c10::Stream getDefaultStream(c10::Device device) const override
    {
        return as_torch(index_of(device), 0);
    }

    c10::Stream getNewStream(c10::Device device, int) const override
    {
        const int index = index_of(device);
        return as_torch(index, new_stream(index));
    }

    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override
    {
        return getNewStream(device, 0);
    }

    c10::Stream exchangeStream(c10::Stream stream) const override
    {
        const int index = index_of(stream.device());
        const c10::Stream before = as_torch(index, streams.at(index));
        streams[index] = static_cast<int>(stream.id());
        return before;
    }

    void *getStreamNativeHandle(const c10::Stream stream) const override
    {
        return &stream_of(stream);
    }

    bool queryStream(const c10::Stream &stream) const override
    {
        check(index_of(stream.device()));
        add_count(QUERIES);
        Stream &own = stream_of(stream);
        return own.is_done(own.last());
    }

    void synchronizeStream(const c10::Stream &stream) const override
    {
        add_count(WAITS_STREAM);
        Stream &own = stream_of(stream);
        own.wait(own.last());
        check(own.device);
    }

    void synchronizeDevice(const c10::DeviceIndex device) const override
    {
        const int index = device < 0 ? current : device;
        add_count(WAITS_DEVICE);
        wait_for_device(index);
        check(index);
    }

    void record(void **event, const c10::Stream &stream, const c10::DeviceIndex,
                const c10::EventFlag) const override
    {
        check(index_of(stream.device()));
        add_count(RECORDS);
        if (!*event)
            *event = new Event;
        *static_cast<Event *>(*event) = emulated::record(stream_of(stream));
    }

    void block(void *event, const c10::Stream &stream) const override
    {
        add_count(BLOCKS);
        if (event && *static_cast<Event *>(event))
            emulated::block(*static_cast<Event *>(event), stream_of(stream));
    }

    bool queryEvent(void *event) const override
    {
        add_count(QUERIES);
        const Event *of = static_cast<Event *>(event);
        return !of || !*of || (*of)->stream->is_done((*of)->ticket);
    }

    void synchronizeEvent(void *event) const override
    {
        const Event *of = static_cast<Event *>(event);
        add_count(WAITS_EVENT);
        if (!of || !*of)
            return;
        (*of)->stream->wait((*of)->ticket);
        check((*of)->stream->device);
    }

    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override
    {
        delete static_cast<Event *>(event);
    }

    double elapsedTime(void *first, void *second, const c10::DeviceIndex) const override
    {
        const Event &from = *static_cast<Event *>(first), &to = *static_cast<Event *>(second);
        from->stream->wait(from->ticket);
        to->stream->wait(to->ticket);
        return 1e3 * (to->time - from->time);
    }

    void recordDataPtrOnStream(const c10::DataPtr &block, const c10::Stream &stream) const override
    {
        use_on_stream(block.get(), static_cast<int>(stream.id()));
    }
};

// ---- random numbers ----

} // namespace

// A seed and how often it was drawn from: the state is both, 16 bytes.
class Generator final : public c10::GeneratorImpl
{
  public:
    explicit Generator(int device)
        : GeneratorImpl(c10::Device(emulated::type(), static_cast<c10::DeviceIndex>(device)),
                        c10::DispatchKeySet(key()))
    {
    }

    void set_current_seed(uint64_t number) override
    {
        state = {number, 0};
    }
    void set_offset(uint64_t offset) override
    {
        state[1] = offset;
    }
    uint64_t get_offset() const override
    {
        return state[1];
    }
    uint64_t current_seed() const override
    {
        return state[0];
    }

    uint64_t seed() override
    {
        set_current_seed(c10::detail::getNonDeterministicRandom());
        return state[0];
    }

    void set_state(const c10::TensorImpl &given) override
    {
        TORCH_CHECK(given.numel() == static_cast<int64_t>(sizeof(state)),
                    "RNG state is wrong size");
        memcpy(state.data(), given.data(), sizeof(state));
    }

    c10::intrusive_ptr<c10::TensorImpl> get_state() const override
    {
        auto bytes = at::detail::empty_cpu({sizeof(state)}, at::kByte);
        memcpy(bytes.mutable_data_ptr(), state.data(), sizeof(state));
        return bytes.getIntrusivePtr();
    }

    uint64_t draw()
    {
        return state[0] * 0x9E3779B97F4A7C15ull + ++state[1] * 0xBF58476D1CE4E5B9ull;
    }

  private:
    Generator *clone_impl() const override
    {
        auto *made = new Generator(device().index());
        made->state = state;
        return made;
    }

    std::array<uint64_t, 2> state = {c10::default_rng_seed_val, 0};
};

namespace
{

const at::Generator &default_generator(int device)
{
    static auto *all = [] {
        auto *made = new std::vector<at::Generator>;
        for (int index = 0; index < DEVICES; ++index)
            made->push_back(at::make_generator<Generator>(index));
        return made;
    }();
    return all->at(device < 0 ? current : device);
}

} // namespace

uint64_t draw(int device)
{
    return draw_from(default_generator(device).unsafeGetGeneratorImpl());
}

uint64_t draw_from(c10::GeneratorImpl *generator)
{
    std::lock_guard<std::mutex> lock(generator->mutex_);
    return static_cast<Generator *>(generator)->draw();
}

namespace
{

// ---- hooks: of both types of device ----

template <class Interface> struct Hooks : Interface {
    bool isBuilt() const override
    {
        return true;
    }
    bool isAvailable() const override
    {
        return true;
    }
    void init() const override
    {
    }
    bool hasPrimaryContext(c10::DeviceIndex) const override
    {
        return true;
    }
    c10::DeviceIndex deviceCount() const override
    {
        return DEVICES;
    }
    void setCurrentDevice(c10::DeviceIndex device) const override
    {
        set_current_device(device);
    }
    c10::DeviceIndex getCurrentDevice() const override
    {
        return static_cast<c10::DeviceIndex>(current);
    }

    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override
    {
        const auto before = static_cast<c10::DeviceIndex>(current);
        set_current_device(device);
        return before;
    }

    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override
    {
        return device < 0 ? static_cast<c10::DeviceIndex>(current) : exchangeDevice(device);
    }

    bool isPinnedPtr(const void *data) const override
    {
        return is_pinned(data);
    }
    c10::Allocator *getPinnedMemoryAllocator() const override
    {
        return &pinned_memory();
    }

    c10::Device getDeviceFromPtr(void *data) const override
    {
        const int index = device_of(data);
        TORCH_CHECK(index >= 0, "not an address of device memory");
        return {emulated::type(), static_cast<c10::DeviceIndex>(index)};
    }

    const at::Generator &getDefaultGenerator(c10::DeviceIndex device) const override
    {
        return default_generator(device);
    }

    at::Generator getNewGenerator(c10::DeviceIndex device) const override
    {
        return at::make_generator<Generator>(device < 0 ? current : device);
    }
};

struct PrivateHooks final : Hooks<at::PrivateUse1HooksInterface> {
    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override
    {
        c10::StorageImpl *impl = storage.unsafeGetStorageImpl();
        c10::DataPtr made = memory().allocate(bytes);
        const size_t kept = std::min(bytes, storage.nbytes());
        if (kept)
            memory().copy_data(made.get(), impl->data(), kept);
        impl->set_data_ptr_noswap(std::move(made));
        impl->set_nbytes(bytes);
    }
};

} // namespace

} // namespace emulated

// PyTorch looks for the hooks of CUDA by this name, early: this library must be loaded before torch
// is imported.
namespace at
{

struct CUDAHooks final : emulated::Hooks<CUDAHooksInterface> {
    explicit CUDAHooks(CUDAHooksArgs)
    {
    }
    bool hasCUDA() const override
    {
        return true;
    }
    DeviceIndex current_device() const override
    {
        return getCurrentDevice();
    }
    int getNumGPUs() const override
    {
        return emulated::DEVICES;
    }

    void deviceSynchronize(DeviceIndex device) const override
    {
        emulated::add_count(emulated::WAITS_DEVICE);
        emulated::wait_for_device(device);
    }
};

} // namespace at

namespace
{

std::unique_ptr<at::CUDAHooksInterface> make_cuda_hooks(at::CUDAHooksArgs args)
{
    return std::make_unique<at::CUDAHooks>(args);
}

} // namespace

// Everything that is registered lives for ever.
void emulated::register_device()
{
    c10::SetAllocator(type(), &memory());
    at::setHostAllocator(type(), &pinned_memory());
    c10::impl::registerDeviceGuard(type(), new Guard);
    if (type() == c10::DeviceType::CUDA)
        at::CUDAHooksRegistry()->Register("CUDAHooks", make_cuda_hooks);
    else
        at::RegisterPrivateUse1HooksInterface(new PrivateHooks);
}
