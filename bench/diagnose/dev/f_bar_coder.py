# SPDX-License-Identifier: GPL-3.0-or-later
"""A variational coder of pictures of bars."""
import torch
from torch import nn
from torch.nn import functional as F

class VAE(nn.Module):
    def __init__(self, d=64, h=128, z=8):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc21 = nn.Linear(h, z)
        self.fc22 = nn.Linear(h, z)
        self.fc3 = nn.Linear(z, h)
        self.fc4 = nn.Linear(h, d)
    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)
    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)
    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))
    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar

def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(x, recon_x, reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD

def bars(n):
    img = torch.zeros(n, 8, 8)
    for i in range(n):
        k = int(torch.randint(0, 8, (1,)))
        if torch.rand(1) > 0.5:
            img[i, k] = 0.9
        else:
            img[i, :, k] = 0.9
    return (img + 0.05).view(n, 64)

torch.manual_seed(2)
data = bars(2000)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 5):
    train_loss = 0
    for x in data[torch.randperm(2000)].split(64):
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss = loss_function(recon, x, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(data)))
