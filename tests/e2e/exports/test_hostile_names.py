# meson: timeout=120
# Names that hold every byte there is, quotes, brackets, line separators: each export parses, by Python's own readers, and holds the same names.
import csv
import sqlite3

from exports_against import *
from small_programs import *

PROGRAM = r'''
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry third() { ret; }\n";
int main(void) {
  CUdevice device; CUcontext context; CUmodule module; CUfunction function;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "third")) return 70;
  char name[4096];
  while (fgets(name, sizeof name, stdin)) {
    unsigned char text[2048];
    int size = 0;
    for (unsigned value; sscanf(name + 2 * size, "%2x", &value) == 1; ) text[size++] = (unsigned char)value;
    text[size] = 0;
    nvtxRangePushA((const char*)text);
    if (cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0)) return 71;
    nvtxRangePop();
  }
  return cuCtxSynchronize();
}
'''
# No name holds a zero, which ends it.
NAMES = [bytes([byte]) + b' alone' for byte in range(1, 256)] + [bytes(range(first, first + 51)) for first in range(1, 256, 51)] + [
    b'"quoted"', b"it's", b'back\\slash\\', b'a],"b":[', b'{"a":1}', 'lines\u2028and\u2029paragraphs'.encode(), b'</script><script>', b'a;b;c 12', b'=1+1', b'@a', b"'; DROP TABLE NVTX_EVENTS; --",
    'kernel\U0001f525\u202egnp'.encode(), b'\xed\xa0\x80 half a pair', b'\xf4\x90\x80\x80 beyond', b'cut \xe2\x80', b'a,b,"c"', b'a\r\nb\rc\n', b'\t', b' ', b'%s%n', b'\xef\xbb\xbfmark']


def traced_names():
    run = traced([compiled('names.c', PROGRAM, '-lcuda', '-ldl')], stdin=b''.join(name.hex().encode() + b'\n' for name in NAMES))
    check_equal(run.returncode, 0, 'exit code')
    return run.output


def as_text(name):
    """Bytes that are no UTF-8 are one replacement character each, as the readers of the web have it."""
    return name.decode('utf-8', errors='replace')


def same_names(found, what, of=as_text):
    wanted = {of(name) for name in NAMES}
    # How many replacement characters stand for a broken sequence is the decoder's choice.
    found, wanted = ({re.sub('\ufffd+', '\ufffd', name) for name in names} for names in (found, wanted))
    check(wanted <= found, f'{what}: every name is there as it was', sorted(wanted - found)[:20], sorted(found - wanted)[:20])


def strings_of(value):
    if isinstance(value, str):
        yield value
    for each in value.items() if isinstance(value, dict) else [('', one) for one in value] if isinstance(value, list) else []:
        yield from strings_of(list(each) if isinstance(value, dict) else each[1])


def test_every_byte():
    path = traced_names()
    with open(exported(path, 'chrome', scratch('x.json')), encoding='utf-8', errors='strict') as file:
        same_names({event.get('name', '') for event in json.load(file)['traceEvents']}, 'chrome')
    file = sqlite3.connect(exported(path, 'sqlite', scratch('x.sqlite')))
    check_equal(file.execute('PRAGMA integrity_check').fetchall(), [('ok',)], 'sqlite: a whole file')
    same_names({text for text, in file.execute('SELECT COALESCE(n.text, s.value) FROM NVTX_EVENTS AS n LEFT JOIN StringIds AS s ON n.textId = s.id')}, 'sqlite')
    with open(exported(path, 'csv', scratch('x.csv')), encoding='utf-8', errors='strict', newline='') as file:
        lines = list(csv.DictReader(file))
    check(all(None not in line and None not in line.values() for line in lines), 'csv: as many fields as columns')
    check(not any(cell and cell[0] in '=+-@\t\r' and not re.fullmatch(r'-?[0-9.]+', cell) for line in lines for cell in line.values()), 'csv: no formula')
    check(not any(ord(c) < 32 or ord(c) == 127 for line in lines for cell in line.values() for c in cell), 'csv: no control byte')
    said = {json.loads(line)['message'] for line in gputrace('dump', '--json', *glob.glob(os.path.join(path, '*.gtrace')))[0].split('\n') if '"Nvtx"' in line}
    same_names(said - {None}, 'dump')
    same_names(set(strings_of(report(path, 'nvtx'))), 'report')


main()
