# SPDX-License-Identifier: GPL-3.0-or-later
"""TRL's GRPOTrainer: it generates, scores and trains."""
import tempfile

import tiny
from datasets import Dataset
from transformers import set_seed
from trl import GRPOConfig, GRPOTrainer

set_seed(3)


def reward(completions, **_):
    """How many different words."""
    return [float(len(set(text.split()))) for text in completions]


with tempfile.TemporaryDirectory() as folder:
    trainer = GRPOTrainer(
        model=tiny.llama(), reward_funcs=reward, processing_class=tiny.tokenizer(),
        train_dataset=Dataset.from_list([{"prompt": tiny.sentence(row, 4)} for row in range(16)]),
        args=GRPOConfig(output_dir=folder, max_steps=2, per_device_train_batch_size=4, num_generations=4,
                        max_completion_length=4, logging_steps=1, report_to="none", save_strategy="no", disable_tqdm=True,
                        use_cpu=True, bf16=False, gradient_checkpointing=False))
    trainer.train()
tiny.tell(trainer.model)
