# SPDX-License-Identifier: GPL-3.0-or-later
"""A LightningModule that tells rings apart, with validation, OneCycleLR and early stopping."""
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Rings(L.LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.ReLU(),
                                 nn.Linear(32, 3))

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        logits = self.net(x)
        self.log("valid_loss", F.cross_entropy(logits, y))
        self.log("accuracy", (logits.argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: " + " ".join(f"{k} {v:.4f}" for k, v in sorted(metrics.items())))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        steps = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.hparams.lr, total_steps=steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def rings(count):
    y = torch.randint(0, 3, (count,))
    angle = 6.2832 * torch.rand(count)
    x = torch.stack([angle.cos(), angle.sin()], dim=1) * (0.5 + y.unsqueeze(1))
    return TensorDataset(x + 0.1 * torch.randn(count, 2), y)


def main():
    L.seed_everything(3, verbose=False)
    trainer = L.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0,
                        callbacks=[EarlyStopping("valid_loss", patience=2)])
    train = DataLoader(rings(960), batch_size=64, shuffle=True)
    trainer.fit(Rings(lr=2e-2), train, DataLoader(rings(256), batch_size=256))


if __name__ == "__main__":
    main()
