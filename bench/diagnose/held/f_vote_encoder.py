# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the first token of a sequence repeated later on? A transformer reads the answer at its first position."""
import torch
from torch import nn

torch.manual_seed(52)
VOCAB, LENGTH, BATCH = 10, 6, 64

embed = nn.Embedding(VOCAB, 32)
places = nn.Parameter(0.1 * torch.randn(LENGTH, 32))
layer = nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, dropout=0.0)
encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
readout = nn.Linear(32, 1)
parameters = [*embed.parameters(), places, *encoder.parameters(), *readout.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)

accuracy = 0.5
for step in range(1, 151):
    tokens = torch.randint(0, VOCAB, (BATCH, LENGTH))
    force = torch.rand(BATCH) < 0.2
    tokens[force, torch.randint(1, LENGTH, (int(force.sum()),))] = tokens[force, 0]
    repeated = (tokens[:, 1:] == tokens[:, :1]).any(1).float()

    h = encoder(embed(tokens) + places)
    logit = readout(h[:, 0]).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logit, repeated)

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    accuracy = 0.95 * accuracy + 0.05 * ((logit > 0).float() == repeated).float().mean().item()
    if step % 30 == 0:
        print(f"step {step:3d}: loss {loss.item():.4f}, running accuracy {accuracy:.3f}")
