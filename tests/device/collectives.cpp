// SPDX-License-Identifier: GPL-3.0-or-later
// The collectives of gloo on tensors of the device. Gloo works on the device's own memory, after
// the current stream. As by gloo on a real device, the host waits; unlike there, also where the
// program asks for asynchronous ones. Only sending and receiving are.
#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include "operators.h"

namespace emulated
{
namespace
{

using c10d::Work;
using Tensors = std::vector<at::Tensor>;
using Lists = std::vector<Tensors>;

// Work that is done. Its results are tensors of the device.
class Done final : public Work
{
  public:
    explicit Done(Tensors tensors) : tensors(std::move(tensors))
    {
        future->markCompleted(this->tensors);
        finish();
    }

    Tensors result() override
    {
        return tensors;
    }

    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        return future;
    }

  private:
    const Tensors tensors;
    const c10::intrusive_ptr<c10::ivalue::Future> future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
};

// The same memory, as tensors of the host. Waits until it has been written.
at::Tensor on_host(const at::Tensor &tensor)
{
    if (!is_ours(tensor))
        return tensor;
    wait_implicitly(tensor.device().index());
    return for_kernels(tensor);
}

Tensors on_host(const Tensors &tensors)
{
    Tensors made;
    for (const at::Tensor &one : tensors)
        made.push_back(on_host(one));
    return made;
}

Lists on_host(const Lists &lists)
{
    Lists made;
    for (const Tensors &one : lists)
        made.push_back(on_host(one));
    return made;
}

c10::intrusive_ptr<Work> done(const c10::intrusive_ptr<Work> &work, Tensors results)
{
    work->wait();
    return c10::make_intrusive<Done>(std::move(results));
}

c10::intrusive_ptr<Work> done(const c10::intrusive_ptr<Work> &work, const Lists &results)
{
    return done(work, results.empty() ? Tensors() : results[0]);
}

// host: the backend that does the work.
class Collectives final : public c10d::Backend
{
  public:
    explicit Collectives(const c10::intrusive_ptr<Backend> &host)
        : Backend(host->getRank(), host->getSize()), host(host)
    {
    }

    const std::string getBackendName() const override
    {
        return host->getBackendName();
    }

    void setSequenceNumberForGroup() override
    {
        host->setSequenceNumberForGroup();
    }

    uint64_t getSequenceNumberForGroup() override
    {
        return host->getSequenceNumberForGroup();
    }

    c10::intrusive_ptr<Work> broadcast(Tensors &tensors, const c10d::BroadcastOptions &how) override
    {
        Tensors own = on_host(tensors);
        return done(host->broadcast(own, how), tensors);
    }

    c10::intrusive_ptr<Work> allreduce(Tensors &tensors, const c10d::AllreduceOptions &how) override
    {
        Tensors own = on_host(tensors);
        return done(host->allreduce(own, how), tensors);
    }

    c10::intrusive_ptr<Work>
    allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &how) override
    {
        Tensors own = on_host(tensors);
        return done(host->allreduce_coalesced(own, how), tensors);
    }

    c10::intrusive_ptr<Work> reduce(Tensors &tensors, const c10d::ReduceOptions &how) override
    {
        Tensors own = on_host(tensors);
        return done(host->reduce(own, how), tensors);
    }

    c10::intrusive_ptr<Work> allgather(Lists &results, Tensors &given,
                                       const c10d::AllgatherOptions &how) override
    {
        Lists into = on_host(results);
        Tensors from = on_host(given);
        return done(host->allgather(into, from, how), results);
    }

    c10::intrusive_ptr<Work> _allgather_base(at::Tensor &result, at::Tensor &given,
                                             const c10d::AllgatherOptions &how) override
    {
        at::Tensor into = on_host(result), from = on_host(given);
        return done(host->_allgather_base(into, from, how), Tensors{result});
    }

    c10::intrusive_ptr<Work> gather(Lists &results, Tensors &given,
                                    const c10d::GatherOptions &how) override
    {
        Lists into = on_host(results);
        Tensors from = on_host(given);
        return done(host->gather(into, from, how), results);
    }

    c10::intrusive_ptr<Work> scatter(Tensors &results, Lists &given,
                                     const c10d::ScatterOptions &how) override
    {
        Tensors into = on_host(results);
        Lists from = on_host(given);
        return done(host->scatter(into, from, how), results);
    }

    c10::intrusive_ptr<Work> reduce_scatter(Tensors &results, Lists &given,
                                            const c10d::ReduceScatterOptions &how) override
    {
        Tensors into = on_host(results);
        Lists from = on_host(given);
        return done(host->reduce_scatter(into, from, how), results);
    }

    c10::intrusive_ptr<Work> _reduce_scatter_base(at::Tensor &result, at::Tensor &given,
                                                  const c10d::ReduceScatterOptions &how) override
    {
        at::Tensor into = on_host(result), from = on_host(given);
        return done(host->_reduce_scatter_base(into, from, how), Tensors{result});
    }

    c10::intrusive_ptr<Work> alltoall_base(at::Tensor &result, at::Tensor &given,
                                           std::vector<int64_t> &result_parts,
                                           std::vector<int64_t> &given_parts,
                                           const c10d::AllToAllOptions &how) override
    {
        at::Tensor into = on_host(result), from = on_host(given);
        return done(host->alltoall_base(into, from, result_parts, given_parts, how),
                    Tensors{result});
    }

    c10::intrusive_ptr<Work> send(Tensors &tensors, int rank, int tag) override
    {
        Tensors own = on_host(tensors);
        return host->send(own, rank, tag);
    }

    c10::intrusive_ptr<Work> recv(Tensors &tensors, int rank, int tag) override
    {
        Tensors own = on_host(tensors);
        return host->recv(own, rank, tag);
    }

    c10::intrusive_ptr<Work> recvAnysource(Tensors &tensors, int tag) override
    {
        Tensors own = on_host(tensors);
        return host->recvAnysource(own, tag);
    }

    c10::intrusive_ptr<Work> barrier(const c10d::BarrierOptions &how) override
    {
        return host->barrier(how);
    }

  private:
    const c10::intrusive_ptr<Backend> host;
};

// DistributedDataParallel wants to time its parts; here, when the host gets there.
class Timer final : public c10d::Timer
{
  public:
    std::optional<int64_t> measureDifference(Event start, Event end) override
    {
        return getTimeRef(end) - getTimeRef(start);
    }
};

} // namespace

void register_collectives()
{
    c10d::TimerRegistry()->Register(type(), [](c10::Device) -> std::unique_ptr<c10d::Timer> {
        return std::make_unique<Timer>();
    });
}

void use_collectives(const std::string &group)
{
    auto found = c10d::resolve_process_group(group);
    found->setBackend(type(), c10d::ProcessGroup::BackendType::CUSTOM,
                      c10::make_intrusive<Collectives>(found->getBackend(c10::kCPU)));
}

} // namespace emulated
