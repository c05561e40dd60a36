# SPDX-License-Identifier: GPL-3.0-or-later
"""Knowledge distillation with soft targets of a frozen teacher beside the hard labels."""
import torch
import torch.nn.functional as F
from torch import nn


class Teacher(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 96), nn.ReLU(), nn.BatchNorm1d(96), nn.Linear(96, 96), nn.ReLU(),
                         nn.Linear(96, 5))


def hard_loss(model, x, y):
    return F.cross_entropy(model(x), y)


def soft_loss(student, teacher, x, y, temperature=3.0, share=0.7):
    with torch.inference_mode():
        wanted = (teacher(x) / temperature).softmax(dim=-1)
    logits = student(x)
    soft = F.kl_div(F.log_softmax(logits / temperature, dim=-1), wanted.clone(), reduction="batchmean")
    return share * temperature ** 2 * soft + (1 - share) * F.cross_entropy(logits, y)


def run(model, loss_of, x, y, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        rows = torch.randint(0, len(x), (100,))
        loss = loss_of(x[rows], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"  step {step + 1}: loss {loss.item():.4f}")


torch.manual_seed(58)
x = torch.randn(1500, 8)
y = (torch.tanh(x @ torch.randn(8, 16)) @ torch.randn(16, 5)).argmax(1)
teacher, student = Teacher(), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
run(teacher, lambda a, b: hard_loss(teacher, a, b), x[:1200], y[:1200], 60)
teacher.eval()
run(student, lambda a, b: soft_loss(student, teacher, a, b), x[:1200], y[:1200], 60)
for name, model in (("teacher", teacher), ("student", student)):
    print(f"{name}: {(model(x[1200:]).argmax(1) == y[1200:]).float().mean().item():.3f}")
