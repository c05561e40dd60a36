# SPDX-License-Identifier: GPL-3.0-or-later
"""A Lightning module with a recurrent-free language model on a cyclic grammar."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH = 40, 24


class MixText(nn.Module):
    """Attention blocks of torch.nn on tokens plus learned places."""

    def __init__(self, width=32, depth=2):
        super().__init__()
        self.token = nn.Embedding(VOCAB, width)
        self.place = nn.Embedding(LENGTH, width)
        self.reads = nn.ModuleList(nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.end = nn.Linear(width, VOCAB)

    def forward(self, ids):
        x = self.token(ids) + self.place(torch.arange(ids.size(1), device=ids.device))
        for read, norm in zip(self.reads, self.norms):
            y = norm(x)
            x = x + read(y, y, y, need_weights=False)[0]
        return self.end(x)


class LitText(L.LightningModule):
    def __init__(self, rate=4e-3):
        super().__init__()
        self.save_hyperparameters()
        self.model = MixText()
        self.criterion = nn.CrossEntropyLoss()

    def _shared(self, batch, name):
        (ids,) = batch
        scores = self.model(ids[:, :-1])
        loss = self.criterion(scores.flatten(0, 1), ids[:, 1:].flatten())
        self.log(f"{name}_loss", loss)
        return loss

    def training_step(self, batch, index):
        return self._shared(batch, "train")

    def validation_step(self, batch, index):
        self._shared(batch, "val")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)}


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    follow = torch.randint(0, VOCAB, (VOCAB, 3), generator=torch.Generator().manual_seed(99))
    ids = torch.randint(0, VOCAB, (n, 1), generator=g)
    for _ in range(LENGTH):
        pick = torch.randint(0, 3, (n,), generator=g)
        ids = torch.cat([ids, follow[ids[:, -1], pick].unsqueeze(1)], 1)
    return TensorDataset(ids)


if __name__ == "__main__":
    L.seed_everything(7)
    trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(LitText(), DataLoader(corpus(800, 0), batch_size=16, shuffle=True),
                DataLoader(corpus(64, 1), batch_size=32))
    print({k: round(float(v), 3) for k, v in trainer.callback_metrics.items()})
