# SPDX-License-Identifier: GPL-3.0-or-later
"""Supervised fine-tuning with TRL on prompts and completions; loss on the completion only."""
import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def make_tokenizer():
    words = ["<pad>", "<eos>", "<unk>", "after", "comes", "?", "."] + NUMBERS
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def main():
    set_seed(0)
    tokenizer = make_tokenizer()
    rows = [{"prompt": f"after {NUMBERS[i]} comes ?", "completion": f" {NUMBERS[(i + 1) % 10]} ."} for i in range(10)]
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=32, n_layer=1, n_head=2,
                        bos_token_id=1, eos_token_id=1, pad_token_id=0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = SFTConfig(output_dir=folder, max_steps=70, per_device_train_batch_size=10, learning_rate=1e-2,
                              logging_steps=10, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
                              max_length=32, bf16=False, gradient_checkpointing=False, dataloader_pin_memory=False)
        trainer = SFTTrainer(model=GPT2LMHeadModel(config), args=arguments,
                             train_dataset=Dataset.from_list(rows * 4), processing_class=tokenizer)
        trainer.train()


if __name__ == "__main__":
    main()
