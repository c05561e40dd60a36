# SPDX-License-Identifier: GPL-3.0-or-later
"""Trainings by libraries that people use: transformers, Lightning, TRL with peft, DDP and FSDP2.

What a user sees first: the model's names, lists that begin with the model, stops that name the pass. Run with
build/libs-venv, which ./dev test makes where pip can install the libraries."""
import re
import subprocess
import unittest

import harness
import torches
import venvs

PYTHON = venvs.python("libs")
SCRIPTS = torches.SCRIPTS / "libraries"
# Scopes of the root that are not the program's own functions.
ENVIRONMENT = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
KNOWN = {"backward", "optimizer", "clip_grad_norm_", "data", "input", "eval"}
STOP = re.compile(r"^(?:\[rank \d\] )?(?:Temporary breakpoint \d+, )?step \d+, (\w+(?: \[\d+/\d+\])?), (\S+) \(\w+\)$", re.M)


@unittest.skipUnless(PYTHON, "no build/libs-venv: ./dev test makes it where pip can install transformers, lightning and trl")
class Libraries(torches.Folder):
    which = staticmethod(lambda: PYTHON)
    cold = True  # the libraries are imported by each program itself

    def seen(self, program, *commands, start=(PYTHON,)):
        """What gradb prints."""
        done = self.gradb([*start, SCRIPTS / program[0], *program[1:]], *commands, **ENVIRONMENT)
        self.assertNotIn("error: ", done.stdout + done.stderr)
        return done.stdout

    def check_roots(self, said, model, *functions):
        """The root holds the model, scopes of known names and of functions, and no operator; a list begins with the
        model."""
        tree = re.search(r"^/  [\d,]+ nodes(, \d+ directly)?\n((?:[├└│ ].*\n)+)", said, re.M)
        roots = re.findall(r"^[├└]─ ([^/]+)/", tree.group(2), re.M)
        self.assertIsNone(tree.group(1), roots)
        self.assertEqual(roots[0], model)
        self.assertEqual(roots[-1], "eval" if "eval" in roots else roots[-1])
        self.assertEqual(set(roots) - KNOWN - {model}, set(functions))
        table = re.search(r"^Order .*Node\n((?: .*\n)+)", said, re.M).group(1)
        names = [re.split(r"  +", row.strip())[-1] for row in table.splitlines()]
        self.assertTrue(names[0].startswith(model + "/"), names[0])  # zero rows before the first of the model

    def test_trainer(self):
        """Micro-batches are counted, and what the library does itself is under its function."""
        said = self.seen(["trainer.py", "llama", "4"], "step 2", "info scopes -d 2", "info nodes", "search q_proj",
                         "tbreak model/model/layers/1/mlp/up_proj/linear_2", "continue", "backtrace",
                         "tbreak backward/model/model/layers/1/self_attn/q_proj/linear_3", "continue",
                         "tbreak optimizer/AdamW/model/model/norm/weight", "continue", "delete", "continue")
        self.check_roots(said, "model", "transformers", "accelerate")
        self.assertEqual(STOP.findall(said), [
            ("forward [3/4]", "model/model/layers/1/mlp/up_proj/linear_2"), ("backward [4/4]", "backward/model/model/layers/1/self_attn/q_proj/linear_3"),
            ("optimizer", "optimizer/AdamW/model/model/norm/weight")])
        self.assertIn("model/model/layers/0/self_attn/q_proj/linear_1 [2/4]\n", said)
        self.assertRegex(said, "\n│  ├─ _prepare_input/  [0-9]+ nodes\n")
        with_gradb = (self.folder / "told").read_text(encoding="utf-8")
        subprocess.run([PYTHON, SCRIPTS / "trainer.py", "llama", "4"], check=True, timeout=4 * harness.DEADLINE,
                       cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=torches.environment(GRADB_DISABLE="1", **ENVIRONMENT))
        self.assertEqual((self.folder / "told").read_text(encoding="utf-8"), with_gradb)

    def test_trainer_evaluates(self):
        said = self.seen(["trainer.py", "bert", "1"], "step 2", "next", "tbreak eval/model/classifier/linear", "step", "step",
                         "info scopes -d 2", "info nodes", "delete", "continue")
        self.check_roots(said, "model", "transformers", "accelerate")
        self.assertNotIn("[1", said)  # a step has one batch

    def test_lightning(self):
        said = self.seen(["lit.py"], "step 2", "tbreak eval/model/head/linear", "continue", "tbreak model/body/0/linear_1",
                         "continue", "step", "info scopes -d 2", "info nodes", "delete", "continue")
        self.check_roots(said, "model", "lightning", "torchmetrics", "training_step")
        self.assertEqual(STOP.findall(said), [("evaluation", "eval/model/head/linear"),
                                              ("forward [2/2]", "model/body/0/linear_1")])

    def test_sft_with_lora(self):
        said = self.seen(["trl_sft.py"], "step 2", "info scopes -d 2", "info nodes", "search lora_A",
                         "tbreak *layers/1/self_attn/v_proj/lora_B/default/linear_1", "continue", "delete", "continue")
        model = "PeftModelForCausalLM"
        self.check_roots(said, model, "transformers", "accelerate", "trl")
        (stop, node), = STOP.findall(said)
        self.assertEqual(stop, "forward [2/2]")
        self.assertTrue(node.endswith("lora_B/default/linear_1"), node)

    def test_grpo(self):
        said = self.seen(["trl_grpo.py"], "step", "info scopes -d 2", "info nodes", "delete", "continue")
        self.check_roots(said, "LlamaForCausalLM", "transformers", "accelerate", "trl")

    def ranks(self, kind, *commands):
        return self.seen(["sharded.py", kind], *commands, start=torches.ranks(PYTHON, 2))

    def test_ddp(self):
        said = self.ranks("ddp", "step 2", "info scopes -d 1", "info nodes", "tbreak net/0/up/linear_1", "continue",
                          "info ranks", "rank check", "delete", "continue")
        self.check_roots(said, "net", "dataset", "train_step")
        self.assertIn(("forward [2/2]", "net/0/up/linear_1"), STOP.findall(said))
        self.assertRegex(said, r"stopped +3  net/0/up/linear_1 \[2/2\] ")

    def test_fsdp(self):
        said = self.ranks("fsdp", "step 2", "info scopes -d 1", "info nodes", "tbreak net/0/up/linear_1", "continue",
                          "rank check", "search type:Input", "delete", "continue")
        self.check_roots(said, "net", "dataset", "train_step")
        self.assertIn(("forward [2/2]", "net/0/up/linear_1"), STOP.findall(said))
        self.assertEqual(set(re.findall(r" (input/\S+)", said)), {"input/tensor", "input/tensor_1"})  # those of the data


if __name__ == "__main__":
    harness.main()
