# meson: timeout=300
# gputrace view: who may ask and who may not, by plain sockets; its end; and in Chromium the events of a time that are fetched when one comes near.
import socket

from device_truth import *
from pages import *

LEFT_ALONE = 3  # seconds after which nobody is taken to load the page anew


def traced_program():
    return traced([program('train')], mode='run', output=scratch('out')).output


def test_the_page_for_those_who_know_the_token():
    out = traced_program()
    with View(out) as view:
        status, head, body = view.get(f'/{view.token}/')
        check_equal(status, 200, 'the page')
        for line in ('Cache-Control: no-store', 'X-Content-Type-Options: nosniff', 'Referrer-Policy: no-referrer', 'X-Frame-Options: DENY', 'Connection: close'):
            check(line in head, line, head)
        page = Document(body.decode())
        policy = next(one['content'] for tag, one in page.elements if one.get('http-equiv') == 'Content-Security-Policy')
        check(policy.startswith("default-src 'none'; connect-src 'self'; script-src 'sha256-"), 'it may ask nobody else', policy)
        file = Document(read(page_of(out)))
        check_equal(page.texts['gputrace-report'], file.texts['gputrace-report'], 'the report of the page in a file')
        check('connect-src' not in read(page_of(out)), 'the page in a file asks nobody')
        check_equal(view.get(f'/{view.token}/', host=f'localhost:{view.port}')[0], 200, 'by its other name')
        status, _, body = view.get(f'/{view.token}/events?from=0&to=100000000000')
        said = json.loads(body)
        whole = json.loads(page.texts['gputrace-events'])
        check_equal((status, said['events']['left_out'], [one['events'] for one in said['events']['tracks']]), (200, 0, [one['events'] for one in whole['tracks']]), 'all events')


def test_a_part_of_the_run():
    """Every table of some steps, or of a time, as the report of those has them; the events beside them are the whole run's."""
    out = traced_program()
    with View(out) as view:
        whole = Document(view.get(f'/{view.token}/')[2].decode())
        for query, options, words in (('steps=5-9', ('--steps', '5-9'), 'steps 5-9'), ('from=2000000&to=9000000', ('--from', '2ms', '--to', '9ms'), '2.000 ms to 9.000 ms')):
            status, _, body = view.get(f'/{view.token}/?{query}')
            check_equal(status, 200, query)
            page = Document(body.decode())
            wanted = json.loads(gputrace('report', out, '--json', *options)[0])
            said = json.loads(page.texts['gputrace-report'])
            for section in ('overview', 'steps', 'kernels', 'idle-causes', 'api', 'copies'):
                check_equal(said['sections'].get(section), wanted['sections'].get(section), f'{query}: {section}')
            check(said['sections']['kernels'] != json.loads(whole.texts['gputrace-report'])['sections']['kernels'], 'not those of the whole run')
            check_equal(json.loads(page.texts['gputrace-page'])['range'], words, 'it says what it shows')
            check_equal(page.texts['gputrace-events'], whole.texts['gputrace-events'], 'events')
        for query, status in (('steps=9-5', 400), ('steps=', 400), ('steps=1e9', 400), ('from=5&to=5', 400), ('from=5', 400), ('to=x&from=1', 400), ('steps=900-', 400), ('else=1', 400)):
            check_equal(view.get(f'/{view.token}/?{query}')[0], status, query)
        check_equal(view.get(f'/{view.token}/')[0], 200, 'and still there')


def test_steps_are_chosen_in_the_browser():
    out = traced_program()
    with View(out) as view:
        said = json.loads(browser('chosen', view.address, page_of(out)))
    wanted = json.loads(gputrace('report', out, '--json', '--steps', '5-9')[0])['sections']
    check_equal(said['steps'], [5, 6, 7, 8, 9], 'steps')
    check_equal(said['launches'], sum(row['launches'] for row in wanted['kernels']['rows']), 'launches')


def test_nobody_else():
    with View(traced_program()) as view:
        for path, status in (('/', 403), (f'/{view.token}', 403), ('/events', 403), (f'/{view.token[:-1]}{"0" if view.token[-1] != "0" else "1"}/', 403), (f'/{view.token}0/', 403),
                             (f'/{view.token.upper()}/' if view.token.upper() != view.token else '/x/', 403), (f'/{view.token}/nothing', 404), (f'/{view.token}/../../etc/passwd', 404),
                             (f'/{view.token}/events', 400), (f'/{view.token}/events?from=5&to=5', 400), (f'/{view.token}/events?from=-&to=1', 400), (f'/{view.token}/events?from=0x1&to=2', 400),
                             (f'/{view.token}/events?from=1&to=99999999999999999999', 400)):
            check_equal(view.get(path)[0], status, path)
        for host in (f'evil.example:{view.port}', '127.0.0.1', f'127.0.0.1:{view.port + 1}', f'127.0.0.1:{view.port}.evil.example', ''):
            check_equal(view.said(f'GET /{view.token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode())[0], 403, f'as {host!r}')
        own = f'Host: 127.0.0.1:{view.port}\r\n'
        check_equal(view.said(f'GET /{view.token}/ HTTP/1.1\r\n\r\n'.encode())[0], 403, 'without a Host')
        check_equal(view.said(f'GET /{view.token}/ HTTP/1.1\r\n{own}{own}\r\n'.encode())[0], 403, 'with two')
        for method in ('POST', 'PUT', 'OPTIONS', 'get'):
            check_equal(view.get(f'/{view.token}/', method=method)[0], 405, method)
        for raw in (b'\r\n\r\n', b'GET\r\n\r\n', b'\0' * 100 + b'\r\n\r\n', b'GET / HTTP/2.0\r\n\r\n', b'\x16\x03\x01\x02\x00\x01\r\n\r\n'):
            check(view.said(raw)[0] in (400, 403), f'{raw!r}')
        check_equal(view.said(b'GET /' + b'a' * 100_000 + b' HTTP/1.1\r\n\r\n')[0], 431, 'a long line')
        check_equal(view.get(f'/{view.token}/')[0], 200, 'and still there')


def test_the_slow_hold_up_nobody():
    with View(traced_program()) as view:
        idle = [view.connect() for _ in range(20)]
        for one in idle:
            one.sendall(b'GET /')
        check_equal(view.get(f'/{view.token}/')[0], 200, 'beside twenty who say nothing')
        more = [view.connect() for _ in range(60)]  # more than it takes; those wait for a place
        began = time.monotonic()
        check_equal(view.get(f'/{view.token}/')[0], 200, 'and once those are put out')
        check(time.monotonic() - began < 40, 'within their time')
        for one in idle + more:
            one.close()


def test_it_ends_with_its_page():
    with View(traced_program()) as view:
        page = view.connect()
        page.sendall(f'GET /{view.token}/here HTTP/1.1\r\nHost: 127.0.0.1:{view.port}\r\n\r\n'.encode())
        check(page.recv(1 << 16).startswith(b'HTTP/1.1 200 OK'), 'a page is there')
        check_equal(view.ended(LEFT_ALONE + 2), None, 'as long as that is so')
        check_equal(view.get(f'/{view.token}/')[0], 200, 'it serves')
        page.close()
        check_equal(view.ended(), 0, 'then it ends')
    with View(traced_program()) as view:
        check_equal(view.ended(LEFT_ALONE + 2), None, 'nobody came yet')
        view.process.send_signal(signal.SIGINT)
        check_equal(view.ended(), 0, 'by Ctrl-C')


def test_where_there_is_no_browser():
    with View(traced_program()) as view:
        said = view.told()
        check(f'ssh -N -L {view.port}:127.0.0.1:{view.port} ' in said, 'how to get there', said)
        check_equal(socket.socket().connect_ex((socket.gethostbyname(socket.gethostname()), view.port)) != 0 or socket.gethostbyname(socket.gethostname()).startswith('127.'), True,
                    'from outside nobody gets there')


def test_in_the_browser():
    run = traced_device([program('launches_shared')])
    with View(run.output, options=('--events', '100')) as view:
        starts = sorted(line['start_ns'] for line in run.truth_of('kernel'))
        places = [starts[len(starts) * tenth // 10] for tenth in (1, 9, 3, 7)]  # where the program stood still, one may be exact already
        said = json.loads(browser('served', view.address, *map(str, places)))
        check_equal(view.ended(), 0, 'it ends with its tab')
    wanted = sorted(line['start_ns'] - said['origin'] for line in run.truth_of('kernel', 'copy', 'memset')
                    if said['begin'] <= line['start_ns'] - said['origin'] <= said['end'])
    check_equal(sorted(said['began']), wanted, 'what ran in view, as the truth has it')
    check(wanted, 'there is something to hold against')


main()
