"""The page of a trace, as a document and in a browser, and served."""
import html.parser
import select
import socket

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


class View:
    """`gputrace view` of a run, with its address."""

    def __init__(self, *paths, options=(), variables=None, below=()):
        os.makedirs(scratch('home'), exist_ok=True)
        env = environment(**{'LD_LIBRARY_PATH': None, 'HOME': scratch('home'), 'XDG_CACHE_HOME': None, **(variables or {})})
        self.process = subprocess.Popen([*below, places.gputrace, 'view', '--no-browser', *options, *paths], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.address = self.process.stdout.readline().decode().strip()
        if not self.address and b'built without the page' in self.process.stderr.read():
            skip('built without the page (tools/build_page)')
        found = re.fullmatch(r'http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/', self.address)
        check(found, 'its address', self.address)
        self.port, self.token = int(found[1]), found[2]

    def told(self):
        """What it said on stderr before it waits for a page."""
        said = b''
        while not said.endswith(b'then open the address\n') and select.select([self.process.stderr], [], [], 10)[0]:
            said += os.read(self.process.stderr.fileno(), 4096)
        return said.decode()

    def connect(self):
        made = socket.create_connection(('127.0.0.1', self.port), timeout=20)
        return made

    def said(self, raw):
        """The answer to these bytes: (status, head, body); status 0: closed without one."""
        with self.connect() as to:
            try:
                to.sendall(raw)
            except OSError:
                pass
            got = b''
            try:
                while piece := to.recv(1 << 16):
                    got += piece
            except OSError:
                pass
        head, _, body = got.partition(b'\r\n\r\n')
        return (int(head.split()[1]) if head.startswith(b'HTTP/1.1 ') else 0), head.decode(), body

    def get(self, path, host=None, method='GET'):
        return self.said(f'{method} {path} HTTP/1.1\r\nHost: {host or f"127.0.0.1:{self.port}"}\r\n\r\n'.encode())

    def ended(self, seconds=20):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
