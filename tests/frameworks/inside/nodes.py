"""nodes.py PROGRAM [ARGUMENT...]: runs a PyTorch program, unchanged, in anomaly mode: PyTorch keeps the traceback at which each node of the backward
pass was made. [name, autograd's number, file, line of the innermost frame] of each goes to $GT_SAID/nodes-PID.json. Any Python since 3.8."""
import json
import os
import re
import runpy
import sys

import torch

FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')
said = []


def note(root):
    """All nodes that the root leads to."""
    seen, to_do = set(), [root]
    while to_do:
        node = to_do.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        frames = [FRAME.match(line) for line in node.metadata.get('traceback_', ())]
        frames = [frame for frame in frames if frame]
        if frames and hasattr(node, '_sequence_nr') and 0 <= node._sequence_nr() < 1 << 63:  # what sums gradients has none
            said.append([node.name(), node._sequence_nr(), frames[-1][1], int(frames[-1][2])])
        to_do += [function for function, _ in node.next_functions]


def main():
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    backward = torch.autograd.backward

    def noted(tensors, *arguments, **more):
        for tensor in (tensors,) if isinstance(tensors, torch.Tensor) else tensors:
            note(tensor.grad_fn)
        return backward(tensors, *arguments, **more)

    torch.autograd.backward = noted
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    runpy.run_path(sys.argv[0], run_name='__main__')
    with open(os.path.join(os.environ['GT_SAID'], 'nodes-%d.json' % os.getpid()), 'w', encoding='utf-8') as file:
        json.dump(said, file)


main()
