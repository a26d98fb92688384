"""Reads what gputrace traced, by the analyzer that lies beside this package.

    import gputrace
    run = gputrace.open('gputrace-20261122-120000')      # a trace, a directory of traces; nothing: the newest one here
    run.section('kernels').to_pandas()                   # as `gputrace report --section kernels` has it
    run.events('kernels').to_arrow()                     # every single one, by `gputrace export --format parquet`

In a notebook a run shows itself as the page of `gputrace report --html`. Nothing of this package is in a traced process.
"""
from .reader import Error, Events, Run, Section, open, program

__all__ = ['Error', 'Events', 'Run', 'Section', 'open', 'program']
