# SPDX-License-Identifier: GPL-3.0-or-later
"""Proximal policy optimisation of a point that must come home."""
import torch, torch.nn as nn
from torch.distributions import Normal

class ActorCritic(nn.Module):
    def __init__(self, obs=2, act=2, hid=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, hid), nn.Tanh(), nn.Linear(hid, act))
        self.critic = nn.Sequential(nn.Linear(obs, hid), nn.Tanh(), nn.Linear(hid, 1))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))
    def dist(self, s):
        return Normal(self.actor(s), self.log_std.exp())

class PPO:
    def __init__(self, clip=0.2, epochs=4, gamma=0.95, lr=1e-3):
        self.ac = ActorCritic()
        self.opt = torch.optim.Adam(self.ac.parameters(), lr=lr)
        self.clip, self.epochs, self.gamma = clip, epochs, gamma

    @torch.no_grad()
    def rollout(self, n=32, horizon=16):
        s = torch.randn(n, 2)
        S, A, R = [], [], []
        for _ in range(horizon):
            a = self.ac.dist(s).sample()
            S.append(s); A.append(a)
            s = s + 0.3 * a
            R.append(-s.pow(2).sum(1))
        ret, G = [], torch.zeros(n)
        for r in reversed(R):
            G = r + self.gamma * G
            ret.insert(0, G)
        return torch.cat(S), torch.cat(A), torch.cat(ret), torch.stack(R).mean().item()

    def update(self, s, a, ret):
        adv = ret - self.ac.critic(s).squeeze(-1).detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        for _ in range(self.epochs):
            for idx in torch.randperm(len(s)).split(128):
                old = self.ac.dist(s[idx]).log_prob(a[idx]).sum(-1).detach()
                new = self.ac.dist(s[idx]).log_prob(a[idx]).sum(-1)
                ratio = (new - old).exp()
                s1 = ratio * adv[idx]
                s2 = ratio.clamp(1 - self.clip, 1 + self.clip) * adv[idx]
                policy_loss = -torch.min(s1, s2).mean()
                value_loss = (self.ac.critic(s[idx]).squeeze(-1) - ret[idx]).pow(2).mean()
                self.opt.zero_grad()
                (policy_loss + 0.5 * value_loss).backward()
                self.opt.step()
        return policy_loss.item(), value_loss.item()

torch.manual_seed(0)
agent = PPO()
for it in range(12):
    s, a, ret, mean_r = agent.rollout()
    pl, vl = agent.update(s, a, ret)
    print(f"iter {it:2d} reward {mean_r:.3f} policy {pl:.4f} value {vl:.3f}")
