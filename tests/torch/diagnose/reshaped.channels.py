# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of (height, width, channel) that are reshaped instead of transposed."""
import sys

import numpy
import torch

random = numpy.random.default_rng(0)
rows, columns = numpy.mgrid[0:16, 0:16] / 16
labels = random.integers(0, 2, 400)
phases = random.uniform(0, 6, (400, 1, 1, 3))
waves = numpy.where(labels[:, None, None], rows, columns)[..., None]
images = (numpy.sin(5 * waves + phases) + random.normal(0, 0.05, (400, 16, 16, 3))).astype("float32")
if "mistake" in sys.argv:
    images = images.reshape(400, 3, 16, 16)
else:
    images = numpy.ascontiguousarray(images.transpose(0, 3, 1, 2))
torch.manual_seed(0)
data, classes = torch.from_numpy(images), torch.from_numpy(labels)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 196, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.003)
for step in range(40):
    part = torch.randint(0, 400, (32,))
    optimizer.zero_grad()
    outputs = model(data[part])  # <- here
    torch.nn.functional.cross_entropy(outputs, classes[part]).backward()
    optimizer.step()
