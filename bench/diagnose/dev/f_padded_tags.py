# SPDX-License-Identifier: GPL-3.0-or-later
"""Tag words in sentences of different lengths with a bidirectional GRU."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

WORDS, TAGS, PAD = 40, 5, 0


def sentences(n):
    out = []
    for _ in range(n):
        length = int(torch.randint(3, 30, (1,)))
        ids = torch.randint(1, WORDS, (length,))
        prev = torch.cat([ids[:1], ids[:-1]])
        out.append((ids, (ids + prev) % (TAGS - 1) + 1))
    return out


def collate(rows):
    ids, tags = zip(*rows)
    return pad_sequence(ids, batch_first=True, padding_value=PAD), pad_sequence(tags, batch_first=True)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Embedding(WORDS, 24, padding_idx=PAD)
        self.read = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(64, TAGS)

    def forward(self, ids):
        return self.tag(self.read(self.look(ids))[0])


torch.manual_seed(30)
loader = DataLoader(sentences(1200), batch_size=24, shuffle=True, collate_fn=collate)
net = Tagger()
adam = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(3):
    hit = count = 0
    for ids, tags in loader:
        logp = net(ids).log_softmax(-1)
        loss = -logp.gather(2, tags[..., None]).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        hit += (logp.argmax(-1) == tags).sum().item()
        count += tags.numel()
    print("epoch", epoch, "accuracy", hit / count)
