"""What is run: catalogue.toml, a program a table. Its keys:

  file        the program, below tests/frameworks
  frameworks  names of locks (locks/NAME.txt) with which it runs; none: on a real GPU alone, since it goes by what the device computes
  arguments   its command line
  launcher    'torchrun': two processes, on two simulated devices
  env         variables; SIMGPU_* among them
  operations  true: what the framework's operations ran on the device is held against the truth
  quick       it belongs to `--quick`
  profiled    false: it is not run a third time under the framework's own profiler (it uses that itself, or starts processes of its own)
  backward    true: it is run once more, and the lines of its backward operations are held against PyTorch's own tracebacks
  own_cupti   true: the program takes CUPTI for itself, so that the trace need not have device times
  flops       false: its FLOPs are not held against the counter (which does not see them: fused encoder layers, algorithms that are tried; or
              changes what is run)
  expect      a regex that stdout must match, with gputrace and without: what a program found out by itself
  all_reduce  a regex whose group is, in stdout, the bytes that each process must reduce over all others
  steps       how many it makes, in each process
  stderr      false: what it says there are measured times
  timeout     seconds for each of its runs (300: several sessions on two cores)
"""
import dataclasses
import os
import tomllib

from environments import HERE


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    file: str
    frameworks: list
    arguments: list = dataclasses.field(default_factory=list)
    launcher: str = ''
    env: dict = dataclasses.field(default_factory=dict)
    operations: bool = False
    quick: bool = False
    profiled: bool = True
    flops: bool = True
    backward: bool = False
    own_cupti: bool = False
    stderr: bool = True
    expect: str = ''
    all_reduce: str = ''
    steps: int = 0
    timeout: int = 300

    @property
    def path(self):
        return os.path.join(HERE, self.file)


def programs():
    with open(os.path.join(HERE, 'catalogue.toml'), 'rb') as file:
        tables = tomllib.load(file)
    return [Program(name=name, **table) for name, table in tables.items()]
