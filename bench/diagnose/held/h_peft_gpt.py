# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapt a tiny GPT-2 to another progression with peft's LoRA after a short pre-training."""
import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(4)


def rows(count, stride):
    return (torch.randint(0, 17, (count, 1)) + stride * torch.arange(12)) % 17


def train(model, stride, steps, lr):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=lr)
    model.train()
    for step in range(steps):
        ids = rows(32, stride)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 9:
            print(f"  step {step + 1}: loss {loss.item():.4f}")


config = GPT2Config(vocab_size=17, n_positions=12, n_embd=48, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config)
train(model, 2, 30, 5e-3)
lora = LoraConfig(task_type=TaskType.CAUSAL_LM, r=8, lora_alpha=32, lora_dropout=0.05,
                  target_modules=["c_attn", "c_fc", "c_proj"], fan_in_fan_out=True)
model = get_peft_model(model, lora)
model.print_trainable_parameters()
train(model, 3, 30, 1e-2)
