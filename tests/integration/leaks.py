# SPDX-License-Identifier: Apache-2.0
"""What boxes may leave behind on the host, counted.

`count()` looks at the host itself: mounts, loop devices, cgroups of all hierarchies, processes, records,
descriptors and files.  A test takes it when nothing is there and compares when nothing should be there.
"""
import os
import pathlib
import struct

from harness import wait_until

RECORD = struct.Struct('<III20sq24x')
# Descriptors that come and go by themselves: a timer, a connection that is being closed, a log.
FD_SLACK = 3


def records_of(state):
    file = state / 'records'
    return [box.decode() for version, _, _, box, _ in RECORD.iter_unpack(file.read_bytes()) if version] \
        if file.exists() else []


def loops_of(folder):
    """Loop devices with an image below this folder, also one that has lost its name."""
    found = []
    for place in pathlib.Path('/sys/block').glob('loop*/loop/backing_file'):
        try:
            image = place.read_text().strip()
        except OSError:
            continue
        found += [image] if image.startswith(f'{folder}/') else []
    return found


def groups_of(state):
    """Of boxes, in every hierarchy; the group of the keeper itself is not counted."""
    instance = state / 'instance'
    if not instance.exists():
        return []
    name, found = 'coop-' + instance.read_text(), []
    for folder, folders, _ in os.walk('/sys/fs/cgroup'):
        if os.path.basename(folder) == name:
            found += [os.path.join(folder, inner) for inner in folders]
            folders.clear()
    return found


def processes_of(first, count):
    """All that run under an id of this range; zombies too."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            if entry.name.isdigit() and first <= entry.stat().st_uid < first + count:
                found.append(f'{entry.name} {(entry / "comm").read_text().strip()}')
        except OSError:
            continue
    return found


def mounts_of(pid, folder):
    try:
        lines = pathlib.Path(f'/proc/{pid}/mountinfo').read_text().splitlines()
    except OSError:
        return []
    return [line for line in lines if str(folder) in line]


def fds_of(pid):
    try:
        return len(os.listdir(f'/proc/{pid}/fd'))
    except OSError:
        return 0


def files_of(folder, skip=()):
    names = (os.path.relpath(os.path.join(path, name), folder)
             for path, _, files in os.walk(folder) for name in files)
    return sorted(name for name in names if name.split('/')[0] not in skip)


def count(server):
    """Lists of names, so that a failure says what it is, and numbers of descriptors."""
    keeper = server.keeper
    state, pid = keeper.state, keeper.process.pid if keeper.is_running() else 0
    return {
        'records': records_of(state),
        'loops': loops_of(state),
        'cgroups': groups_of(state),
        'processes': processes_of(keeper.id_base, keeper.ids),
        'mounts': mounts_of('self', keeper.folder),
        'mounts of the keeper': len(mounts_of(pid, '')),
        'files': files_of(state),
        'home': files_of(server.home, skip=('logs', 'templates', 'coop.db-wal', 'coop.db-shm')),
        'fds of the keeper': fds_of(pid),
        'fds of the server': fds_of(server.process.pid) if server.process is not None else 0,
    }


def grown(before, after):
    found = {}
    for name, old in before.items():
        new = after[name]
        if isinstance(old, list):
            more = [item for item in new if item not in old]
        else:
            more = new - old if new > old + FD_SLACK else 0
        if more:
            found[name] = more
    return found


def nothing_left(server, before):
    """The kernel ends some things in its own time, without an event."""
    found = {}

    def is_clean():
        found.clear()
        found.update(grown(before, count(server)))
        return not found
    try:
        wait_until(is_clean, 'nothing is left', 30)
    except AssertionError as error:
        raise AssertionError(f'left behind: {found}') from error
