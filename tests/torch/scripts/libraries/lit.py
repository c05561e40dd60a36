# SPDX-License-Identifier: GPL-3.0-or-later
"""Lightning, with validation, clipped gradients and two micro-batches."""
import tempfile

import lightning
import tiny
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    """A classifier."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, _number):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _number):
        self.log("accuracy", (self(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


lightning.seed_everything(3)
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
model = Net()
with tempfile.TemporaryDirectory() as folder:
    lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0,
                      accumulate_grad_batches=2, default_root_dir=folder).fit(
                          model, DataLoader(data, 8, shuffle=True), DataLoader(data, 32))
tiny.tell(model)
