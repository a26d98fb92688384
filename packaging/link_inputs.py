"""What a program of a build folder was made of, as its linker and its compiler say: each linked archive and shared library, each header, and the
Debian package that it comes from."""
import os
import re
import shlex
import subprocess
import tempfile

LISTS = '/var/lib/dpkg/info'


class Unknown(Exception):
    """An input of which nobody says whose it is."""


def said(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, **more).stdout.decode()


def is_nvcc(command):
    return os.path.basename(command[0]) == 'nvcc'


def linked(build, target):
    """({archive: how many of its members}, {shared library}) of a target: it is linked once more, elsewhere, for the linker's map."""
    command = shlex.split(said(['ninja', '-C', build, '-t', 'commands', '-s', target]).strip().splitlines()[-1])
    with tempfile.TemporaryDirectory() as folder:
        out, where = os.path.join(folder, 'out'), os.path.join(folder, 'map')
        command[command.index('-o') + 1] = out
        wanted = [f'-Map={where}', '--strip-debug']
        to_linker = [word for one in wanted for word in ('-Xlinker', one)] if is_nvcc(command) else [f'-Wl,{one}' for one in wanted]
        subprocess.run([*command, *to_linker], cwd=build, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(where, encoding='utf-8', errors='replace') as file:
            text = file.read()
        needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', said(['readelf', '-dW', out])))
    taken, _, loaded = text.partition('\nLOAD ')
    archives, libraries = {}, set()
    for path in re.findall(r'^(\S+\.a)\([^)]+\)', taken.partition('Archive member included')[2].partition('\n\n\n')[0], re.M):
        path = os.path.realpath(os.path.join(build, path))
        archives[path] = archives.get(path, 0) + 1
    for path in re.findall(r'^LOAD (\S+)', 'LOAD ' + loaded, re.M):
        path = os.path.realpath(os.path.join(build, path))
        if re.search(r'\.so(\.\d+)*$', path):
            if os.path.basename(path) in needed:  # the others were looked at only
                libraries.add(path)
        elif path.endswith('.o') and not path.startswith((os.path.realpath(build), tempfile.gettempdir() + '/')):
            archives.setdefault(path, 1)  # of the compiler: crt1.o and its like; what nvcc has compiled lies among temporary files
    ours = os.path.realpath(build) + '/'
    return {path: count for path, count in archives.items() if not path.startswith(ours)}, {path for path in libraries if not path.startswith(ours)}


def headers(build, target, source):
    """Every file outside of `source` that the compiler read for the target, and whether the page of the report is among its inputs."""
    inputs = said(['ninja', '-C', build, '-t', 'inputs', target]).splitlines()
    objects = [name for name in inputs if name.endswith('.o')]
    found, source = set(), os.path.realpath(source) + '/'
    for line in said(['ninja', '-C', build, '-t', 'deps', *objects]).splitlines() if objects else []:
        if line.startswith('    '):
            path = os.path.abspath(os.path.join(build, line.strip()))
            if not path.startswith(source) or path.startswith(os.path.join(source, 'build', 'cuda')):
                found.add(path)
    return found, any(name.endswith('page.html') for name in inputs)


def packages_of(paths):
    """{path: Debian package}; those that no package has are left out. dpkg's own lists are read: asked for two thousand files it takes a minute."""
    spellings = {}
    for path in paths:
        for spelled in {path, os.path.realpath(path)}:
            spellings[spelled] = path
            if spelled.startswith('/usr/lib'):
                spellings[spelled[4:]] = path  # as named before /lib was a link
    owner = {}
    for name in sorted(os.listdir(LISTS)):
        if name.endswith('.list'):
            with open(os.path.join(LISTS, name), encoding='utf-8', errors='replace') as file:
                for path in file.read().splitlines():
                    if path in spellings:
                        owner[spellings[path]] = name[:-5].partition(':')[0]
    return owner


def about(package):
    """{version, source} of an installed package."""
    form = '${Version}\t${source:Package} ${source:Version}\t${Architecture}'
    version, source, machine = said(['dpkg-query', '-W', '-f', form, package]).split('\t')
    return {'version': version, 'source': source, 'machine': machine}


def inputs_of(build, targets, source, cuda):
    """{target: {package: (how, comment)}}; how: STATIC_LINK, DYNAMIC_LINK or DEPENDS_ON, in SPDX's words. `cuda`: the toolkit's folder: headers
    of it, and of the toolkits that were fetched, are the package 'cuda'; the page's own parts are the package 'page'."""
    toolkits = tuple(os.path.realpath(path) + '/' for path in (cuda, os.path.join(source, 'build', 'cuda')))  # other versions' too
    taken = {}
    for target in targets:
        archives, libraries = linked(build, target)
        # What CUDA's compiler linked asks for the toolkit's runtime, which is found when it runs and is in no package of ours.
        runtime = {path for path in libraries if path.startswith(toolkits)}
        libraries -= runtime
        read, page = headers(build, target, source)
        taken[target] = (archives, libraries, {path for path in read if not os.path.realpath(path).startswith(toolkits)}, read, page, runtime)
    everything = {path for archives, libraries, read, *_ in taken.values() for path in (*archives, *libraries, *read)}
    owner = packages_of(everything)
    if homeless := sorted(everything - set(owner)):
        raise Unknown(f'no package says that it owns {", ".join(homeless[:5])}')
    return {target: named(owner, *parts) for target, parts in taken.items()}


def named(owner, archives, libraries, read, everything_read, page, runtime):
    found = {owner[path]: ('DEPENDS_ON', 'by its headers') for path in sorted(read)}
    found.update({owner[path]: ('DYNAMIC_LINK', os.path.basename(path)) for path in sorted(libraries)})
    parts = {}
    for path, count in sorted(archives.items()):
        parts.setdefault(owner[path], []).append(f'{os.path.basename(path)}: {count} of its objects' if path.endswith('.a') else os.path.basename(path))
    found.update({package: ('STATIC_LINK', ', '.join(names)) for package, names in parts.items()})
    if len(everything_read) > len(read):
        found['cuda'] = ('BUILD_DEPENDENCY', f'{len(everything_read) - len(read)} headers; nothing of it is linked in')
    if runtime:
        found['cuda'] = ('BUILD_DEPENDENCY', f'its compiler, and code of its headers; {", ".join(map(os.path.basename, sorted(runtime)))} is found when it runs')
    if page:
        found['page'] = ('CONTAINS', 'in the page of the report')
    return found
