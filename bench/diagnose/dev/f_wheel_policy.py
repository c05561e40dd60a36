# SPDX-License-Identifier: GPL-3.0-or-later
"""PPO on a ring of states; in each the right action is the state modulo 3."""
import torch
import torch.nn as nn

torch.manual_seed(4)
N_S, N_A, H = 6, 3, 8


class Chain:
    """The right action in state s is s % 3; the next state is random."""

    def reset(self, n):
        self.s = torch.randint(0, N_S, (n,))
        return self.obs()

    def obs(self):
        return torch.eye(N_S)[self.s]

    def step(self, a):
        r = (a == self.s % N_A).float()
        self.s = torch.randint(0, N_S, (len(a),))
        return self.obs(), r


policy = nn.Sequential(nn.Linear(N_S, 32), nn.Tanh(), nn.Linear(32, N_A))
value = nn.Sequential(nn.Linear(N_S, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=3e-3)


def dist_of(net, s):
    return torch.distributions.Categorical(logits=net(s))


env = Chain()
for it in range(25):
    obs, acts, rews = [], [], []
    o = env.reset(16)
    for _ in range(H):
        with torch.no_grad():
            a = dist_of(policy, o).sample()
        o2, r = env.step(a)
        obs.append(o), acts.append(a), rews.append(r)
        o = o2
    obs, acts, rews = torch.cat(obs), torch.cat(acts), torch.cat(rews)
    for _ in range(4):
        for mb in torch.randperm(len(obs)).split(32):
            s, a, ret = obs[mb], acts[mb], rews[mb]
            old_logp = dist_of(policy, s).log_prob(a)
            logp = dist_of(policy, s).log_prob(a)
            v = value(s).squeeze(-1)
            adv = (ret - v).detach()
            ratio = (logp - old_logp).exp()
            pg = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
            loss = pg + 0.5 * (ret - v).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    print("iter", it, "reward", rews.mean().item(), "loss", loss.item())
