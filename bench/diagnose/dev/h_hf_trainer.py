# SPDX-License-Identifier: GPL-3.0-or-later
"""transformers' Trainer on a tiny GPT-2 with accumulation, warm-up and evaluation."""
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Squares(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, 19, (count, 1), generator=g)
        self.rows = (start + 3 * torch.arange(16)) % 19

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "labels": self.rows[i]}


def main():
    set_seed(42)
    config = GPT2Config(vocab_size=19, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, max_steps=40, per_device_train_batch_size=8, gradient_accumulation_steps=2,
            learning_rate=5e-3, warmup_steps=5, lr_scheduler_type="cosine", logging_steps=10, save_strategy="no",
            report_to=[], use_cpu=True, disable_tqdm=True)
        trainer = Trainer(model=model, args=arguments, train_dataset=Squares(400, 0), eval_dataset=Squares(64, 1))
        trainer.train()
        print(f"evaluation loss {trainer.evaluate()['eval_loss']:.4f}")


if __name__ == "__main__":
    main()
