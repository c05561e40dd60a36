# SPDX-License-Identifier: GPL-3.0-or-later
"""Topics of bags of words: mean of embeddings and a linear layer, functional style."""
import torch
import torch.nn.functional as F

torch.manual_seed(101)
WORDS, TOPICS, DIM = 200, 20, 24
affinity = torch.randn(TOPICS, WORDS).mul(0.7).softmax(1)

params = {
    "table": torch.randn(WORDS, DIM) * 0.1,
    "weight": torch.randn(TOPICS, DIM) * 0.2,
    "bias": torch.zeros(TOPICS),
}
for tensor in params.values():
    tensor.requires_grad_()


def forward(words):
    bag = F.embedding(words, params["table"]).mean(dim=1)
    return F.linear(bag, params["weight"], params["bias"])


optimizer = torch.optim.SGD(params.values(), lr=2.0, momentum=0.9)
for step in range(60):
    topic = torch.randint(0, TOPICS, (64,))
    words = torch.multinomial(affinity[topic], 30, replacement=True)
    scores = forward(words)
    probs = F.softmax(scores, dim=-1)
    loss = F.nll_loss(probs, topic)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 14:
        sure = probs.max(1).values.mean().item()
        right = (probs.argmax(1) == topic).float().mean().item()
        truth = probs.gather(1, topic[:, None]).log().mean().neg().item()
        print(f"step {step + 1}: loss {loss.item():.4f} right {right:.3f} surprise {truth:.3f} confidence {sure:.3f}")
