#!/usr/bin/env python3
"""What users who know other tools type at their first PyTorch session: sixty guesses.

OTHERS are the thirty that a newcomer typed (issue "First contact"); OURS were written down before anybody looked at
which commands there are. Neither list may be changed so that a row passes.
"""

OURS = {
    'gdb': ['where', 'f 1', 'i b', 'x/8f model.fc1.weight', 'ptype loss', 'whatis model.fc1.weight', 'info threads',
            'tbreak fc2', 'advance fc2', 'info registers', 'jump 20'],
    'pdb': ['w', 'll', 'pp model.fc1.weight.grad', 'args', 'loss.item()', 'torch.isnan(loss).any()'],
    'lldb': ['thread backtrace', 'frame variable', 'breakpoint list', 'po loss'],
    'W&B': ['watch model', 'summary', 'history loss', 'hist model.fc1.weight'],
    'tfdbg': ['run -f has_inf_or_nan', 'lt', 'ni fc1', 'pt model/fc1/weight'],
    'MindInsight': ['recheck'],
}
