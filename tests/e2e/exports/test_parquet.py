# meson: timeout=200
# The export in Parquet, by DuckDB and by Arrow; `gputrace query` is DuckDB over it.
from exports_against import *
from harness import *

DUCKDB = '''
import json, sys
import duckdb
for query in sys.argv[2:]:
    print(json.dumps([list(row) for row in duckdb.sql(query.replace('@', sys.argv[1] + '/')).fetchall()], default=str))
'''
ARROW = '''
import json, os, sys
import pyarrow.parquet as parquet
table = parquet.read_table(sys.argv[1] + '/kernels')
schema = {field.name: str(field.type) for field in table.schema}
print(json.dumps([table.num_rows, sum(table.column('duration_ns').to_pylist()), schema,
                  sorted(set(table.column('name').to_pylist())), sum(value is None for value in table.column('flow_id').to_pylist())]))
file = parquet.ParquetFile(sys.argv[1] + '/kernels/' + sorted(os.listdir(sys.argv[1] + '/kernels'))[0])
columns = [file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns)]
print(json.dumps({column.path_in_schema: column.has_dictionary_page for column in columns}))
'''

# What tests/programs/exports/parquet_numbers.cpp writes, by its formula; the encodings of what it wrote.
NUMBERS = '''
import json, sys
import duckdb
import numpy as np
import pyarrow.parquet as parquet


def written(rows):
    row = np.arange(rows, dtype=np.uint64)
    mixed = (row + np.uint64(1)) * np.uint64(0x9e3779b97f4a7c15) ^ row << np.uint64(17)
    bits = [mixed >> np.uint64(64 - width) if width else np.zeros_like(row) for width in range(65)]
    for width in range(65):
        rare = np.cumsum(np.where(row % np.uint64(997) == 0, bits[width], bits[3]), dtype=np.uint64).view(np.int64)
        yield f'w{width}', np.cumsum(bits[width], dtype=np.uint64).view(np.int64)
        yield f'j{width}', rare
        yield f'o{width}', rare[row % np.uint64(7) != 0]


wrong = []
for path in sys.argv[1:]:
    file = parquet.ParquetFile(path)
    arrow, ducks = file.read(), duckdb.sql(f"SELECT * FROM '{path}'").fetchnumpy()
    for name, values in written(file.metadata.num_rows):
        by_arrow = arrow.column(name).drop_null().to_numpy()
        by_duckdb = ducks[name].compressed() if isinstance(ducks[name], np.ma.MaskedArray) else ducks[name]
        wrong += [f'{path}: {name} by {who}' for who, told in (('arrow', by_arrow), ('duckdb', by_duckdb)) if not np.array_equal(told, values)]
group = file.metadata.row_group(0)
columns = [group.column(i) for i in range(group.num_columns)]
print(json.dumps([file.metadata.num_row_groups, wrong, {column.path_in_schema: [column.encodings[-1], column.compression] for column in columns}]))
'''


def python(text, *words):
    done = subprocess.run([reader('python', 'bin', 'python'), '-c', text, *words], capture_output=True, timeout=120, check=False)
    check(done.returncode == 0, 'it is read', done.stderr.decode()[-2000:])
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def duckdb(folder, *queries):
    return python(DUCKDB, folder, *queries)


def ours(path, *options):
    return exported(path, 'parquet', scratch('x.parquet'), *options)


def test_sums_are_those_of_the_report():
    for number, path in enumerate(KEPT):
        folder = exported(path, 'parquet', scratch(f'{number}.parquet'))
        kernels, calls, copies, memsets, graphs, joined = duckdb(
            folder, "SELECT name, SUM(duration_ns)::BIGINT FROM '@kernels/*.parquet' GROUP BY name",
            "SELECT level, name, COUNT(*), SUM(end_ns - begin_ns)::BIGINT FROM '@calls/*.parquet' GROUP BY ALL",
            "SELECT COUNT(*), COALESCE(SUM(bytes), 0)::BIGINT FROM '@copies/*.parquet'", "SELECT COUNT(*), COALESCE(SUM(bytes), 0)::BIGINT FROM '@memsets/*.parquet'",
            "SELECT COUNT(*) FROM '@graphs/*.parquet'",
            "SELECT COUNT(*), MIN(k.begin_ns - c.begin_ns)::BIGINT FROM '@kernels/*.parquet' k JOIN '@calls/*.parquet' c USING (process_id, flow_id)")
        check_equal(dict(map(tuple, kernels)), kernels_of_report(path), f'{path}: kernels by name')
        check_equal({(level, name): (count, nanos) for level, name, count, nanos in calls}, calls_of_report(path), f'{path}: calls')
        records = device_records(path)
        check_equal(copies, [[records['DeviceCopy'], records['DeviceCopy bytes']]], f'{path}: copies')
        check_equal(memsets, [[records['DeviceMemset'], records['DeviceMemset bytes']]], f'{path}: memsets')
        check_equal(graphs, [[records['DeviceGraph']]], f'{path}: graphs')
        check(joined[0][0] > 0 and joined[0][1] > 0, f'{path}: kernels join their calls, which began before', joined)


def test_arrow_reads_it():
    path = KEPT[0]
    [[rows, nanos, schema, names, without], dictionary] = python(ARROW, ours(path))
    wanted = kernels_of_report(path)
    check_equal((rows, nanos, names), (device_records(path)['DeviceKernel'], sum(wanted.values()), sorted(wanted)), 'kernels')
    check_equal({schema[name] for name in ('begin_ns', 'stream_id', 'flow_id')}, {'int64'}, 'signed numbers')
    check_equal((schema['name'], schema['collective'], schema['grid_x'], without), ('string', 'bool', 'int32', 0), 'types')
    check_equal([dictionary[name] for name in ('name', 'device_id', 'registers', 'begin_ns', 'collective')], [True, True, True, False, False], 'near numbers by dictionary')


def test_a_file_a_process():
    path = KEPT[2]
    folder = ours(path)
    check_equal({len(os.listdir(os.path.join(folder, table))) for table in os.listdir(folder)}, {2}, 'a file a process')
    ranks, = duckdb(folder, "SELECT DISTINCT p.rank FROM '@kernels/*.parquet' JOIN '@processes/*.parquet' p USING (process_id) ORDER BY 1")
    check_equal(ranks, [['0'], ['1']], 'ranks')
    code, _, err = gputrace('export', path, '--format', 'parquet', '-o', folder, rc=None)
    check(code == 1 and 'there already' in err, 'a folder that is there stays', code, err)


def test_many_rows():
    """More than one row group; every value is there, in its order."""
    run = traced([program('streams')], {'GPUTRACE_BUFFER': '64M'}) if os.environ.get('GT_FULL') else None
    path = run.output if run else os.path.join(SOURCE, 'tests', 'corpus', 'kept', 'numbers_are_those_of_the_samples')
    folder = ours(path)
    rows, = duckdb(folder, "SELECT begin_ns, end_ns, name FROM '@calls/*.parquet'")
    with open(exported(path, 'csv', scratch('x.csv')), encoding='utf-8', newline='') as file:
        wanted = [[int(row['begin_ns']), int(row['end_ns']), row['name']] for row in __import__('csv').DictReader(file) if row['kind'] == 'call']
    check_equal(len(rows), len(wanted), 'calls')
    check(rows == wanted, 'the same, in the same order')


def test_numbers_of_each_width():
    paths = [scratch(f'{rows}.parquet') for rows in (1, 2, 32, 33, 128, 129, 130, 5000, 131072 + 131)]
    for path in paths:
        subprocess.run([program('parquet_numbers'), path, os.path.basename(path).split('.')[0]], check=True)
    (groups, wrong, encodings), = python(NUMBERS, *paths)
    check_equal((groups, wrong), (2, []), 'the last has two row groups; each is read as it was written')
    check_equal([encodings[name] for name in ('w20', 'j60', 'o60', 'w60')], 3 * [['DELTA_BINARY_PACKED', 'UNCOMPRESSED']] + [['PLAIN', 'ZSTD']],
                'what follows closely by its distance, the rest as it is')


def only(name, target):
    """An environment in whose PATH lies nothing but that."""
    folder = scratch('only-' + name)
    os.makedirs(folder)
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\nexec {target} "$@"\n')
    os.chmod(os.path.join(folder, name), 0o755)
    return {'PATH': folder}


def check_query(env):
    path = KEPT[0]
    query = 'SELECT name, SUM(duration_ns)::BIGINT AS ns FROM kernels GROUP BY name ORDER BY ns DESC'
    wanted = kernels_of_report(path)
    said = json.loads(gputrace('query', query, path, '--json', env=env)[0])
    check_equal({row['name']: row['ns'] for row in said}, wanted, 'as JSON')
    lines = gputrace('query', query, path, '--csv', env=env)[0].splitlines()
    check_equal((lines[0], len(lines) - 1), ('name,ns', len(wanted)), 'as CSV')
    text = gputrace('query', query, path, env=env)[0]
    check('ns' in text and str(max(wanted.values())) in text.replace(',', ''), 'as a table', text)
    shutil.rmtree(scratch('x.parquet'), ignore_errors=True)
    of_folder = json.loads(gputrace('query', query, ours(path), '--json', env=env)[0])
    check_equal(of_folder, said, 'of a folder that export made')
    code, _, err = gputrace('query', 'SELECT * FROM nothing', path, rc=None, env=env)
    check(code == 1 and 'nothing' in err, 'a mistake', code, err)


def test_query_by_the_module():
    check_query(only('python3', reader('python', 'bin', 'python')))


def test_query_by_the_program():
    check_query(only('duckdb', reader('python', 'bin', 'duckdb')))


def test_query_without_duckdb():
    code, out, err = gputrace('query', 'SELECT 1', KEPT[0], rc=None, env={'PATH': scratch('empty')})
    check(code == 1 and not out and 'pip install duckdb' in err, 'one line says how', code, err)
    check_equal(gputrace('query', rc=None)[0], 2, 'no query')
    check_equal(gputrace('query', 'SELECT 1', scratch('none'), rc=None)[0], 3, 'no trace')


main()
