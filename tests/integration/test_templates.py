# SPDX-License-Identifier: Apache-2.0
"""Templates: built, joined, interrupted, updated and removed, by a real server and its builder."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import tempfile
import threading

import pytest

from builds import Builder, make_root, stale, wait_clean
from harness import wait_until

HEX = '[0-9a-f]' * 40


@pytest.fixture(scope='module')
def root():
    with tempfile.TemporaryDirectory(prefix='coop-root-') as folder:
        os.chmod(folder, 0o755)
        yield make_root(pathlib.Path(folder, 'root'))


@pytest.fixture
def builder(program):
    made = Builder(program, pathlib.Path(tempfile.mkdtemp(prefix='coop-')))
    made.mkdir('store')
    yield made
    made.remove()


@pytest.fixture
def start(builder, root):
    """start(...) gives a server that knows the template `tiny`."""
    made = []

    def make(recipes=None, **options):
        server = builder.server(**options)
        server.home.mkdir(mode=0o700, exist_ok=True)
        for name, text in {'tiny': tiny(root), **(recipes or {})}.items():
            server.recipe(name, text)
        os.chown(server.home, builder.uid, builder.gid)
        made.append(server)
        return server.start()

    yield make
    for server in made:
        server.finish()


def tiny(root, more=''):
    return f'''root: folder
folder: {root}
commands:
  - echo made > /made
  - ln -s /made /link
verify:
  cat /made: made
  id -u: "1000"
user: user
workdir: /home/user
{more}'''


TOP = '''from: tiny
env: {GREETING: hello}
files:
  /usr/bin/greet: {content: "#!/bin/sh\\necho $GREETING\\n", mode: 0755}
commands: [rm /link]
verify:
  greet: hello
  ls /: bin
test: greet
'''


def layers(store):
    return sorted(p.name for p in store.glob(HEX))


def test_build(start, builder):
    server = start({'top': TOP})
    store = builder.folder / 'store'
    assert server.template('top')['state'] == 'available'
    seen = []
    event, shown = server.build('top', on_progress=seen.append)
    assert event == 'done', shown
    assert shown['state'] == 'built' and shown['test'] == 'greet'
    assert shown['versions']['greet'] == 'hello' and shown['versions']['id -u'] == '1000'
    assert len(shown['layers']) == 2 and layers(store) == sorted(shown['layers'])
    percents = [p['percent'] for p in seen]
    assert percents == sorted(percents) and {p['step'] for p in seen} >= {'copy', 'commands', 'verify', 'finish'}
    top, below = (store / name for name in shown['layers'])
    assert below.stat().st_uid == builder.first
    assert os.lstat(top / 'link').st_rdev == 0  # a whiteout
    assert not (top / 'made').exists() and (below / 'made').read_text() == 'made\n'
    for place in ('dev', 'proc', 'sys'):
        assert os.listdir(below / place) == []
    assert not stale(store)
    # What is there is not built again, and not forgotten.
    assert server.build('top')[1]['hash'] == shown['hash']
    server.finish()
    again = start({'top': TOP})
    assert again.template('top')['hash'] == shown['hash']
    told = [(e['kind'], e['data']['name']) for e in again.get('/api/v1/events?kind=template.*')['events']]
    assert told.count(('template.started', 'top')) == 1 and told.count(('template.built', 'top')) == 1
    assert told.count(('template.built', 'tiny')) == 1


def test_unknown_and_wrong(start):
    server = start({'bad': 'from: tiny\nwhat: 1\n', 'fails': 'from: tiny\ncommands: ["echo no luck; exit 3"]\n',
                    'lies': 'from: tiny\nverify: {cat /made: other}\n',
                    'linked': 'from: tiny\ncommands: [rm -r /dev || true; ls -d /dev]\n'})
    assert server.ask('GET', '/api/v1/templates/none').status == 404
    assert server.ask('POST', '/api/v1/templates/none/build').status == 404
    assert 'bad.yaml:2:1' in server.template('bad')['error']
    event, data = server.build('fails')
    assert event == 'failed' and 'no luck' in data['message'] and 'exit 3' in data['message']
    assert server.template('fails')['state'] == 'failed'
    event, data = server.build('lies')
    assert event == 'failed' and "says 'made'" in data['message']
    assert server.ask('POST', '/api/v1/templates/tiny/build', body=b'{"updated":1}').status == 400
    assert server.template('tiny')['state'] == 'built'
    assert not stale(server.home.parent.parent / 'store')


def test_go_that_nobody_answers_for(start):
    """Neither the recipe nor a go of this machine: it is said what would help."""
    path = '/usr/sbin:/usr/bin:/sbin:/bin'
    if shutil.which('go', path=path):
        pytest.skip('go is among the system\'s programs')
    server = start({'bare': 'from: tiny\ngo: {version: 1.21.13}\n'}, env={'PATH': path})
    event, data = server.build('bare')
    assert event == 'failed'
    for words in ('no sum of Go 1.21.13 for', 'install go', "h1:...' to 'go'"):
        assert words in data['message'], data


def test_commands_are_confined(start, builder):
    """No network, no file of the server, no way back to the host."""
    checks = '''from: tiny
commands:
  - '! cat /proc/net/route | head -n 2 | (read a; read b)'
  - '! cat %s/key'
  - '! cat /etc/shadow'
  - '[ "$(ls /proc | head -n 1)" = 1 ]'
  - '! mkdir /proc/x'
''' % (builder.folder / 'server' / 'home')
    server = start({'spy': checks})
    assert (server.home / 'key').exists()
    event, data = server.build('spy')
    assert event == 'done', data


SLOW = 'from: tiny\ncommands: ["i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]\n'


@pytest.mark.parametrize('plant', ['ln -s /etc/passwd', 'ln -s nowhere', 'mkdir', 'mkfifo'])
def test_certificates_are_a_file(start, builder, plant):
    """Whatever the commands of a recipe have put in their place."""
    ours = pathlib.Path('/etc/ssl/certs/ca-certificates.crt')
    if not ours.exists():
        pytest.skip('this machine has no certificates')
    server = start({'odd': f'from: tiny\ncommands: ["rm -rf {ours}; mkdir -p {ours.parent}; {plant} {ours}"]\n'})
    event, shown = server.build('odd')
    assert event == 'done', shown
    made = builder.folder / 'store' / shown['layers'][0] / ours.relative_to('/')
    assert not made.is_symlink() and made.read_bytes() == ours.read_bytes()


PLANTS = {
    'sudo': 'rm -rf /usr/bin; ln -s {there} /usr/bin',
    'sources': 'mkdir -p /etc/apt; ln -s {there}/sources.list /etc/apt/sources.list',
    'parts': 'mkdir -p /etc/apt; ln -s {there}/parts /etc/apt/sources.list.d',
    'part': 'mkdir -p /etc/apt/sources.list.d; ln -s {there}/parts/a.list /etc/apt/sources.list.d/a.list',
    'conf': 'mkdir -p /etc/apt; ln -s {there} /etc/apt/apt.conf.d',
    'lists': 'mkdir -p /var/lib; ln -s {there} /var/lib/apt',
    'npm': 'mkdir -p /usr/local/lib/node_modules/x; mkfifo /usr/local/lib/node_modules/x/package.json',
    'passwd': 'rm /etc/passwd; ln -s {there}/passwd /etc/passwd',
}
FOUND = {'sudo': 'leads out of', 'sources': 'is not a file', 'parts': 'leads out of', 'part': 'is not a file',
         'passwd': 'no /etc/passwd'}


@pytest.fixture
def host_folder(builder):
    """Files of the host that the builder may change."""
    with tempfile.TemporaryDirectory(prefix='coop-host-', dir='/var/tmp') as folder:
        there = pathlib.Path(folder)
        for name in ('sources.list', 'parts/a.list', '99mmdebstrap', 'lists/precious', 'sudo', 'passwd'):
            (there / name).parent.mkdir(exist_ok=True)
            (there / name).write_text('deb http://me:secret@mirror/ x y\n')
        (there / 'passwd').write_text('user:x:1000:1000::/:/bin/sh\n')
        for path in [there, *there.rglob('*')]:
            path.chmod(0o777)
            if os.geteuid() == 0:
                os.chown(path, builder.uid, builder.gid)
        yield there


@pytest.mark.parametrize('plant', PLANTS)
def test_links_lead_to_no_file_of_the_host(start, host_folder, plant):
    """The end of a build works on a tree that packages and commands have written."""
    line = PLANTS[plant].format(there=host_folder)
    before = {p: p.read_bytes() for p in host_folder.rglob('*') if p.is_file()}
    more = 'user: user\nverify: {"echo x": x}\n' if plant == 'passwd' else ''
    server = start({'odd': f'from: tiny\nsudo: true\ncommands: ["{line}"]\n{more}'})
    event, shown = server.build('odd')
    assert {p: p.read_bytes() for p in host_folder.rglob('*') if p.is_file()} == before
    assert (event == 'failed' and FOUND[plant] in shown['message']) if plant in FOUND else event == 'done', shown


def test_two_builds_join(start):
    server = start({'slow': SLOW})
    results = []
    threads = [threading.Thread(target=lambda: results.append(server.build('slow'))) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r[0] for r in results] == ['done'] * 3
    assert len({r[1]['hash'] for r in results}) == 1
    kinds = [e['kind'] for e in server.get('/api/v1/events?kind=template.*')['events']]
    assert kinds.count('template.started') == 1


def test_reader_goes_away(start):
    server = start({'slow': SLOW})
    server.begin_build('slow').close()
    wait_until(lambda: server.template('slow')['state'] == 'built', 'built without a reader')


@pytest.mark.parametrize('step', ['start', 'copy', 'commands', 'verify', 'finish'])
def test_builder_killed(start, builder, step):
    server = start({'slow': SLOW})
    killed = []

    def on_progress(p):
        if p['step'] == step and not killed:
            killed.extend(server.builders())
            for pid in killed:
                with contextlib.suppress(ProcessLookupError):  # its last step was shorter than our look
                    os.kill(pid, signal.SIGKILL)

    name = 'slow' if step == 'commands' else 'tiny'
    event, _ = server.build(name, on_progress=on_progress)
    server.finish()
    again = start({'slow': SLOW})
    wait_clean(builder.folder / 'store')
    assert again.build(name)[0] == 'done'
    assert event in ('failed', 'done')


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='a release build has no failpoints')
@pytest.mark.parametrize('point', ['build-begin', 'build-mount', 'build-root', 'build-commands', 'build-verify',
                                   'build-sync', 'build-renamed', 'build-cleanup', 'build-remove'])
def test_crash_points(start, builder, point):
    server = start(env={'COOP_FAIL_AT': f'{point}:1'})
    event, data = server.build('tiny')
    server.finish()
    again = start()
    store = builder.folder / 'store'
    wait_clean(store)
    event, data = again.build('tiny')
    assert event == 'done', data
    # What else is there goes once the keeper has said which boxes live.
    assert set(data['layers']) <= set(layers(store)) and len(layers(store)) <= 2
    assert not stale(store)


def test_server_killed(start, builder):
    """The builder follows its server and cleans up behind it."""
    server = start({'slow': SLOW})
    with server.begin_build('slow'):
        pids = wait_until(server.builders, 'the builder runs')
        server.kill()
        wait_until(lambda: not any(os.path.exists(f'/proc/{pid}') for pid in pids), 'the builder is gone')
    assert not stale(builder.folder / 'store')


def test_update_and_remove(start, builder, root):
    server = start({'top': TOP})
    store = builder.folder / 'store'
    _, before = server.build('top')
    assert server.ask('DELETE', '/api/v1/templates/tiny').status == 409
    event, after = server.build('tiny', update=True)
    assert event == 'done' and after['hash'] != before['hash']
    assert server.ask('DELETE', '/api/v1/templates/top').status == 204
    assert server.template('top')['state'] == 'available'
    assert server.ask('DELETE', '/api/v1/templates/tiny').status == 204
    assert server.ask('DELETE', '/api/v1/templates/tiny').status == 404
    assert not list(store.glob('*.json'))


def test_command_line(start, builder, coop):
    server = start({'top': TOP})

    def run(*args):
        return coop('template', *args, env={'SANDBOX_SERVICE_URL': f'http://{server.host}',
                                                'COOP_API_KEY': server.key})

    built = run('build', 'top')
    assert built.returncode == 0 and 'greet: hello' in built.stdout, built
    listed = run('ls', '-o', 'json')
    rows = {t['name']: t for t in json.loads(listed.stdout)}
    assert rows['top']['state'] == 'built' and rows['top']['size'] > 0 and rows['top']['age'] >= 0
    assert rows['nodejs-18']['state'] == 'available'
    assert 'top' in run('ls').stdout
    shown = json.loads(run('show', 'top', '-o', 'json').stdout)
    assert shown['layers'] == rows['top']['layers']
    assert run('show', 'nothing').returncode == 4
    assert run('build', 'nothing').returncode == 4
    assert run('update', 'top', '-o', 'json').returncode == 0
    assert run('rm', 'top').returncode == 0
    assert run('rm', 'top').returncode == 4
