"""docs/trace-format.md is what the schema's own program prints: the document cannot drift from trace/records.def."""
import difflib
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import SOURCE, artefact, check, finish, skip  # noqa: E402


def main():
    program = artefact('GT_FORMAT_DOC', 'trace/format_doc')
    document = os.path.join(SOURCE, 'docs', 'trace-format.md')
    if not program:
        skip('docs/trace-format.md', 'the program that prints it is not built yet')
        finish()
    printed = subprocess.run([program], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode()
    written = ''
    if os.path.exists(document):
        with open(document, encoding='utf-8') as file:
            written = file.read()
    difference = list(difflib.unified_diff(written.splitlines(), printed.splitlines(), 'docs/trace-format.md', 'trace/records.def', lineterm=''))
    check('docs/trace-format.md equals the generated one', not difference,
          '\n'.join([''] + difference[:20] + [f'fix: {os.path.relpath(program, SOURCE)} > docs/trace-format.md']))
    finish()


main()
