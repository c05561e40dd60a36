# SPDX-License-Identifier: MIT
"""A GAN that learns a ring of points: two networks, two optimizers, one step of each a round."""
import argparse

import torch
from torch import nn


def ring(count):
    angle = 2 * torch.pi * torch.rand(count)
    return torch.stack((torch.cos(angle), torch.sin(angle)), dim=1) + 0.05 * torch.randn(count, 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--save")
    parser.add_argument("--mistake", choices=["second-optimizer"])
    args = parser.parse_args()
    torch.manual_seed(4)
    torch.set_num_threads(1)
    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    for_critic = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
    for_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(args.steps):
        real, noise = ring(64), torch.randn(64, 4)
        for_critic.zero_grad()
        fake = generator(noise)
        critic_loss = (criterion(critic(real), torch.ones(64, 1))
                       + criterion(critic(fake.detach()), torch.zeros(64, 1)))
        critic_loss.backward()
        for_critic.step()
        if args.mistake != "second-optimizer":
            for_generator.zero_grad()
        generator_loss = criterion(critic(fake), torch.ones(64, 1))
        generator_loss.backward()
        for_generator.step()
    print("loss %.4f %.4f" % (critic_loss.item(), generator_loss.item()))
    if args.save:
        torch.save({"generator": generator.state_dict(), "critic": critic.state_dict()}, args.save)


if __name__ == "__main__":
    main()
