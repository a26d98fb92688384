# meson: timeout=300
# `gputrace report --html`: one file, from the tables of the report; in a browser every tab, with hostile names, without scripts, for everyone.
import base64
import hashlib

from pages import *

ATTACK = '"\'><img src=x onerror=globalThis.attacked=1></script><script>globalThis.attacked=2</script><!-- {{7*7}} ${globalThis.attacked=3} \u202egnp'


def trained():
    """The example's page."""
    return page_of(traced([program('train')], mode='run', output=scratch('out')).output)


def test_one_file_that_asks_nobody():
    path = trained()
    text = read(path)
    document = Document(text)
    report = json.loads(document.texts['gputrace-report'])
    check_equal(report, json.loads(gputrace('report', scratch('out'), '--json')[0]), 'what the page holds is what --json says')
    policy = [attributes['content'] for tag, attributes in document.elements if attributes.get('http-equiv') == 'Content-Security-Policy']
    check_equal(len(policy), 1, 'one policy')
    check(policy[0].startswith("default-src 'none';") and 'unsafe' not in policy[0], 'nothing is allowed but what is named', policy)
    for kind in ('script', 'style'):
        for name, content in document.texts.items():
            if not name.startswith(kind + ' '):
                continue
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            check(f"'sha256-{digest}'" in policy[0], f'the hash of {name} stands in the policy', policy)
    for tag, attributes in document.elements:
        for name in ('src', 'href', 'srcset', 'action', 'data'):
            value = attributes.get(name) or ''
            check(not value or value.startswith(('#', 'data:,')), f'<{tag} {name}> leads nowhere else', value)
    for work in ('Apache Software Foundation', 'Leon Sorokin', 'Baidu', 'Microsoft'):
        check(work in text, f'the licence of {work} is in the page')
    data = sum(len(document.texts[name]) for name in document.texts if name.startswith('gputrace-'))
    check(len(text) - data < 1_500_000, 'the page without its data is small', len(text), data)


def test_where_the_events_have_no_room():
    """They come from a file without a name; where none can be written, from a second reading: the same page."""
    run = traced([program('train')], mode='run', output=scratch('out'))
    command = [places.gputrace, 'report', run.output, '--format', 'html']
    usual, limited = (subprocess.run([*before, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), timeout=60)
                      for before in ([], ['prlimit', '--fsize=1000']))
    check_equal((usual.returncode, limited.returncode), (0, 0), f'both are written ({limited.stderr[:500]})')
    check(len(usual.stdout) > 500_000 and usual.stdout == limited.stdout, 'they are the same', len(usual.stdout), len(limited.stdout))


def test_every_section_is_in_the_tables_without_scripts():
    path = trained()
    text = read(path)
    for name, section in json.loads(gputrace('report', scratch('out'), '--json')[0])['sections'].items():
        check(f'<h2>{section["title"].replace("&", "&amp;").replace(">", "&gt;")}</h2>' in text, f'{name} has its table')
    browser('plain', path)


def test_tabs():
    browser('tabs', trained())


def test_life_spans_of_memory():
    pieces = r'''
import sys, time
sys.path.insert(0, sys.argv[1])
from driver import Driver
d = Driver()
held = []
for size in (6, 2, 9, 4):
    held.append(d.alloc(size << 20))
    time.sleep(0.02)
d('cuMemFree_v2', held[2])
time.sleep(0.02)
d('cuMemFree_v2', held[0])
'''
    browser('spans', page_of(traced([sys.executable, '-c', pieces, os.path.join(SOURCE, 'tests', 'e2e')], output=scratch('out')).output))


def test_search_and_sort():
    browser('search_and_sort', trained())


def test_what_is_saved_is_the_csv():
    path = trained()
    with open(scratch('api.csv'), 'w', encoding='utf-8', newline='') as file:
        file.write(gputrace('report', scratch('out'), '--section', 'api', '--format', 'csv')[0])
    browser('csv', path, scratch('api.csv'))


def test_panel_of_a_kernel():
    browser('kernel', page_of(traced([program('launches_shared')], output=scratch('out')).output))


def test_keyboard():
    browser('keyboard', trained())


def test_everyone_can_read_it():
    browser('axe', trained())


def test_narrow_windows_and_zoom():
    browser('narrow', trained())


def test_names_of_strangers_are_text():
    """A program whose file, arguments and threads are attacks: the document has not one element more."""
    kept = Document(read(trained()))
    folder = scratch('hostile')
    os.makedirs(folder)
    name = os.path.join(folder, ATTACK.replace('/', '\u2215'))
    shutil.copy(program('drv_linked'), name)
    path = page_of(traced([name, ATTACK], mode='run', output=scratch('hostile-out')).output)
    document = Document(read(path))
    known = {'table', 'thead', 'tbody', 'tr', 'th', 'td', 'p', 'strong', 'h1', 'h2', 'li', 'ol', 'code'}
    check_equal([tag for tag, _ in document.elements if tag not in known], [tag for tag, _ in kept.elements if tag not in known], 'the same elements')
    browser('hostile', path)


def test_every_text_of_the_data_hostile():
    """The same for every text that the data have: names of kernels, lines, calls, devices."""
    path = poisoned_page(lambda text: text + ATTACK)
    browser('hostile', path)


def test_what_is_saved_is_no_formula():
    """A spreadsheet would take a name that begins so for one; --format csv marks such cells in the same way."""
    browser('csv_of_formulas', poisoned_page(lambda text: '=1+1\u0007' + text))


def poisoned_page(change):
    """The example's page, whose data have each text changed."""
    path = trained()
    text = read(path)

    def poisoned(value, key=''):
        if isinstance(value, dict):
            return {one: poisoned(what, one) for one, what in value.items()}
        if isinstance(value, list):
            return [poisoned(what, key) for what in value]
        return change(value) if isinstance(value, str) and key not in KEYS else value

    old = Document(text).texts['gputrace-report']
    new = json.dumps(poisoned(json.loads(old)), ensure_ascii=False).replace('<', '\\u003c')
    check(old in text, 'the data stand in the document as they are')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text.replace(old, new))
    return path


# What the page takes as a word of the format, not as text: enumerations.
KEYS = {'key', 'unit', 'severity', 'schema', 'section', 'id'}

main()
