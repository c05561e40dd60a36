# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics of support tickets of different lengths."""
import random
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD = 0


class Tickets(list):
    def __init__(self, n, rng):
        super().__init__()
        for _ in range(n):
            topic = rng.randrange(4)
            length = rng.randint(3, 24)
            words = [rng.randint(1, 60) if rng.random() < 0.75 else 61 + topic * 5 + rng.randrange(5)
                     for _ in range(length)]
            words[rng.randrange(length)] = 61 + topic * 5
            self.append((torch.tensor(words), topic))


def collate(batch):
    words, topics = zip(*batch)
    return pad_sequence(words, batch_first=True, padding_value=PAD), torch.tensor(topics)


class TopicModel(nn.Module):
    def __init__(self, vocab=81, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(24, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.classify = nn.Linear(dim, 4)

    def forward(self, words):
        x = self.embedding(words) + self.position(torch.arange(words.size(1)))
        return self.classify(self.encoder(x).mean(dim=1))


def epoch(model, loader, optimizer):
    seen = correct = 0
    for words, topics in loader:
        scores = model(words)
        loss = nn.functional.cross_entropy(scores, topics)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(topics)
        correct += (scores.argmax(1) == topics).sum().item()
    return correct / seen


if __name__ == "__main__":
    torch.manual_seed(9)
    tickets = Tickets(800, random.Random(9))
    model = TopicModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(tickets, batch_size=32, shuffle=True, collate_fn=collate)
    for e in range(6):
        print(e, epoch(model, loader, optimizer))
