"""The page of a trace, as a document and in a browser."""
import html.parser

from harness import *

MODULES = os.path.join(os.environ.get('GT_SOURCE', SOURCE), 'build', 'page', 'work')


class Document(html.parser.HTMLParser):
    """What a browser would make of it: elements, inert blocks."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag in ('script', 'style'):
            self._open = attributes.get('id') or f'{tag} {len(self.texts)}'
            self.texts[self._open] = ''

    def handle_endtag(self, tag):
        if tag in ('script', 'style'):
            self._open = None

    def handle_data(self, data):
        if self._open:
            self.texts[self._open] += data


def page_of(*paths, options=()):
    """The page of these traces; skipped where the program was built without one."""
    path = scratch('report.html')
    code, out, err = finish(start([places.gputrace, 'report', '--html', path, *options, *paths], environment(LD_LIBRARY_PATH=None)))
    if b'built without the page' in err:
        skip('built without the page (tools/build_page)')
    check_equal((code, out), (0, b''), f'report --html ({err!r})')
    check(b'wrote ' in err, 'it says where', err)
    return path


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def browser(check_name, *given):
    """One check of tests/page/checks.mjs in Chromium; what it printed. Skipped where there is none."""
    chromium = shutil.which('chromium')
    if not chromium or not os.path.isdir(os.path.join(MODULES, 'node_modules', 'playwright-core')):
        skip('needs chromium, and tools/build_page --tests')
    env = environment(GT_PAGE_MODULES=MODULES, GT_CHROMIUM=chromium, LD_LIBRARY_PATH=None, HOME=scratch('home'))
    os.makedirs(scratch('home'), exist_ok=True)
    code, out, err = finish(start([node(), os.path.join(SOURCE, 'tests/page/checks.mjs'), check_name, *given], env), timeout=200)
    check(code == 0, f'{check_name} in the browser', (out + err).decode(errors='replace')[:3000])
    return out.decode()
