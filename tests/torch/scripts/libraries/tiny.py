# SPDX-License-Identifier: GPL-3.0-or-later
"""Tiny models with random weights, data and a tokenizer, made without a network."""
import torch
from torch.utils.data import Dataset

SIZES = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "max_position_embeddings": 64}


class Tokens(Dataset):
    """Rows of token numbers with a class each, or without one: then the labels are the tokens."""

    def __init__(self, rows, classes=0):
        self.ids = torch.randint(5, 64, (rows, 12), generator=torch.Generator().manual_seed(7))
        self.classes = classes

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "labels": int(ids.sum()) % self.classes if self.classes else ids}


def llama():
    """A causal language model."""
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(**SIZES, num_key_value_heads=2, pad_token_id=0, bos_token_id=2, eos_token_id=3))


def bert():
    """A classifier of three classes."""
    from transformers import BertConfig, BertForSequenceClassification
    return BertForSequenceClassification(BertConfig(**SIZES, num_labels=3))


def tokenizer():
    """One of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    words = ["<pad>", "<unk>", "<s>", "</s>"] + ["w%d" % number for number in range(60)]
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", bos_token="<s>",
                                   eos_token="</s>")


def sentence(row, words):
    """Words of that tokenizer."""
    return " ".join("w%d" % ((row * 7 + place * 3) % 60) for place in range(words))


def tell(model):
    """Writes what gradb must not change: a number that depends on all weights."""
    with open("told", "w", encoding="utf-8") as file:
        file.write(repr(sum(float(parameter.detach().double().sum()) for parameter in model.parameters())))
