# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a tiny GPT-2 of transformers on arithmetic progressions modulo 23 and let it continue one."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
VOCAB, LENGTH = 23, 17


def progressions(count):
    start = torch.randint(0, VOCAB, (count, 1))
    stride = torch.randint(1, 4, (count, 1))
    return (start + stride * torch.arange(LENGTH)) % VOCAB


config = GPT2Config(vocab_size=VOCAB, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4,
                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
model.train()
for step in range(80):
    chunk = progressions(32)
    input_ids = chunk[:, :-1].contiguous()
    labels = chunk[:, 1:].contiguous()
    output = model(input_ids=input_ids, labels=labels)
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 20 == 19:
        print(f"step {step + 1}: loss {output.loss.item():.4f}")

model.eval()
test = progressions(50)
with torch.no_grad():
    guess = model(input_ids=test[:, :8]).logits[:, -1].argmax(-1)
print(f"next term right: {(guess == test[:, 8]).float().mean().item():.2f}")
