# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the best of twelve slot machines by policy gradient with an entropy term."""
import torch
from torch.distributions import Categorical

torch.manual_seed(56)
MACHINES = 12
payoff = torch.linspace(0.0, 1.0, MACHINES)[torch.randperm(MACHINES)]
preference = (0.5 * torch.randn(MACHINES)).requires_grad_()
optimizer = torch.optim.SGD([preference], lr=0.5)
baseline, running = 0.5, 0.5
for pull in range(150):
    choice = Categorical(logits=preference)
    machine = choice.sample((16,))
    reward = payoff[machine] + 0.3 * torch.randn(16)
    policy_loss = -(choice.log_prob(machine) * (reward - baseline)).mean()
    entropy = choice.entropy().mean()
    loss = policy_loss + 1.0 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline += 0.1 * (reward.mean().item() - baseline)
    running += 0.1 * (reward.mean().item() - running)
    if pull % 30 == 29:
        print(f"pull {pull + 1}: reward {running:.3f}, entropy {entropy.item():.3f}, best machine pays 1.0")
