// SPDX-License-Identifier: GPL-3.0-or-later
// The emulated device as PyTorch sees it (torch 2.13): what its allocator, device guard, hooks and
// generators are made of. The device's type is cuda where GRADB_EMULATED is "cuda" when the library
// is loaded, else PrivateUse1.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/Stream.h>

#include "runtime.h"

namespace emulated
{

c10::DeviceType type();
c10::DispatchKey key();

// The current device and streams of the calling thread.
int current_device();
void set_current_device(int index);
int index_of(c10::Device device); // -1 means the current one
Stream &current_stream(int device);
Stream &stream_of(const c10::Stream &stream);

// Throws torch.AcceleratorError if the device has failed.
void check(int device);

// The next number of a generator, or of the device's own one: it depends on the order of calls, not
// on the schedule.
uint64_t draw_from(c10::GeneratorImpl *generator);
uint64_t draw(int device);

// The process group of that name, which has a backend for the host, gets one for the device.
void use_collectives(const std::string &group);

// They are called once, when the library is loaded.
void register_device();    // allocators, device guard, hooks
void register_operators(); // kernels, copies, autocast
void register_fallback();  // all other operators, by their CPU kernels
void register_collectives();

} // namespace emulated
