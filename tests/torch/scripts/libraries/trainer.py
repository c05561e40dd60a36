# SPDX-License-Identifier: GPL-3.0-or-later
"""trainer.py bert|llama MICRO: transformers' Trainer, with evaluations."""
import sys
import tempfile

import tiny
from transformers import Trainer, TrainingArguments, set_seed

name, micro = sys.argv[1], int(sys.argv[2])
set_seed(3)
model, classes = getattr(tiny, name)(), 3 if name == "bert" else 0
with tempfile.TemporaryDirectory() as folder:
    Trainer(model=model, train_dataset=tiny.Tokens(64, classes), eval_dataset=tiny.Tokens(8, classes), args=TrainingArguments(
        output_dir=folder, max_steps=4, per_device_train_batch_size=2, gradient_accumulation_steps=micro,
        eval_strategy="steps", eval_steps=2, logging_steps=1, report_to="none", save_strategy="no", disable_tqdm=True,
        use_cpu=True)).train()
tiny.tell(model)
