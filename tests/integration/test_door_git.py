# SPDX-License-Identifier: Apache-2.0
"""`git clone https://…` in a box, through its door, with nothing configured: as from GitHub, but the host
is one of the test's own networks."""
import pathlib
import shutil
import ssl
import subprocess
import tempfile

import pytest

from boxserver import LAYER, need_boxes
from doorserver import INSIDE, DoorServer, Networks, need_networks
from gitrepo import GitServer, Source
from workserver import GIT_CORE, add_git

PORT = 8443
URL = f'https://{INSIDE}:{PORT}/source/.git'


def make_certificate(folder):
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
                    '-subj', '/CN=test', '-addext', f'subjectAltName=IP:{INSIDE}', '-keyout', folder / 'key', '-out',
                    folder / 'cert'], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / 'cert', folder / 'key')
    return context


def upstream(networks, folder):
    listener = make_certificate(folder).wrap_socket(networks.listen(PORT), server_side=True)
    return GitServer(folder, listener=listener)


@pytest.fixture
def server():
    need_boxes()
    need_networks()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    networks = Networks()
    try:
        place.chmod(0o711)  # the door is another user
        made = DoorServer(place, prefix_of_door=networks.enter())
        made.networks = networks
        made.home.mkdir(mode=0o700)
        made.keeper.prepare()
        root = made.keeper.templates / LAYER
        add_git(root)
        core = root / str(GIT_CORE).lstrip('/')
        shutil.copy(core / 'git-remote-http', core / 'git-remote-https')
        made.start()
        try:
            yield made
        finally:
            made.finish()
    finally:
        networks.close()
        shutil.rmtree(place, ignore_errors=True)


def test_clone(server):
    source = Source(server.folder / 'source')
    with upstream(server.networks, server.folder) as git, server.box() as box:
        ca = (server.folder / 'cert').read_text()
        server.run(box, argv=['/bin/bash', '-c', 'printf %s "$0" > /tmp/ca', ca])

        def clone():
            return server.run(box, f'GIT_SSL_CAINFO=/tmp/ca git clone -q {URL} /tmp/one && git -C /tmp/one rev-parse HEAD')
        refused = clone()
        assert refused['end']['exit_code'] != 0 and '403' in refused['stderr'] and git.seen == []
        server.rule('allow', INSIDE, ports=[PORT], inside=True)
        done = clone()
        assert done['stdout'].strip() == source.head(), done
        assert [path for _, path, _ in git.seen if 'git-upload-pack' in path]
