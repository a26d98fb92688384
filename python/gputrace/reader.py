"""Reports and events as Python has them. Needs nothing but the program; pandas, Polars, Arrow where they are asked for."""
import glob
import html
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile


class Error(Exception):
    """What the program said against it."""


def program():
    """The path of the program that reads traces: the one that was installed with this package, else that of PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    beside = [os.path.join(sysconfig.get_path('scripts'), 'gputrace'), os.path.join(os.path.dirname(sys.executable), 'gputrace')]
    folder = here
    for _ in range(4):  # pip install --user, --target, --prefix: bin/ lies above lib/python3.x/site-packages/
        folder = os.path.dirname(folder)
        beside.append(os.path.join(folder, 'bin', 'gputrace'))
    for path in beside:
        if os.access(path, os.X_OK):
            return path
    found = shutil.which('gputrace')
    if not found:
        raise Error('the program gputrace was not found: neither beside this package nor in PATH')
    return found


def _said(*words):
    done = subprocess.run([program(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Error(done.stderr.decode(errors='replace').strip() or f'gputrace ended with {done.returncode}')
    return done.stdout


class Section:
    """A table of the report: `columns` (key, unit …) and `rows` (a dict each; None: not known)."""

    def __init__(self, name, said):
        self.name = name
        self.title = said['title']
        self.columns = said['columns']
        self.rows = said['rows']

    def to_dict(self):
        """{column: its values}"""
        return {column['key']: [row.get(column['key']) for row in self.rows] for column in self.columns}

    def to_pandas(self):
        import pandas
        return pandas.DataFrame(self.to_dict())

    def to_polars(self):
        import polars
        return polars.DataFrame(self.to_dict(), infer_schema_length=None)

    def to_arrow(self):
        import pyarrow
        return pyarrow.table(self.to_dict())

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __repr__(self):
        return f'<section {self.name}: {len(self.rows)} rows of {", ".join(column["key"] for column in self.columns)}>'


class Events:
    """A table of single events, as Parquet files that live as long as the run that they are of."""

    def __init__(self, name, folder):
        self.name = name
        self.files = sorted(glob.glob(os.path.join(glob.escape(folder), name, '*.parquet')))

    def to_arrow(self):
        import pyarrow
        import pyarrow.parquet
        return pyarrow.concat_tables([pyarrow.parquet.read_table(file) for file in self.files])

    def to_pandas(self):
        return self.to_arrow().to_pandas()

    def to_polars(self):
        import polars
        return polars.read_parquet(self.files)

    def __repr__(self):
        return f'<events {self.name}: {len(self.files)} files>'


class Run:
    """What was traced. `coverage`, `findings` and the names of `sections` are those of `gputrace report --json`."""

    def __init__(self, paths, options):
        self._words = [*paths, *options]
        self._said = json.loads(_said('report', *self._words, '--json'))
        self._folder = None

    @property
    def coverage(self):
        return self._said['coverage']

    @property
    def findings(self):
        return self._said['findings']

    @property
    def sections(self):
        return list(self._said['sections'])

    def section(self, name):
        said = self._said['sections'].get(name)
        if said:
            return Section(name, said)
        for absent in self.coverage['not_collected']:
            if absent['what'] == name:
                raise Error(f'section {name} is not in this trace: {absent["why"]}')
        raise Error(f'no section {name!r}: there are {", ".join(self.sections)}')

    def events(self, name):
        """kernels copies memsets graphs idle calls operations ranges processes: docs/exports.md has their columns."""
        if not self._folder:
            self._folder = tempfile.TemporaryDirectory(prefix='gputrace-events-')
            _said('export', *self._words, '--format', 'parquet', '-q', '-o', os.path.join(self._folder.name, 'events'))
        folder = os.path.join(self._folder.name, 'events')
        if name not in os.listdir(folder):
            raise Error(f'no events {name!r}: there are {", ".join(sorted(os.listdir(folder)))}')
        return Events(name, folder)

    def html(self):
        """The page, one document that needs no network."""
        return _said('report', *self._words, '--format', 'html', '-q').decode()

    def _repr_html_(self):
        return f'<iframe style="width:100%;height:40em;border:0" srcdoc="{html.escape(self.html())}"></iframe>'

    def __repr__(self):
        return f'<run of {self.coverage["processes"]} processes, {self.coverage["records"]} records: {len(self.findings)} findings>'


def open(*paths, rank=None, steps=None):
    """Traces, directories of traces; none: the newest directory gputrace-* here. `steps`: '5-9', from 1."""
    options = []
    if rank is not None:
        options += ['--rank', str(rank)]
    if steps is not None:
        options += ['--steps', str(steps)]
    return Run([os.fspath(path) for path in paths], options)
