# SPDX-License-Identifier: GPL-3.0-or-later
"""Super resolution by sub-pixel convolution on smooth fields."""
import torch
import torch.nn as nn
import torch.nn.init as init
from torch.utils.data import DataLoader, Dataset


class Fields(Dataset):
    def __init__(self, n, size=16):
        g = torch.Generator().manual_seed(5)
        axis = torch.linspace(0, 1, size)
        k = torch.rand(n, 4, generator=g) * 6
        rows = torch.sin(k[:, :1, None] * axis[:, None] + k[:, 1:2, None])
        self.high = (rows * torch.cos(k[:, 2:3, None] * axis + k[:, 3:, None])).unsqueeze(1)
        self.low = nn.functional.avg_pool2d(self.high, 2)

    def __len__(self):
        return len(self.high)

    def __getitem__(self, i):
        return self.low[i], self.high[i]


class Net(nn.Module):
    def __init__(self, factor=2):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.conv3 = nn.Conv2d(16, factor ** 2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(factor)
        self.relu = nn.ReLU()
        for conv in (self.conv1, self.conv2):
            init.orthogonal_(conv.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)

    def forward(self, x):
        return self.shuffle(self.conv3(self.relu(self.conv2(self.relu(self.conv1(x))))))


torch.manual_seed(5)
loader = DataLoader(Fields(320), batch_size=32, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()
for epoch in range(6):
    total = 0.0
    for low, high in loader:
        optimizer.zero_grad()
        loss = criterion(model(low), high)
        loss.backward()
        optimizer.step()
        total += loss.item()
    mse = total / len(loader)
    print(f"Epoch {epoch} avg. loss {mse:.5f} PSNR {-10 * torch.log10(torch.tensor(mse)).item():.2f} dB")
