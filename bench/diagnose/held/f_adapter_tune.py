# SPDX-License-Identifier: GPL-3.0-or-later
"""Tune a small classifier for a new task with peft's LoRA."""
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(20, 64)
        self.second = nn.Linear(64, 64)
        self.score = nn.Linear(64, 5)

    def forward(self, x):
        return self.score(F.gelu(self.second(F.gelu(self.first(x)))))


torch.manual_seed(10)
x = torch.randn(600, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
lora = LoraConfig(r=8, lora_alpha=16, target_modules=["first", "second", "score"], lora_dropout=0.0)
model = get_peft_model(model, lora)
model.print_trainable_parameters()

for step in range(60):
    rows = torch.randint(0, 500, (64,))
    loss = F.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 20 == 19:
        with torch.no_grad():
            accuracy = (model(x[500:]).argmax(1) == y[500:]).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, accuracy {accuracy:.3f}")
