# SPDX-License-Identifier: GPL-3.0-or-later
"""TRL's SFTTrainer with LoRA of peft."""
import tempfile

import tiny
from datasets import Dataset
from peft import LoraConfig
from transformers import set_seed
from trl import SFTConfig, SFTTrainer

set_seed(3)
with tempfile.TemporaryDirectory() as folder:
    trainer = SFTTrainer(
        model=tiny.llama(), processing_class=tiny.tokenizer(),
        train_dataset=Dataset.from_list([{"text": tiny.sentence(row, 10)} for row in range(32)]),
        args=SFTConfig(output_dir=folder, max_steps=3, per_device_train_batch_size=2, gradient_accumulation_steps=2,
                       logging_steps=1, report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True, bf16=False,
                       max_length=32, gradient_checkpointing=False),
        peft_config=LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    trainer.train()
tiny.tell(trainer.model)
