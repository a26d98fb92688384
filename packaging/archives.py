"""Archives whose bytes follow from what is in them: names in order, one time for all, nobody's user.

A file is (name, bytes, may be executed), a link (name, target as str, False)."""
import gzip
import hashlib
import io
import lzma
import tarfile


def tar(files, when, root=''):
    """The bytes of a tar archive of `files`, with their folders, below `root`."""
    folders = set()
    for name, _, _ in files:
        parts = (root + name).split('/')[:-1]
        folders.update('/'.join(parts[:n]) for n in range(1, len(parts) + 1))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.GNU_FORMAT) as archive:
        entries = [(folder, None, True) for folder in folders if folder not in ('', '.')]
        entries += [(root + name, data, executable) for name, data, executable in files]
        for name, data, executable in sorted(entries, key=lambda entry: entry[0]):
            info = tarfile.TarInfo(name)
            info.mtime, info.uid, info.gid, info.uname, info.gname = when, 0, 0, 'root', 'root'
            info.mode = 0o755 if executable else 0o644
            if data is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(data, str):
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, data, 0o777
            else:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()


def gz(data):
    return gzip.compress(data, compresslevel=9, mtime=0)


def gz_quickly(data):
    """For what is compressed already."""
    return gzip.compress(data, compresslevel=1, mtime=0)


def xz(data):
    return lzma.compress(data, preset=6)


def deb(files, control, when, pack=xz):
    """The bytes of a Debian package: `files` below /, `control`: {name: text} of its control archive, without md5sums. `pack`: xz, or
    gz_quickly."""
    sums = ''.join(f'{hashlib.md5(data).hexdigest()}  {name}\n' for name, data, _ in sorted(files) if isinstance(data, bytes))
    about = [(name, text.encode(), False) for name, text in {**control, 'md5sums': sums}.items()]
    suffix = {xz: 'xz', gz_quickly: 'gz'}[pack]
    members = {'debian-binary': b'2.0\n', 'control.tar.xz': xz(tar(about, when, './')), f'data.tar.{suffix}': pack(tar(files, when, './'))}
    out = [b'!<arch>\n']
    for name, data in members.items():
        out.append(f'{name:<16}{when:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n'.encode())
        out.append(data + b'\n' * (len(data) % 2))
    return b''.join(out)
