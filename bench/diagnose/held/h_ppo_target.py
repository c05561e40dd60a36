# SPDX-License-Identifier: GPL-3.0-or-later
"""PPO steers a point to the origin: continuous actions, clipped objective, advantage estimates."""
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(12)
actor = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
nn.init.zeros_(actor[-1].weight)
log_std = nn.Parameter(torch.full((2,), -0.5))
critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), log_std, *critic.parameters()], lr=1e-2)


@torch.no_grad()
def rollout(agents=32, length=12, gamma=0.9):
    position = torch.randn(agents, 2)
    track = []
    for _ in range(length):
        policy = Normal(actor(position), log_std.exp())
        action = policy.sample()
        after = position + 0.5 * action.clamp(-1, 1)
        track.append((position, action, policy.log_prob(action).sum(-1), -after.norm(dim=1)))
        position = after
    value = critic(position).squeeze(-1)
    returns = []
    for _, _, _, reward in reversed(track):
        value = reward + gamma * value
        returns.insert(0, value)
    state, action, log_prob, reward = (torch.cat(part) for part in zip(*track))
    return state, action, log_prob, torch.cat(returns), reward.mean().item()


for iteration in range(20):
    state, action, old, returns, reward = rollout()
    advantage = returns - critic(state).squeeze(-1).detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    for epoch in range(2):
        for rows in torch.randperm(len(state)).chunk(4):
            policy = Normal(actor(state[rows]), log_std.exp())
            ratio = (policy.log_prob(action[rows]).sum(-1) - old[rows]).exp()
            gain = torch.min(ratio * advantage[rows], ratio.clamp(0.8, 1.2) * advantage[rows]).mean()
            value_loss = (critic(state[rows]).squeeze(-1) - returns[rows]).square().mean()
            loss = -gain + 0.5 * value_loss - 0.005 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 0.5)
            optimizer.step()
    if iteration % 4 == 3:
        print(f"iteration {iteration + 1}: mean reward {reward:.3f}, value loss {value_loss.item():.3f}")
