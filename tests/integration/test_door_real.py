# SPDX-License-Identifier: Apache-2.0
"""Real package clients in a box, through the door, with nothing configured: the door allows what the host's own
clients use."""
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import boxserver
from boxserver import API, LAYER, need_boxes
from doorserver import DoorServer
from harness import WAIT_S, wait_until

BUNDLE = '/etc/ssl/certs/ca-certificates.crt'
INSTALL_S = 150
SDK = pathlib.Path(__file__).parents[1] / 'sdk'


def furnish(root):
    """node, npm and curl of this machine, and the certificates that every template has."""
    for name in ('node', 'curl', 'uname', 'dirname'):
        boxserver.copy_program(root, name)
    npm = pathlib.Path(shutil.which('npm')).resolve()
    modules = next(p for p in npm.parents if p.name == 'node_modules')
    (root / 'usr/lib').mkdir(parents=True, exist_ok=True)
    subprocess.run(['cp', '-a', modules, root / 'usr/lib/node_modules'], check=True)
    (root / 'usr/bin').mkdir(exist_ok=True)
    (root / 'usr/bin/env').symlink_to('/bin/env')
    (root / 'bin/npm').symlink_to(pathlib.Path('/usr/lib/node_modules') / npm.relative_to(modules))
    (root / 'etc/ssl/certs').mkdir(parents=True)
    shutil.copy(BUNDLE, root / 'etc/ssl/certs')


@pytest.fixture(scope='module')
def door():
    need_boxes()
    if not all(shutil.which(name) for name in ('node', 'npm', 'curl')) or not pathlib.Path(BUNDLE).exists():
        pytest.skip('needs node, npm, curl and certificates on this machine')
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    place.chmod(0o711)
    server = DoorServer(place, env={'COOP_DOOR_ASK_CLIENTS': 'true', 'COOP_BOXES_MEMORY': '1500MiB',
                                    'COOP_BOXES_DISK': '1GiB', 'COOP_BOXES_INODES': '200000'})
    server.home.mkdir(mode=0o700)
    server.keeper.prepare()
    furnish(server.keeper.templates / LAYER)
    try:
        server.start()
        yield server
        server.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def registry(server):
    def found():
        return server.get('/api/v1/door/status')['clients'].get('npm')
    urls = wait_until(found, 'what npm of this host uses')['urls']
    answer = subprocess.run(['curl', '-sS', '-m', '20', '-o', '/dev/null', '-w', '%{http_code}', urls[0]],
                            capture_output=True, text=True)
    if answer.stdout != '200':
        pytest.skip('the registry of this host cannot be reached')
    return urls[0]


def test_curl(door):
    url = registry(door)
    with door.box() as box:
        ask = "curl -sS -m 20 -o /dev/null -w '%{http_code}' "
        assert door.run(box, ask + url)['stdout'] == '200'
        refused = door.run(box, ask + 'https://nobody.example/')
        assert refused['end']['exit_code'] != 0 and '403' in refused['stderr'], refused
        rules = door.get(f'/api/v1/door/rules?box={box}')['rules']
        assert any(r['source'] == 'npm of this host' and r['inside'] for r in rules)


def install(door, box, line):
    """Runs a line that takes long, and must end well."""
    command = door.start_command(box, f'{line} >/tmp/out 2>&1', timeout=INSTALL_S, env={'HOME': '/home/user'})['id']
    wait_until(lambda: door.show(box, command)['state'] == 'ended', 'the install', INSTALL_S + WAIT_S)
    said = door.run(box, 'tail -20 /tmp/out')['stdout']
    assert door.show(box, command)['end']['exit_code'] == 0, said


def test_npm_install(door):
    registry(door)
    with door.box(timeout=600) as box:
        install(door, box, 'cd /tmp && npm install --no-audit --no-fund express jest')
        line = "cd /tmp && node -e 'require(\"express\"); console.log(require(\"jest/package.json\").name)'"
        assert door.run(box, line)['stdout'] == 'jest\n'


def test_official_clients(door):
    """With what every box finds in its environment, and a script in the place of a model."""
    registry(door)
    script = {'kind': 'script', 'script': (SDK / 'clients.yaml').read_text()}
    assert door.ask('PUT', '/api/v1/providers/demo', body=script).status == 200
    with door.box(timeout=600, agent_id='coder-1') as box:
        for name in ('package.json', 'package-lock.json', 'openai.mjs', 'anthropic.mjs'):
            answer = door.ask('PUT', f'{API}/{box}/files?path=/home/user/{name}', body=(SDK / name).read_bytes())
            assert answer.status in (200, 201), answer
        install(door, box, 'cd && npm ci --no-audit --no-fund --ignore-scripts')
        for client, variable in (('openai', 'OPENAI_BASE_URL'), ('anthropic', 'ANTHROPIC_BASE_URL')):
            done = door.run(box, f'cd && node {client}.mjs "${variable}"', timeout=WAIT_S)
            assert done['end']['exit_code'] == 0, (done, door.door_log.read_text()[-2000:])
        row = wait_until(lambda: next((r for r in door.get('/api/v1/usage?by=agent')['rows'] if r['id'] == 'coder-1'
                                       and r['calls']), None), 'the account')
        assert row['output_tokens'] > 0
