# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct preference optimization of a small recurrent language model after a little fine-tuning."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
VOCAB, BOS, T = 30, 0, 12


class GRULM(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d)
        self.gru = nn.GRU(d, d, batch_first=True)
        self.head = nn.Linear(d, VOCAB)

    def forward(self, ids):
        return self.head(self.gru(self.emb(ids))[0])


def seq_logp(lm, ids):
    logits = lm(ids[:, :-1])
    return torch.gather(logits.log_softmax(-1), 2, ids[:, 1:, None]).squeeze(-1).sum(-1)


def pairs(n):
    good = torch.randint(1, 15, (n, T))        # people like small words
    bad = torch.randint(10, VOCAB, (n, T))
    good[:, 0] = bad[:, 0] = BOS
    return good, bad


policy = GRULM()
warm = torch.optim.Adam(policy.parameters(), 2e-3)
for _ in range(30):                              # a little SFT first
    ids = torch.cat(pairs(16))
    out = policy(ids[:, :-1])
    sft = F.cross_entropy(out.reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
    warm.zero_grad()
    sft.backward()
    warm.step()
print("sft loss", sft.item())

ref = policy.eval()
policy.train()
opt = torch.optim.AdamW(policy.parameters(), lr=1e-3)
beta = 0.1
for step in range(100):
    win, lose = pairs(32)
    pi_w, pi_l = seq_logp(policy, win), seq_logp(policy, lose)
    with torch.no_grad():
        ref_w, ref_l = seq_logp(ref, win), seq_logp(ref, lose)
    margin = (pi_w - ref_w) - (pi_l - ref_l)
    loss = -F.logsigmoid(beta * margin).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(f"dpo step {step} loss {loss.item():.4f} margin {margin.mean().item():.3f}")
