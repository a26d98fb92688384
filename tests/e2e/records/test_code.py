# meson: timeout=240
# Machine code of loaded modules: which image, where it is, what the scan outside of the process found, for every way of loading.
from code_images import *


def test_from_memory():
    code = one_way('data', 'sm90.cubin', COPIED)
    size = os.path.getsize(images()['sm90.cubin'])
    check_equal(sum(min(4000, size - piece['offset']) for piece in code.bytes), size, 'the pieces make up the image')


def test_from_a_mapped_file():
    code = one_way('mmap', 'sm90.cubin', IN_FILE)
    image = code.images[0]
    check_equal([image['path'], image['offset'], image['bytes']], [images()['sm90.cubin'], 0, os.path.getsize(images()['sm90.cubin'])], 'reference')
    check_equal(code.bytes, [], 'nothing is copied')


def test_from_the_middle_of_a_mapped_file():
    path = scratch('padded')
    with open(path, 'wb') as file:
        file.write(b'\1' * 12344)
        with open(images()['zstd.fatbin'], 'rb') as image:
            file.write(image.read())
        file.write(b'\1' * 5000)
    code = Code(loads(f'mmap@12344:{path}:{",".join(NAMES)}'))
    check_kernels(code, 3, IN_FILE)
    check_equal([code.images[0]['offset'], code.images[0]['bytes']], [12344, os.path.getsize(images()['zstd.fatbin'])], 'reference')


def test_from_a_file_by_name():
    one_way('file', 'sm90.cubin', IN_FILE)
    forget_run()
    one_way('libfile', 'lz4.fatbin', IN_FILE)


def test_fatbins_of_every_compression():
    for how, image in (('fat', 'none.fatbin'), ('lib', 'lz4.fatbin'), ('dataex', 'zstd.fatbin')):
        one_way(how, image, COPIED)
        forget_run()


def test_nearest_architecture():
    run = loads(f'data:{images()["zstd.fatbin"]}:{",".join(NAMES)}', env={'SIMGPU_CC': '8.6'})
    check_kernels(Code(run), 3, COPIED)


def test_ptx():
    one_way('data', 'k.ptx', COPIED, machine_code=False)


def test_linked():
    code = Code(loads(f'link:{images()["k.ptx"]}:{",".join(NAMES)}'))
    check_equal(len(code.images), 1, 'the linked image is captured where it is loaded')
    check_equal(len([launch for launch in code.launches if code.of_launch(launch)]), 3, 'launches with code')


def test_module_of_a_library():
    code = Code(loads(f'modlib:{images()["sm90.cubin"]}:{",".join(NAMES)}'))
    check_kernels(code, 3, COPIED)
    check_equal(len({image['image'] for image in code.images}), 1, 'one image for library and module')


def test_same_bytes_have_one_id():
    code = Code(loads(f'twice:data:{images()["sm90.cubin"]}:saxpy', f'twice:mmap:{images()["sm80.cubin"]}:', env={'SIMGPU_CC': '9.0'}))
    check_equal(len({image['image'] for image in code.images if number(image['state']) == COPIED}), 1, 'ids of copied bytes')
    copied = sum(1 for piece in code.bytes if piece['offset'] == 0)
    check_equal(copied, 1, 'copies')


def test_runtime_programs():
    for name in ('launches_sim', 'launches_shared'):
        run = traced([program(name)])
        code = Code(run)
        check(code.launches, 'launches')
        without = [code.names[launch['function']]['name'] for launch in code.launches if not code.of_launch(launch)]
        # A CUfunction that came from a CUkernel is looked up through it.
        kernels = {record['function']: record for record in code.of('FunctionGet')}
        ids = lambda module: {image['image'] for image in code.images if image['module'] == module}
        for launch in code.launches:
            got = kernels[launch['function']]
            while got['module'] in kernels:
                got = kernels[got['module']]
            found = [kernel for kernel in code.kernels if kernel['image'] in ids(got['module']) and kernel['name'] == got['name']]
            check(found, f'{name}: a launched kernel has its code', got, code.images, without)
            facts = code.facts[launch['function']]
            check_equal(found[0]['registers'], facts['registers'], 'registers')
        check_equal({number(image['state']) for image in code.images}, {IN_FILE}, 'a fatbin inside the program goes by reference')
        check_equal({image['path'] for image in code.images}, {program(name)}, 'its file')
        check(all(image['build_id'] for image in code.images), 'its build id', code.images)
        forget_run()


def test_broken_images_fail_as_they_do():
    path = scratch('broken')
    with open(images()['sm90.cubin'], 'rb') as image:
        data = bytearray(image.read())
    data[40:48] = (1 << 40).to_bytes(8, 'little')  # the section table is nowhere
    with open(path, 'wb') as file:
        file.write(data)
    word = f'mmap:{path}:'
    plain, run = untraced([sys.executable, LOADS, word]), loads(word)
    same_output(plain, run)
    check(b'mmap 0' not in plain.stdout, 'the load fails', plain.stdout)
    check_equal(Code(run).images, [], 'nothing is captured')


def test_a_file_that_changed():
    for how in ('file', 'mmap'):
        path = scratch('image')
        shutil.copy(images()['sm90.cubin'], path)
        code = Code(loads('spoil', f'{how}:{path}:saxpy'))
        check_equal([number(scan['state']) for scan in code.scans], [CHANGED], f'{how}: what was loaded is not there any more')
        check_equal(code.kernels, [], 'kernels')
        forget_run()


def test_nothing_is_scanned_that_nobody_asks_for():
    code = Code(loads(f'data:{images()["sm90.cubin"]}:', f'mmap:{images()["sm80.cubin"]}:', env={'SIMGPU_CC': '9.0'}))
    check_equal(code.scans, [], 'scans')
    check(code.images, 'images')


main()
