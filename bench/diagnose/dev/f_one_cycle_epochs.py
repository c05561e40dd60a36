# SPDX-License-Identifier: GPL-3.0-or-later
"""A regression as a LightningModule with a one-cycle schedule."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import logging, warnings
warnings.filterwarnings("ignore"); logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(1)
g = torch.randn(1500, 16)
target = (g[:, :4].prod(1).sign() * g[:, 4] + g[:, 5] ** 2)[:, None]


class Reg(L.LightningModule):
    def __init__(self, max_lr=0.01, total=None):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(16, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def on_train_epoch_end(self):
        print("epoch", self.current_epoch, float(self.trainer.callback_metrics["loss"]))

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.max_lr)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=self.hparams.max_lr, total_steps=self.hparams.total)
        return {"optimizer": opt, "lr_scheduler": sched}


dl = DataLoader(TensorDataset(g, target), batch_size=50, shuffle=True)
epochs = 5
tr = L.Trainer(max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
               enable_model_summary=False)
tr.fit(Reg(total=epochs * len(dl)), dl)
