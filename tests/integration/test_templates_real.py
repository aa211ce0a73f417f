# SPDX-License-Identifier: Apache-2.0
"""The templates that come with Coop, made of real packages.

They are kept in a folder that outlives the run (COOP_TEST_CACHE, or coop-templates in the cache of
the user who builds), so only the first run, and one after a change of a recipe, takes its minute.
"""
import contextlib
import fcntl
import os
import pathlib
import pwd
import shutil
import tempfile
import threading

import pytest

from builds import Builder

UNREACHABLE = ('read the package lists', 'Failed to fetch', 'ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'no Go module proxy',
               'Could not resolve')


def cache_folder(builder):
    given = os.environ.get('COOP_TEST_CACHE')
    home = pathlib.Path(pwd.getpwuid(builder.uid).pw_dir)
    path = pathlib.Path(given) if given else (home if home.is_dir() else pathlib.Path('/var/tmp')) / '.cache/coop-templates'
    for folder in [*reversed(path.parents), path]:
        if not folder.exists():
            folder.mkdir(mode=0o700)
            os.chown(folder, builder.uid, builder.gid)
    return path


@contextlib.contextmanager
def alone(builder):
    """Several tests share the folder, and an empty one is filled by one of them at a time."""
    with open(f'{cache_folder(builder)}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope='module')
def builder(program):
    made = Builder(program, pathlib.Path(tempfile.mkdtemp(prefix='coop-')))
    yield made
    made.remove()


@pytest.fixture(scope='module')
def server(builder):
    one = builder.server(store=cache_folder(builder), env={'GOPROXY': os.environ['GOPROXY']}
                         if 'GOPROXY' in os.environ else {})
    one.env['PATH'] = os.environ['PATH']
    with alone(builder):
        yield one.start()
        one.finish()


def build(server, name):
    event, data = server.build(name)
    if event == 'failed' and any(word in data['message'] for word in UNREACHABLE):
        pytest.skip('no package source can be reached here')
    assert event == 'done', data
    return data


def run(server, builder, template, commands):
    """What they print, run as the template's user in its layers and without network."""
    plan = {'action': 'try', 'store': server.env['COOP_TEMPLATES_DIR'], 'key': 'try', 'work': f'try.tmp-{os.getpid()}',
            'lowers': template['layers'], 'user': 'user', 'workdir': '/home/user',
            'env': ['NODE_PATH=/usr/local/lib/node_modules', 'PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin'],
            'verify': [{'command': c, 'want': ''} for c in commands]}
    code, said = builder.run(plan)
    assert code == 0, said[-1]
    return [said[-1]['done']['versions'][c] for c in commands]


def test_base(server, builder):
    base = build(server, 'base')
    node, npm, python, pytest_, git, user, shim = run(server, builder, base, [
        'node --version', 'npm --version', 'python3 --version', 'pytest --version', 'git --version', 'id -un',
        'ls /usr/bin/sudo'])
    assert node.startswith('v') and npm[0].isdigit() and python.startswith('Python 3.')
    assert pytest_.startswith('pytest') and git.startswith('git version')
    assert user == 'user' and shim == '/usr/bin/sudo'
    assert run(server, builder, base, ['ls /usr/share/man/man1 | wc -l',
                                       'echo "int main(void){return 0;}" > x.c && gcc x.c && ./a.out && echo ran',
                                       'python3 -m venv --without-pip v && v/bin/python -c "print(1)"',
                                       'cat /etc/apt/apt.conf.d/99mmdebstrap 2>/dev/null || echo clean',
                                       'ls /etc/machine-id 2>/dev/null || echo none']) == ['0', 'ran', '1', 'clean', 'none']


def test_nodejs(server, builder):
    t = build(server, 'nodejs-18')
    assert t['test'] == 'npm test' and t['versions']['node --version'].startswith('v18.')
    write = '''echo 'test("sum", () => expect(1 + 1).toBe(2))' > a.test.js && echo '{"scripts":{"test":"jest"}}' > package.json'''
    got = run(server, builder, t, [f'{write} && npm test 2>&1 | grep "^Tests:"', '''node -p "typeof require('express')"'''])
    assert '1 passed' in got[0] and got[1] == 'function'


def test_python(server, builder):
    t = build(server, 'python-3.11')
    assert t['test'] == 'pytest' and t['versions']['python3 --version'].startswith('Python 3.11.')
    got = run(server, builder, t, ['python3 -c "import requests; print(requests.__name__)"',
                                   'echo "def test_a(): assert 1" > test_a.py && pytest -q | tail -n 1'])
    assert got[0] == 'requests' and '1 passed' in got[1]


def test_go(server, builder):
    t = build(server, 'go-1.21')
    assert t['test'].startswith('go test') and t['versions']['go version'].startswith('go version go1.21.')
    lines = r'''mkdir m && cd m && go mod init m 2>/dev/null && printf 'package m\nimport "testing"\nfunc TestA(t *testing.T) {}\n' > a_test.go && go test ./...'''
    assert run(server, builder, t, [lines])[0].startswith('ok')


def test_roles(server, builder):
    """What agents of each role work with."""
    coder = build(server, 'coder')
    assert coder['user'] == 'agent' and coder['versions']['eslint --version'].startswith('v9.')
    assert run(server, builder, coder, ['node --version'])[0].startswith('v20.')
    reviewer = build(server, 'reviewer')
    got = run(server, builder, reviewer, [
        """printf 'import subprocess\\nsubprocess.call(input(), shell=True) # nosec\\n' > a.py &&
        bandit -q --ignore-nosec -s B322 -f json ./a.py | grep -c '"issue_severity": "HIGH"'""",
        """printf 'key = "AKIAIOSFODNN7EXAMPL3" # pragma: allowlist secret\\n' > b.py && detect-secrets -c 1 scan --no-verify
        --disable-filter detect_secrets.filters.allowlist.is_line_allowlisted ./b.py | grep -c '"type": "AWS'""".replace('\n', ' '),
        """printf '/* eslint-disable */ eval(process.argv[2]);\\n' > c.js &&
        eslint --no-config-lookup --no-inline-config -c /usr/local/share/coop/eslint.config.cjs -f json ./c.js | grep -c detect-eval-with-expression""",
        """printf 'int main(void) { int a[2]; a[3] = 1; return a[0]; }\\n' > e.c && cppcheck --quiet
        '--template={file}\\t{line}\\t{severity}\\t{id}' ./e.c 2>&1""".replace('\n', ' ')])
    assert [int(n) for n in got[:3]] == [1, 1, 1] and got[3].split() == ['e.c', '1', 'error', 'arrayIndexOutOfBounds'], got
    assert build(server, 'tester')['versions']['playwright --version'].startswith('Version')


@pytest.mark.skipif(not shutil.which('go'), reason='go is not installed')
def test_go_without_a_sum(server, builder):
    """Where the recipe has none for this machine, the go of this machine answers for what it fetches."""
    server.recipe('go-unpinned', 'from: base\ngo: {version: 1.21.13}\nverify: {/usr/local/go/bin/go version: go version go1.21.13}\n')
    t = build(server, 'go-unpinned')
    assert run(server, builder, t, ['/usr/local/go/bin/go version'])[0].startswith('go version go1.21.13 ')


def test_names_promise_versions(server):
    """What cannot be had is refused with what there is."""
    server.recipe('python-2.9', 'from: base\npackages: [python2.9]\n')
    server.recipe('python-9', 'from: base\nverify: {python3 --version: "Python 9."}\n')
    build(server, 'base')
    event, data = server.build('python-2.9')
    assert event == 'failed' and "package 'python2.9' is not in this machine's package sources" in data['message']
    event, data = server.build('python-9')
    assert event == 'failed' and "says 'Python 9.…'; what can be had here says 'Python 3." in data['message']


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can take the network away')
@pytest.mark.parametrize('fresh', [False, True])
def test_offline(server, builder, fresh):
    """A layer whose packages are in the cache is made without network, whatever its hash."""
    t = build(server, 'python-3.11')
    plan = {'action': 'build', 'store': server.env['COOP_TEMPLATES_DIR'], 'key': f'offline-{os.getpid()}',
            'work': f'offline.tmp-{os.getpid()}', 'lowers': t['layers'][1:], 'packages': ['python3-requests'],
            'fresh': fresh, 'verify': [{'command': 'python3 -c "import requests; print(1)"', 'want': '1'}],
            'user': 'user', 'workdir': '/home/user'}
    store = pathlib.Path(plan['store'])
    code, said = builder.run(plan, before=['unshare', '--net'])
    (store / f'{plan["key"]}.layer').unlink(missing_ok=True)
    assert code == 0, said[-1]
    builder.run({'action': 'remove', 'store': plan['store'], 'names': [said[-1]['done']['layer']]})


class Watch(threading.Thread):
    """In which networks the dpkg of a root ran, while this is entered; apt asks the host's too."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.networks = threading.Event(), set()

    def run(self):
        while not self.over.wait(0.01):
            for place in pathlib.Path('/proc').glob('[0-9]*'):
                with contextlib.suppress(OSError):
                    if (place / 'comm').read_text() == 'dpkg\n' and os.readlink(place / 'root') != '/':
                        self.networks.add(os.readlink(place / 'ns/net'))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees others' namespaces")
@pytest.mark.parametrize('root', [False, True])
def test_what_packages_bring_has_no_network(server, builder, root):
    """Everything is fetched before anything is unpacked, for a root and for what comes on top of one."""
    base = build(server, 'base')
    name = f'quiet-{root}-{os.getpid()}'
    plan = {'action': 'build', 'store': server.env['COOP_TEMPLATES_DIR'], 'key': name, 'work': f'{name}.tmp-1',
            'packages': ['bc', 'gawk'], 'verify': [{'command': 'echo 6*7 | bc', 'want': '42'}], 'user': 'root',
            'workdir': '/', **({'root': 'debian'} if root else {'lowers': base['layers']})}
    with Watch() as watch:
        code, said = builder.run(plan)
    (pathlib.Path(plan['store']) / f'{name}.layer').unlink(missing_ok=True)
    assert code == 0, said[-1]
    builder.run({'action': 'remove', 'store': plan['store'], 'names': [said[-1]['done']['layer']]})
    assert watch.networks and os.readlink('/proc/self/ns/net') not in watch.networks
