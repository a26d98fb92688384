"""Sources that are compiled together (unity builds) see each other's anonymous namespaces, and which ones are together differs from one kind of
build to another: so no two of a target may give the same name to a constant or a type there."""
import collections
import glob
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import BUILD, SOURCE, check, finish, skip  # noqa: E402

INCLUDED = re.compile(r'^#include\s*[<"](.+?)[>"]', re.M)
ANONYMOUS = re.compile(r'^namespace \{$(.*?)^\}  // namespace$', re.M | re.S)
CONSTANT = re.compile(r'^(?:inline |static )?(?:constexpr|constinit|const)\b[^;={(]*?\b(k[A-Z]\w*)\s*(?:\[[^\]]*\]\s*)?[={;]', re.M)
TYPE = re.compile(r'^(?:struct|class|union|enum class|enum)\s+(\w+)\s*(?:final\s*)?[:{]', re.M)


def names_of(path):
    with open(path, encoding='utf-8') as file:
        anonymous = ''.join(ANONYMOUS.findall(file.read()))
    return set(CONSTANT.findall(anonymous)) | set(TYPE.findall(anonymous))


def targets():
    """The sources of each target that is compiled so, by its folder in the build."""
    sources = collections.defaultdict(set)
    for unity in glob.glob(os.path.join(BUILD, '**', '*-unity*.cpp'), recursive=True):
        with open(unity, encoding='utf-8') as file:
            for name in INCLUDED.findall(file.read()):
                path = os.path.normpath(os.path.join(BUILD, name))
                if path.startswith(SOURCE + os.sep) and os.path.exists(path):
                    sources[os.path.dirname(unity)].add(path)
    return sources


def main():
    found = targets()
    if not found:
        skip('names in unity builds', 'this build compiles each source alone')
        return finish()
    shared = {}
    for target, sources in sorted(found.items()):
        users = collections.defaultdict(list)
        for path in sorted(sources):
            for name in names_of(path):
                users[name].append(os.path.relpath(path, SOURCE))
        shared.update({(os.path.basename(target), name): paths for name, paths in users.items() if len(paths) > 1})
    check(f'in {len(found)} targets each name of an anonymous namespace is that of one source', not shared, shared)
    finish()


main()
