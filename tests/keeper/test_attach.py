# SPDX-License-Identifier: Apache-2.0
"""A generation in a box: read-only, where only the box's root can write, and gone with the box."""
import errno
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

import boxes
import test_user
from boxes import ATTACH, DETACH, GONE, KILL, OK

NAME = '0123456789abcdef0123456789abcdef'
PLACE = '/run/coop/git'
ROUNDS = 20
ATTACHED_MAX = 16
NOBODY = 65534


def make_generation(folder, name=NAME, owner=None):
    pack = folder / 'generations' / name / 'objects' / 'pack'
    pack.mkdir(parents=True)
    (pack / 'p').write_text('bytes')
    (pack / 'tool').write_bytes(pathlib.Path(os.environ['COOP_BOX_PROBE']).read_bytes())
    (pack / 'tool').chmod(0o555)
    (folder / 'generations').chmod(0o700)
    if owner:
        for path, _, files in os.walk(folder / 'generations'):
            for entry in [path, *(os.path.join(path, file) for file in files)]:
                os.chown(entry, *owner)


@pytest.fixture
def keeper(make_keeper, folder):
    make_generation(folder)
    return make_keeper(options=['--generations', str(folder / 'generations')])


def attach(keeper, box, name=NAME, verb=ATTACH):
    answer, _ = keeper.call(verb, box.id, layers=(name,))
    return 0 if answer.verb == OK else answer.error


def mounts(box):
    return [line for line in pathlib.Path(f'/proc/{box.pid}/mountinfo').read_text().splitlines() if NAME in line]


def check_inside(keeper):
    box = keeper.create()
    assert attach(keeper, box) == 0
    inside = f'{PLACE}/{NAME}/objects/pack'
    for user in 'ur':
        assert box.run('/bin/probe', 'cat', f'{inside}/p', user=user) == (0, 'bytes')
        assert box.run('/bin/probe', 'write', f'{inside}/p', 'x', user=user)[0] in (errno.EROFS, errno.EACCES)
        assert box.run('/bin/probe', 'write', f'{inside}/new', 'x', user=user)[0] == errno.EROFS
        assert box.run(f'{inside}/tool', 'pause', user=user)[0] == 127
        assert box.run('/bin/probe', 'unmount', f'{PLACE}/{NAME}', user=user)[0] == errno.EPERM
        assert box.run('/bin/probe', 'rename', f'{PLACE}/{NAME}', f'{PLACE}/x', user=user)[0] in (
            errno.EBUSY, errno.EACCES)
    for place in ('/run', '/run/coop', PLACE):
        assert box.run('/bin/probe', 'stat', place) == (0, '0 0\n')
        assert box.run('/bin/probe', 'write', f'{place}/x', 'x', user='u')[0] == errno.EACCES
    assert box.run('/bin/probe', 'stat', f'{inside}/p') == (0, '65534 65534\n')
    assert len(mounts(box)) == 1
    flags = mounts(box)[0].split()
    assert {'ro', 'nosuid', 'nodev', 'noexec'} <= set(flags[5].split(','))
    assert flags[6] == '-', 'nothing is passed on from the host'
    assert attach(keeper, box) == 0 and len(mounts(box)) == 1
    return box


def test_inside(keeper):
    box = check_inside(keeper)
    assert attach(keeper, box, verb=DETACH) == 0 and mounts(box) == []
    assert box.run('/bin/probe', 'stat', f'{PLACE}/{NAME}')[0] == errno.ENOENT
    assert attach(keeper, box, verb=DETACH) == 0
    keeper.kill_box(box)
    boxes.nothing_left(keeper)


@pytest.mark.parametrize('how', ['user', 'user namespace'])
def test_without_root(folder, how):
    if os.geteuid() != 0:
        pytest.skip('another user is tested as root')
    boxes.need_namespaces()
    with test_user.keeper_of_user(folder, how) as make:
        _, uid, gid, _ = test_user.lent_ids()
        make_generation(folder, owner=(uid, gid))
        keeper = make('--generations', str(folder / 'generations'))
        keeper.kill_box(check_inside(keeper))


@pytest.mark.parametrize('name, error', [
    ('ffff', errno.ENOENT), ('../state', errno.EINVAL), ('', errno.EINVAL), ('a/b', errno.EINVAL),
    ('aa', errno.ENOTDIR), ('bb', errno.ENOTDIR),
])
def test_names(keeper, folder, name, error):
    (folder / 'generations' / 'aa').symlink_to('/etc')
    (folder / 'generations' / 'bb').write_text('')
    box = keeper.create()
    assert attach(keeper, box, name) == error


def test_without_generations(make_keeper):
    keeper = make_keeper()
    assert attach(keeper, keeper.create()) == errno.ENOENT


def spoil(folder, how):
    place = folder / 'generations'
    if how == 'a link':
        place.rename(folder / 'elsewhere')
        place.symlink_to(folder / 'elsewhere')
    elif how == "another's":
        os.chown(place, NOBODY, NOBODY)
    else:
        place.chmod(0o770 if how == "the group's to write" else 0o702)


@pytest.mark.parametrize('how', ['a link', "another's", "the group's to write", "everybody's to write"])
def test_generations_must_be_the_servers(keeper, folder, how):
    """The folder it is in is the server's, so it is looked at with every start."""
    keeper.end()
    spoil(folder, how)
    keeper.process = subprocess.Popen(keeper.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, said = keeper.process.communicate(timeout=boxes.DEADLINE)
    keeper.options = []  # what cleans may have to start it
    assert out == b'' and b'generations' in said and keeper.process.returncode != 0


def test_no_such_box(keeper):
    assert keeper.call(ATTACH, boxes.new_id(), layers=(NAME,))[0].error == errno.ESRCH


def host_mounts(keeper):
    """But for those in the folders of other tests, which come and go."""
    lines = pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
    return [line for line in lines if '/coop-' not in line or str(keeper.state.parent) in line or NAME in line]


def hostile_root(root, how):
    run = root / 'run'
    if how == 'run is a link':
        run.symlink_to('/tmp')
        return
    run.mkdir()
    if how == 'coop is a link':
        (run / 'coop').symlink_to('/tmp')
    elif how == 'coop leads out':
        (run / 'coop').symlink_to('../../../../../../proc/1/root')
    elif how == 'coop is a file':
        (run / 'coop').write_text('')
    elif how == 'run is open':
        run.chmod(0o777)
    elif how == "coop is the user's":
        (run / 'coop').mkdir()
        os.chown(run / 'coop', 1000, 1000)
    elif how == 'git is open':
        (run / 'coop' / 'git').mkdir(parents=True)
        (run / 'coop' / 'git').chmod(0o775)
    elif how == 'the place is a link':
        (run / 'coop' / 'git').mkdir(parents=True)
        (run / 'coop' / 'git' / NAME).symlink_to('/etc')


@pytest.mark.parametrize('how, error', [
    ('run is a link', errno.ENOTDIR), ('coop is a link', errno.ENOTDIR), ('coop leads out', errno.ENOTDIR),
    ('coop is a file', errno.ENOTDIR), ('run is open', errno.EPERM), ("coop is the user's", errno.EPERM),
    ('git is open', errno.EPERM), ('the place is a link', errno.ENOTDIR),
])
def test_hostile_places(keeper, how, error):
    hostile_root(boxes.template(keeper.store, os.environ['COOP_BOX_PROBE'], 'cc'), how)
    before = host_mounts(keeper)
    box = keeper.create(layers=('cc',))
    assert attach(keeper, box) == error
    assert mounts(box) == []
    assert host_mounts(keeper) == before
    keeper.kill_box(box)
    boxes.nothing_left(keeper)


def test_a_root_that_moves_folders_harms_itself_alone(keeper):
    """Its folder is under way, or is not, whenever the helper looks; the mount is in its own tree all the same."""
    box = keeper.create()
    assert attach(keeper, box) == 0 and attach(keeper, box, verb=DETACH) == 0
    box.send('/bin/probe', 'churn', '/run/coop', user='r')
    for _ in range(ROUNDS):
        assert attach(keeper, box) in (0, errno.ENOENT, errno.EEXIST, errno.EBUSY)
        for line in mounts(box):
            assert line.split()[4].startswith('/run/coop')
        attach(keeper, box, verb=DETACH)
    keeper.kill_box(box)
    boxes.nothing_left(keeper)


def test_at_most(keeper, folder):
    names = [f'{number:032x}' for number in range(ATTACHED_MAX + 1)]
    for name in names:
        (folder / 'generations' / name / 'objects').mkdir(parents=True)
    box, last = keeper.create(), names.pop()
    for _ in range(2):
        assert [attach(keeper, box, name) for name in names] == [0] * ATTACHED_MAX
    assert attach(keeper, box, last) == errno.ENOSPC
    assert box.run('/bin/probe', 'stat', f'{PLACE}/{last}')[0] == errno.ENOENT
    assert attach(keeper, box, last, verb=DETACH) == 0
    assert attach(keeper, box, last) == errno.ENOSPC
    assert attach(keeper, box, names[0], verb=DETACH) == 0
    assert attach(keeper, box, last) == 0
    assert attach(keeper, box, names[0]) == errno.ENOSPC


def test_what_is_hidden_counts(keeper):
    """Root inside moves the folder away, and the mount in it with that."""
    box = keeper.create()
    for number in range(ATTACHED_MAX):
        assert attach(keeper, box) == 0
        assert box.run('/bin/probe', 'rename', '/run/coop', f'/run/x{number}', user='r')[0] == 0
        assert attach(keeper, box, verb=DETACH) == 0
    assert attach(keeper, box) == errno.ENOSPC
    assert len(mounts(box)) == ATTACHED_MAX


def test_one_at_a_time(keeper):
    box = keeper.create()
    os.kill(keeper.process.pid, signal.SIGSTOP)
    serials = [keeper.ask(ATTACH, box.id, layers=(NAME,)) for _ in range(2)]
    os.kill(keeper.process.pid, signal.SIGCONT)
    answers = {answer.serial: answer for answer, _ in (keeper.answer(), keeper.answer())}
    assert answers[serials[0]].verb == OK
    assert answers[serials[1]].verb == OK or answers[serials[1]].error == errno.EBUSY


def test_killed_meanwhile(keeper, folder):
    """Both requests wait for the keeper, so the kill comes while the helper is on its way."""
    for _ in range(ROUNDS):
        box = keeper.create()
        os.kill(keeper.process.pid, signal.SIGSTOP)
        first, second = keeper.ask(ATTACH, box.id, layers=(NAME,)), keeper.ask(KILL, box.id)
        os.kill(keeper.process.pid, signal.SIGCONT)
        answers = {}
        while second not in answers:
            answer, _ = keeper.answer()
            answers[answer.serial] = answer
        assert answers[second].verb == GONE
        assert answers[first].verb == OK or answers[first].error == errno.ESRCH
        box.close()
    boxes.nothing_left(keeper)
    shutil.rmtree(folder / 'generations' / NAME)


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='a release build has no failpoints')
def test_a_helper_that_dies(keeper):
    keeper.end()
    keeper.start(fail_at='attach-enter')
    box = keeper.create()
    assert attach(keeper, box) == errno.ETIMEDOUT
    keeper.kill_box(box)
    boxes.nothing_left(keeper)


def test_keeper_killed_meanwhile(keeper):
    box = keeper.create()
    os.kill(keeper.process.pid, signal.SIGSTOP)
    keeper.ask(ATTACH, box.id, layers=(NAME,))
    os.kill(keeper.process.pid, signal.SIGCONT)
    keeper.end(signal.SIGKILL)
    boxes.wait_until(lambda: boxes.helpers_of(keeper), 'helpers outlive the keeper')
    boxes.wait_until(lambda: boxes.processes_of(keeper), 'processes outlive the keeper')
    keeper.start()
    boxes.nothing_left(keeper)


def test_fds_do_not_grow(keeper):
    box = keeper.create()
    attach(keeper, box)
    before = keeper.fds()
    for _ in range(ROUNDS):
        assert attach(keeper, box, verb=DETACH) == 0 and attach(keeper, box) == 0
        assert attach(keeper, box, 'ffff') == errno.ENOENT
    assert keeper.fds() == before
