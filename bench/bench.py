"""What the benchmarks share: the build's tree, running programs in it, and a table with the goal beside each figure."""
import os
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
import harness  # noqa: E402  (the tree of the build's artefacts; waiting for the sidecar)

BUILD = harness.BUILD
harness.become_reaper()
scratch = tempfile.TemporaryDirectory(prefix='gputrace-bench-')


def built(name):
    """A program of bench/, or None."""
    path = os.path.join(BUILD, 'bench', name)
    return path if os.path.exists(path) else None


def run(command, env=None, timeout=600):
    """The standard output of a program that must succeed; the sidecar has ended when this returns."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(('GPUTRACE', 'SIMGPU_', 'LD_', 'GT_'))}
    variables.update({key: str(value) for key, value in (env or {}).items()})
    done = subprocess.run(list(map(str, command)), env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False)
    left = harness.wait_for_orphans(60)
    if done.returncode or left:
        sys.exit(f'bench: {" ".join(map(str, command))}: exit code {done.returncode}, left behind: {left}\n{done.stderr.decode(errors="replace")}')
    return done.stdout.decode()


class Table:
    """Rows of (what, figure, goal, kept?); a goal of '' is a figure to read, not to judge."""

    def __init__(self, title):
        self.title, self.rows = title, []

    def add(self, what, figure, goal='', kept=None):
        self.rows.append((what, figure, goal, '' if kept is None else 'kept' if kept else 'MISSED'))

    def show(self):
        widths = [max(len(row[i]) for row in [*self.rows, ('', 'figure', 'goal', '')]) for i in range(4)]
        print(f'\n{self.title}')
        print(f"  {'':{widths[0]}}  {'figure':>{widths[1]}}  {'goal':{widths[2]}}")
        for row in self.rows:
            print(f'  {row[0]:{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:{widths[2]}}  {row[3]}'.rstrip())
        sys.stdout.flush()
