"""The bill of materials of an installed tree, SPDX 2.3 as JSON: each native file of it, and each package that its linker and compiler took something from."""
import hashlib
import json
import os
import re
import time

import link_inputs

HERE = os.path.dirname(os.path.abspath(__file__))


class NoLicence(Exception):
    """A package that licences.tsv does not name."""


def licences():
    """{package: SPDX expression}"""
    with open(os.path.join(HERE, 'licences.tsv'), encoding='utf-8') as file:
        return dict(line.rstrip('\n').split('\t')[:2] for line in file if not line.startswith('#'))


def spdx_id(text):
    return re.sub(r'[^A-Za-z0-9.-]', '-', text)


def package(name, version, licence, where, **more):
    return {'SPDXID': f'SPDXRef-Package-{spdx_id(name)}', 'name': name, 'versionInfo': version, 'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False,
            'licenseConcluded': 'NOASSERTION', 'licenseDeclared': licence, 'copyrightText': 'NOASSERTION', 'supplier': 'NOASSERTION',
            **({'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl', 'referenceLocator': where}]} if where else {}), **more}


def debian_packages(names):
    known = licences()
    for name in sorted(names):
        if name not in known:
            raise NoLicence(f'{name} is linked in, and packaging/licences.tsv does not say its licence')
        about = link_inputs.about(name)
        yield package(name, about['version'], known[name], f'pkg:deb/debian/{name}@{about["version"].replace("+", "%2B").replace(":", "%3A")}?arch={about["machine"]}',
                      sourceInfo=f'built from the source package {about["source"]}')


def npm_packages(lock, names):
    with open(lock, encoding='utf-8') as file:
        known = json.load(file)['packages']
    for name in names:
        about = known[f'node_modules/{name}']
        yield package(f'npm-{name}', about['version'], about.get('license', 'NOASSERTION'), f'pkg:npm/{name}@{about["version"]}')


def document(version, when, files, inputs, extra, lock, in_the_page, cuda_version):
    """files: {name below the prefix: bytes}; inputs: {name: {package: (how, comment)}}; extra: further packages that the tree holds as they are."""
    own = package('gputrace', version, 'Apache-2.0', f'pkg:generic/gputrace@{version}', filesAnalyzed=True, packageVerificationCode={
        'packageVerificationCodeValue': hashlib.sha1(''.join(sorted(hashlib.sha1(data).hexdigest() for data in files.values())).encode()).hexdigest()})
    used = {name for found in inputs.values() for name in found}
    packages = [own, *debian_packages(used - {'cuda', 'page'}), *extra]
    if 'cuda' in used:
        packages.append(package('cuda-headers', cuda_version, 'NOASSERTION', '', comment="Declarations of NVIDIA's CUDA toolkit, read by the compiler; its licence is the toolkit's"))
    if 'page' in used:
        packages += npm_packages(lock, in_the_page)
    relations = [{'spdxElementId': 'SPDXRef-DOCUMENT', 'relationshipType': 'DESCRIBES', 'relatedSpdxElement': own['SPDXID']}]
    relations += [{'spdxElementId': own['SPDXID'], 'relationshipType': 'CONTAINS', 'relatedSpdxElement': one['SPDXID']} for one in extra]
    listed = []
    for name, data in sorted(files.items()):
        at = f'SPDXRef-File-{spdx_id(name)}'
        listed.append({'SPDXID': at, 'fileName': f'./{name}', 'fileTypes': ['BINARY'], 'licenseConcluded': 'NOASSERTION', 'copyrightText': 'NOASSERTION',
                       'checksums': [{'algorithm': kind, 'checksumValue': hashlib.new(kind.lower(), data).hexdigest()} for kind in ('SHA1', 'SHA256')]})
        relations.append({'spdxElementId': own['SPDXID'], 'relationshipType': 'CONTAINS', 'relatedSpdxElement': at})
        for found, (how, comment) in sorted(inputs.get(name, {}).items()):
            others = [f'npm-{one}' for one in in_the_page] if found == 'page' else ['cuda-headers' if found == 'cuda' else found]
            for other in others:
                other = f'SPDXRef-Package-{spdx_id(other)}'
                one = {'spdxElementId': at, 'relationshipType': how, 'relatedSpdxElement': other, 'comment': comment}
                if how == 'BUILD_DEPENDENCY':
                    one.update(spdxElementId=other, relationshipType='BUILD_DEPENDENCY_OF', relatedSpdxElement=at)
                relations.append(one)
    mark = hashlib.sha256(json.dumps([listed, packages], sort_keys=True).encode()).hexdigest()[:32]
    return {'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': f'gputrace-{version}',
            'documentNamespace': f'https://spdx.org/spdxdocs/gputrace-{version}-{mark}',
            'creationInfo': {'created': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(when)), 'creators': ['Tool: gputrace-make_package']},
            'packages': packages, 'files': listed, 'relationships': relations}
