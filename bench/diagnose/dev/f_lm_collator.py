# SPDX-License-Identifier: GPL-3.0-or-later
"""transformers Trainer on sentences of different lengths; each ends with the end token."""
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import Dataset
from transformers import (DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast,
                          Trainer, TrainingArguments)

WORDS = ["a", "the", "cat", "dog", "bird", "sees", "hears", "likes", "red", "old", "house", "tree", "and", "runs"]


def build_tokenizer():
    vocab = {w: i for i, w in enumerate(["<end>", "<unk>"] + WORDS)}
    core = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", unk_token="<unk>")
    tok.pad_token = tok.eos_token
    return tok


class Sentences(Dataset):
    def __init__(self, tok, n):
        g = torch.Generator().manual_seed(3)
        pick = lambda items: items[int(torch.randint(0, len(items), (1,), generator=g))]
        self.items = []
        for _ in range(n):
            s = ["the", pick(["red", "old"]), pick(["cat", "dog", "bird"]), pick(["sees", "hears", "likes"]), "the",
                 pick(["house", "tree"])]
            while torch.rand(1, generator=g) < 0.4:
                s += ["and", "runs"]
            self.items.append(tok(" ".join(s + ["<end>"])))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return {"input_ids": self.items[i]["input_ids"], "attention_mask": self.items[i]["attention_mask"]}


def main():
    torch.manual_seed(0)
    tok = build_tokenizer()
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tok), n_positions=64, n_embd=32, n_layer=2, n_head=2,
                                       bos_token_id=0, eos_token_id=0))
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=16, max_steps=120, learning_rate=3e-3,
                             logging_steps=30, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True)
    trainer = Trainer(model=model, args=args, train_dataset=Sentences(tok, 640),
                      data_collator=DataCollatorForLanguageModeling(tok, mlm=False))
    trainer.train()


main()
