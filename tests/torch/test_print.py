# SPDX-License-Identifier: GPL-3.0-or-later
"""dprintf in a PyTorch run: prints without stopping, exactly what the script prints itself, and changes nothing."""
import re
import subprocess

import harness
import torches

TRAIN = """
import hashlib
import torch
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 6):
    hidden = net[1](net[0](torch.randn(2, 4)))
    print("h", step, "%.9g %.9g" % (float(hidden.detach().double().mean()), float(hidden.detach()[1, 2])))
    loss = net[2](hidden).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("l %.9g" % float(loss.detach()))
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest(), torch.rand(1))
"""


@torches.both
class Print(torches.Folder):
    def test_prints_and_continues(self):
        program = [self.python, self.write("train.py", TRAIN)]
        done = self.gradb(program, "dprintf type:relu,\"h %d %.9g %.9g\\n\",step,mean,.[1,2]",
                          "dprintf type:relu,in0[0],\"text\" if step == 2", "dprintf type:mean,\"%.9g\",.",
                          "step 5", "info breakpoints", "continue", "info log -a")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        printed = re.findall(r"^h \d.*$", done.stdout, re.M)
        self.assertEqual(len(printed), 10, done.stdout)  # five of dprintf, five of the script's log
        for ours, own in zip(printed[:5], printed[5:]):
            ours, own = ours.split(), own.split()
            self.assertEqual((ours[1], ours[3]), (own[1], own[3]))
            self.assertAlmostEqual(float(ours[2]), float(own[2]), places=6)
        self.assertEqual(len(re.findall(r"^Tensor\(shape=\[3\], dtype=Float32, value=\[.*\]\)\ntext$", done.stdout, re.M)),
                         1)
        losses = re.findall(r"^l (.*)$", done.stdout, re.M)
        self.assertEqual(len(losses), 5)
        for loss in losses:
            self.assertEqual(done.stdout.count("\n%s\n" % loss), 1, done.stdout)
        self.assertIn("already hit 5 times", done.stdout)
        digest = re.search(r"^\w{64} tensor.*$", done.stdout, re.M).group()
        bare = subprocess.run(program, capture_output=True, text=True, timeout=harness.DEADLINE, check=True,
                              env=torches.environment(GRADB_DISABLE="1"))
        self.assertIn(digest, bare.stdout)


if __name__ == "__main__":
    harness.main()
