# SPDX-License-Identifier: Apache-2.0
"""Real package clients in a box, through the door, with nothing configured: the door allows what the host's own
clients use."""
import os
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
ASK_S = 90  # the door asks them for a minute at most
SDK = pathlib.Path(__file__).parents[1] / 'sdk'


def copy_tree(root, path):
    target = root / str(path).lstrip('/')
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(['cp', '-aL', path, target], check=True)
    return target


def copy_with_libraries(root, path, name=None):
    shutil.copy(os.path.realpath(path), root / 'bin' / (name or pathlib.Path(path).name))
    for library in boxserver.libraries(path):
        if not (root / library.lstrip('/')).exists():
            copy_tree(root, library)


def furnish_pip(root):
    """Debian's python with its pip: others have their libraries where no box would look."""
    python = '/usr/bin/python3'
    ask = 'import os, pip, sysconfig; print(sysconfig.get_path("stdlib")); print(os.path.dirname(pip.__file__))'
    done = subprocess.run([python, '-c', ask], capture_output=True, text=True) if os.path.exists(python) else None
    if done is None or done.returncode != 0:
        return False
    copy_with_libraries(root, python, 'python3')
    for folder in done.stdout.split():
        for library in copy_tree(root, folder).rglob('*.so'):
            for needed in boxserver.libraries(library):
                if not (root / needed.lstrip('/')).exists():
                    copy_tree(root, needed)
    (root / 'usr/bin/python3').symlink_to('/bin/python3')
    return True


def furnish_go(root):
    if not shutil.which('go'):
        return False
    home = pathlib.Path(subprocess.run(['go', 'env', 'GOROOT'], capture_output=True, text=True, check=True).stdout.strip())
    for name in ('bin/go', 'VERSION', 'go.env'):
        if (home / name).exists():
            target = root / 'usr/lib/go' / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(home / name, target)
    (root / 'bin/go').symlink_to('/usr/lib/go/bin/go')
    return True


def furnish_cargo(root):
    """With the compiler, which cargo asks what machine this is."""
    which = ['rustup', 'which', 'cargo'] if shutil.which('rustup') else ['which', 'cargo']
    found = subprocess.run(which, capture_output=True, text=True).stdout.strip()
    if not found:
        return False
    home = pathlib.Path(os.path.realpath(found)).parent
    if not (home / 'rustc').exists():
        return False
    for name in ('cargo', 'rustc'):
        copy_with_libraries(root, str(home / name))
    (root / 'lib').mkdir(exist_ok=True)
    for library in (home.parent / 'lib').glob('*.so*'):
        shutil.copy(library, root / 'lib' / library.name)
    return True


def furnish_apt(root):
    if not shutil.which('apt-get'):
        return False
    boxserver.copy_program(root, 'apt-get')
    for path in ('/usr/lib/apt', '/etc/apt', '/usr/share/keyrings', '/usr/share/dpkg'):
        if os.path.exists(path):
            copy_tree(root, path)
    for settings in (root / 'etc/apt/apt.conf.d').glob('*'):
        if 'Invoke' in settings.read_text():  # what the host runs afterwards
            settings.unlink()
    for method in pathlib.Path('/usr/lib/apt/methods').iterdir():
        for library in boxserver.libraries(str(method)):
            if not (root / library.lstrip('/')).exists():
                copy_tree(root, library)
    return True


FURNISH = {'pip': furnish_pip, 'go': furnish_go, 'cargo': furnish_cargo, 'apt': furnish_apt}


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
    return {name for name, bring in FURNISH.items() if bring(root)}


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
    server.clients = furnish(server.keeper.templates / LAYER)
    try:
        server.start()
        yield server
        server.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def need(server, client):
    """That the box has this client, and that the host's own reaches what it uses."""
    if client not in server.clients:
        pytest.skip(f'{client} is not on this machine')

    def found():
        return server.get('/api/v1/door/status')['clients'].get(client)
    urls = wait_until(found, f'what {client} of this host uses', ASK_S)['urls']
    reached = [subprocess.run(['curl', '-sS', '-m', '20', '-o', '/dev/null', url], capture_output=True).returncode == 0
               for url in urls[:1]]
    if not urls or not all(reached):
        pytest.skip('the registry of this host cannot be reached')


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
    command = door.start_command(box, f'{{ {line}; }} >/tmp/out 2>&1', timeout=INSTALL_S, env={'HOME': '/home/user'})['id']
    wait_until(lambda: door.show(box, command)['state'] == 'ended', 'the install', INSTALL_S + WAIT_S)
    said = door.run(box, 'tail -20 /tmp/out')['stdout']
    assert door.show(box, command)['end']['exit_code'] == 0, said


def test_npm_install(door):
    registry(door)
    with door.box(timeout=600) as box:
        install(door, box, 'cd /tmp && npm install --no-audit --no-fund express jest')
        line = "cd /tmp && node -e 'require(\"express\"); console.log(require(\"jest/package.json\").name)'"
        assert door.run(box, line)['stdout'] == 'jest\n'


def test_pip_install(door):
    need(door, 'pip')
    with door.box(timeout=600) as box:
        install(door, box, 'cd /tmp && python3 -m pip install --no-cache-dir --target /tmp/site six')
        assert door.run(box, 'PYTHONPATH=/tmp/site python3 -c "import six; print(six.__name__)"')['stdout'] == 'six\n'


def test_go_mod_download(door):
    need(door, 'go')
    with door.box(timeout=600) as box:
        install(door, box, 'mkdir /tmp/m && cd /tmp/m && printf "module x\n\ngo 1.21\n\nrequire rsc.io/quote v1.5.2\n" >go.mod && '
                           'GOROOT=/usr/lib/go GOPATH=/tmp/gopath GOCACHE=/tmp/gocache GOTOOLCHAIN=local go mod download rsc.io/quote')
        assert 'quote.go' in door.run(box, 'ls /tmp/gopath/pkg/mod/rsc.io/quote@v1.5.2')['stdout']


def test_cargo_fetch(door):
    need(door, 'cargo')
    manifest = '[package]\\nname = "x"\\nversion = "0.1.0"\\nedition = "2021"\\n[dependencies]\\nitoa = "1"\\n'
    with door.box(timeout=600) as box:
        install(door, box, f"mkdir -p /tmp/c/src && cd /tmp/c && printf '{manifest}' >Cargo.toml && : >src/lib.rs && "
                           'CARGO_HOME=/tmp/cargo cargo fetch')
        assert 'itoa-1' in door.run(box, 'ls /tmp/cargo/registry/src/*')['stdout']


def test_apt_get(door):
    """Lists and a package, by apt's own methods; who signed them is the templates' matter."""
    need(door, 'apt')
    options = ('-o Dir::State=/tmp/apt/state -o Dir::Cache=/tmp/apt/cache -o APT::Architecture=amd64 '
               '-o Acquire::AllowInsecureRepositories=true -o APT::Get::AllowUnauthenticated=true '
               '-o Dir::State::status=/tmp/apt/status -o Acquire::Languages=none')
    with door.box(timeout=600) as box:
        install(door, box, 'mkdir -p /tmp/apt/state/lists/partial /tmp/apt/cache/archives/partial && : >/tmp/apt/status && '
                           f'cd /tmp && apt-get {options} update && apt-get {options} download hello')
        assert '.deb' in door.run(box, 'ls /tmp')['stdout']


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
