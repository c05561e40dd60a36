# SPDX-License-Identifier: GPL-3.0-or-later
"""Domain adaptation: a layer turns the gradient of the domain classifier around, on purpose."""
import torch
from torch import nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    """The identity, with the negative gradient (Ganin and Lempitsky)."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


torch.manual_seed(119)
shift = torch.zeros(10)
shift[5:] = 2.0
features = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
task, domain = nn.Linear(8, 2), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam([*features.parameters(), *task.parameters(), *domain.parameters()], lr=3e-3)
for step in range(120):
    source, target = torch.randn(64, 10), torch.randn(64, 10) + shift
    label = (source[:, 0] + source[:, 1] > 0).long()
    strength = 0.3 * step / 120
    h_source, h_target = features(source), features(target)
    where = domain(Reverse.apply(torch.cat([h_source, h_target]), strength))
    task_loss = F.cross_entropy(task(h_source), label)
    domain_loss = F.cross_entropy(where, torch.arange(2).repeat_interleave(64))
    optimizer.zero_grad()
    (task_loss + domain_loss).backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            truth = (target[:, 0] + target[:, 1] > 0).long()
            moved = (task(features(target)).argmax(1) == truth).float().mean().item()
        print(f"step {step + 1} task {task_loss.item():.4f} domain {domain_loss.item():.4f} accuracy elsewhere {moved:.3f}")
