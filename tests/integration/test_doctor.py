# SPDX-License-Identifier: Apache-2.0
"""`coop doctor` on this machine, and on this machine with something taken away."""
import json
import subprocess

import pytest


def test_report(coop, who):
    done = coop('doctor', who=who)
    report = coop('doctor', '-o', 'json', who=who)
    assert done.returncode == report.returncode
    lines = done.stdout.splitlines()
    problems = [line for line in lines if line.startswith(('degraded', 'missing', 'advice'))]
    assert sum(line.startswith('          FIX: ') for line in lines) == len(problems)
    assert done.returncode == (1 if any(line.startswith('missing') for line in lines) else 0)
    assert lines[-1].endswith('missing')


def test_json(coop, who):
    done = coop('doctor', '--home', coop.folder / 'data', '-o', 'json', who=who)
    report = json.loads(done.stdout)
    probes = {p['name']: p for p in report['probes']}
    assert {'kernel', 'user-namespaces', 'overlay', 'seccomp', 'landlock', 'cgroups', 'kvm', 'git'} <= set(probes)
    assert all((p['state'] == 'ok') == (p['fix'] is None) for p in probes.values())
    missing = [p for p in probes.values() if p['need'] == 'needed' and p['state'] == 'missing']
    assert report['ok'] == (not missing) == (done.returncode == 0)
    assert str(coop.folder / 'data') in probes['data-folder']['detail']


def states(coop, *args, code, **options):
    return {p['name']: p for p in coop.json('doctor', *args, code=code, **options)['probes']}


def test_missing_programs(coop):
    probes = states(coop, code=1, env={'PATH': '/nonexistent'})
    assert probes['git']['state'] == 'missing' and probes['git']['fix'].endswith('apt-get install git')
    assert probes['runsc']['state'] == 'degraded'


def test_a_data_folder_of_somebody_else(coop):
    probes = states(coop, '--home', '/proc/coop', code=1, who='user')
    assert probes['data-folder']['state'] == 'missing'
    open_folder = coop.folder / 'open'
    open_folder.mkdir(mode=0o755)
    probes = states(coop, '--home', open_folder, code=coop('doctor').returncode)
    assert probes['data-folder']['state'] == 'degraded'
    assert probes['data-folder']['fix'] == f"chmod 0700 '{open_folder}'"


@pytest.mark.usefixtures('user_namespaces')
def test_no_more_user_namespaces(coop):
    """Root of a user namespace may lower its own limit: a machine that has them switched off."""
    script = f'echo 0 >/proc/sys/user/max_user_namespaces; exec {coop.program} doctor'
    done = subprocess.run(['unshare', '--user', '--map-root-user', 'sh', '-c', script], text=True, check=False,
                          env=coop.environment(), capture_output=True, timeout=60)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    for name in ('user-namespaces', 'overlay'):
        at = next(i for i, line in enumerate(lines) if line.split()[1:2] == [name])
        assert lines[at].startswith('missing') and 'No space left on device' in lines[at]
        assert 'sysctl -w user.max_user_namespaces=' in lines[at + 1]


def test_no_new_filters(coop):
    """Under a filter that refuses seccomp(2), as some containers have it."""
    script = ('import ctypes, os, struct, sys\n'
              'libc = ctypes.CDLL(None, use_errno=True)\n'
              'libc.prctl(38, 1, 0, 0, 0)\n'
              # ld nr; jeq seccomp(317) -> errno EPERM; else allow
              'code = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 317, 6, 0, 0, 0x50001, 6, 0, 0, 0x7fff0000)\n'
              'buf = ctypes.create_string_buffer(code)\n'
              'prog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(buf)))\n'
              'assert libc.prctl(22, 2, prog, 0, 0) == 0\n'
              'os.execv(sys.argv[1], sys.argv[1:])\n')
    done = subprocess.run(['/usr/bin/python3', '-c', script, coop.program, 'doctor'], text=True, check=False,
                          env=coop.environment(), capture_output=True, timeout=60)
    assert done.returncode == 1
    seccomp = next(line for line in done.stdout.splitlines() if line.split()[1:2] == ['seccomp'])
    assert seccomp.startswith('missing') and 'installing a filter: Operation not permitted' in seccomp
