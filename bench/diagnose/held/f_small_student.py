# SPDX-License-Identifier: GPL-3.0-or-later
"""Distil a wide network into a narrow one."""
import torch
import torch.nn.functional as F
from torch import nn

T = 2.0


def mlp(width):
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 6))


def train_teacher(model, x, y):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(50):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def distil(teacher, student, x):
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    for step in range(60):
        rows = torch.randint(0, len(x), (128,))
        with torch.no_grad():
            teacher_logits = teacher(x[rows])
        student_logits = student(x[rows])
        soft = F.kl_div(F.softmax(student_logits / T, dim=1), F.softmax(teacher_logits / T, dim=1),
                        reduction="batchmean") * T * T
        optimizer.zero_grad()
        soft.backward()
        optimizer.step()
        if step % 20 == 19:
            agree = (student_logits.argmax(1) == teacher_logits.argmax(1)).float().mean().item()
            print(f"step {step + 1}: distillation loss {soft.item():.4f}, agrees with the teacher {agree:.3f}")


torch.manual_seed(55)
x = torch.randn(800, 10)
y = (x @ torch.randn(10, 6) + (x ** 2) @ torch.randn(10, 6) * 0.3).argmax(1)
teacher = train_teacher(mlp(128), x, y)
student = mlp(12)
distil(teacher, student, x)
for name, model in (("teacher", teacher), ("student", student)):
    print(f"{name} accuracy {(model(x).argmax(1) == y).float().mean().item():.3f}")
