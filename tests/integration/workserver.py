# SPDX-License-Identifier: Apache-2.0
"""A server with a forge and a door, whose boxes have git."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from boxserver import API, LAYER, Keeper, copy_program, libraries, need_boxes
from doorserver import DoorServer
from harness import wait_until

GIT_CORE = pathlib.Path('/usr/lib/git-core')
PEOPLE = {'GIT_AUTHOR_NAME': 'A', 'GIT_AUTHOR_EMAIL': 'a@example.org', 'GIT_COMMITTER_NAME': 'A',
          'GIT_COMMITTER_EMAIL': 'a@example.org'}


def git(folder, *words, **options):
    env = {**os.environ, **PEOPLE, 'GIT_CONFIG_NOSYSTEM': '1', 'HOME': '/nonexistent'}
    return subprocess.run(['git', '-C', str(folder), *words], check=True, capture_output=True, text=True, env=env,
                          **options).stdout.strip()


def make_source(folder, files=3):
    folder.mkdir()
    git(folder, 'init', '--quiet', '--initial-branch=main')
    (folder / 'sub').mkdir()
    for n in range(files):
        (folder / 'sub' / f'f{n}.txt').write_text(f'file {n}\n')
    git(folder, 'add', '.')
    git(folder, 'commit', '--quiet', '-m', 'feat: begin')
    git(folder, 'tag', 'v1')
    return folder


def add_git(root):
    """git, and what it needs to speak HTTP."""
    for name in ('git', 'ls', 'mkdir', 'rm', 'grep', 'chmod'):
        copy_program(root, name)
    core = root / str(GIT_CORE).lstrip('/')
    core.mkdir(parents=True)
    shutil.copy(GIT_CORE / 'git-remote-http', core / 'git-remote-http')
    for library in libraries(str(GIT_CORE / 'git-remote-http')):
        target = root / library.lstrip('/')
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)


class GitKeeper(Keeper):
    def prepare(self):
        super().prepare()
        generations = self.templates.parent / 'generations'
        generations.mkdir(mode=0o700, exist_ok=True)
        self.options = ['--generations', generations]


class RepoCalls:
    def import_repo(self, name, source):
        self.post('/api/v1/repos', {'name': name, 'source': str(source)}, status=202)
        return self.ready(name)

    def ready(self, name):
        return wait_until(lambda: (r := self.get(f'/api/v1/repos/coop/{name}'))['state'] == 'ready' and r,
                          'the import')


class WorkServer(RepoCalls, DoorServer):
    def __init__(self, folder, **options):
        super().__init__(folder, **options)
        self.keeper = GitKeeper(self.home)

    def clone(self, box, repository, status=200, **body):
        return self.post(f'{API}/{box}/git/clone', {'repository': repository, **body}, status=status)

    def bare(self, name):
        return self.home / 'repos' / self.get(f'/api/v1/repos/coop/{name}')['id']

    def generations(self):
        return sorted(path.name for path in (self.home / 'generations').iterdir())


@contextlib.contextmanager
def serving(make=WorkServer, furnish=None, **options):
    """`furnish` puts what else is wanted into the root of boxes."""
    need_boxes()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    place.chmod(0o711)  # the door is another user
    try:
        server = make(place, **options)
        server.home.mkdir(mode=0o700)
        server.keeper.prepare()
        add_git(server.keeper.templates / LAYER)
        if furnish is not None:
            furnish(server.keeper.templates / LAYER)
        server.start()
        try:
            yield server
        finally:
            server.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)
