"""`gputrace anonymize` knows each fact about a process (info line) that the library, the sidecar and recover write: one that it does not know is left out
of what it makes."""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, check, finish  # noqa: E402

WRITTEN = re.compile(r'\b(?:info_?|lines|last)(?:\.|->)(?:add|add_hex|emplace_back)\(\s*"([a-z_.]+)"')
RESULTS = re.compile(r'^InfoLines \w+::result\(\) const \{.*?^\}', re.M | re.S)


def text_of(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def main():
    written = {}
    for folder in ('interpose', 'cupti', 'writer'):
        for path in glob.glob(os.path.join(SOURCE, folder, '**', '*.cpp'), recursive=True):
            text = text_of(path)
            keys = WRITTEN.findall(text)
            for result in RESULTS.findall(text):
                keys += re.findall(r'\{\s*"([a-z_.]+)",', result)
            for key in keys:
                written.setdefault(key, os.path.relpath(path, SOURCE))
    known = text_of(os.path.join(SOURCE, 'cli', 'anonymize', 'rewrite_info.cpp'))
    rules = set(re.findall(r'\{"([a-z_]+)", InfoKind::', known))
    ranks = set(re.findall(r'"([a-z_]+)"', re.search(r'rank : \{(.*?)\}', known)[1]))
    check('sources were found', len(written) > 25 and len(rules) > 25, (len(written), len(rules)))
    for key, path in sorted(written.items()):
        check(f'{key} is known', key in rules | ranks or key.startswith(('option.', 'env.')), path)
    finish()


main()
