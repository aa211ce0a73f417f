# SPDX-License-Identifier: Apache-2.0
"""Other programs that start a sandbox, as command lines that run `true` in a given root."""
import json
import shutil

# crun refuses a host with both versions of cgroups unless it sees only one of them.
HIDE_UNIFIED = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'


def need(program):
    if shutil.which(program) is None:
        raise FileNotFoundError(f'{program} is not installed')


def bundle(folder, root, name):
    place = folder / name
    if not place.exists():
        place.mkdir()
        mounts = [{'destination': '/proc', 'type': 'proc', 'source': 'proc'},
                  {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs'}]
        kinds = ['pid', 'mount', 'network', 'ipc', 'uts']
        config = {'ociVersion': '1.0.2', 'root': {'path': str(root), 'readonly': True}, 'hostname': 'box',
                  'process': {'terminal': False, 'user': {'uid': 0, 'gid': 0}, 'args': ['/bin/true'], 'cwd': '/',
                              'env': ['PATH=/usr/bin:/bin'], 'noNewPrivileges': True},
                  'mounts': mounts, 'linux': {'namespaces': [{'type': kind} for kind in kinds]}}
        (place / 'config.json').write_text(json.dumps(config))
    return place


def crun(folder, root):
    need('crun')
    return ['unshare', '--mount', 'sh', '-c', HIDE_UNIFIED, 'sh', 'crun', 'run', '--bundle',
            bundle(folder, root, 'crun'), 'coop-bench']


def runsc(folder, root):
    need('runsc')
    return ['runsc', '--platform=ptrace', '--network=none', '--ignore-cgroups', f'--root={folder}/runsc-state', 'run',
            f'--bundle={bundle(folder, root, "runsc")}', 'coop-bench']


def podman(folder, root):
    need('podman')
    need('runc')
    # It writes into the root, so it gets an overlay of it; its own state goes with the folder.
    return ['podman', '--root', folder / 'podman', '--runroot', folder / 'podman-run', '--cgroup-manager=cgroupfs',
            '--runtime=runc', 'run', '--rm', '--network=none', '--ulimit', 'nofile=1024:1024',
            '--ulimit', 'nproc=4096:4096', '--rootfs', f'{root}:O', 'true']


ALL = {'crun': crun, 'runsc': runsc, 'podman': podman}
