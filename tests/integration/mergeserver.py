# SPDX-License-Identifier: Apache-2.0
"""Repositories whose pull requests go through the merge queue of a real server."""
import pathlib
import shutil
import subprocess
import tempfile

from gitserver import Work, environment, folder_of, url_of
from harness import wait_until

# No word twice in all files together: what two changes add, each sound by itself, may break it.
CHECK = '''seen=" "
for file in parts/*; do
    while read -r word; do
        case "$seen" in *" $word "*) echo "twice: $word"; exit 1 ;; esac
        seen="$seen$word "
    done <"$file"
done
'''
PLAN = 'checks:\n  - name: words\n    run: sh check.sh\n'
ENDED = ('landed', 'conflict', 'failed', 'cancelled')
LONG_S = 180


def must(server, method, path, body=b'', status=200):
    answer = server.ask(method, path, body=body)
    assert answer.status == status, answer
    return answer.json


class Project:
    """A repository with a check, and as many clones of it as one likes."""

    def __init__(self, server, name, checked=True):
        self.server, self.name, self.clones = server, name, 0
        self.repo = server.post('/api/v1/repos', {'name': name})
        self.api = f'/api/v1/repos/coop/{name}'
        first = Work(self.place(), self.url()).init()
        files = {'check.sh': CHECK, 'parts/start': 'start\n', 'lines': ''.join(f'{n}\n' for n in range(40))}
        if checked:
            files['coop.yaml'] = PLAN
        else:
            self.set(checks='none')
        self.write(first, files, 'feat: begin')
        first.push('HEAD:refs/heads/main')

    def url(self):
        return url_of(self.server, f'/git/coop/{self.name}.git')

    def place(self):
        self.clones += 1
        return self.server.folder / f'work-{self.name}-{self.clones}'

    def set(self, **settings):
        must(self.server, 'PATCH', f'{self.api}/settings', settings)

    @staticmethod
    def write(work, files, message='feat: change'):
        for name, text in files.items():
            path = work.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        work.git('add', '-A')
        work.git('commit', '-q', '-m', message)
        return work.head()

    def clone(self, version='2'):
        return Work(self.place(), self.url(), version=version).clone()

    def branch(self, name, files, version='2', start='origin/main'):
        """Pushed, with one commit; the clone."""
        work = self.clone(version)
        work.git('checkout', '-q', '-b', name, start)
        self.write(work, files, f'feat: {name}')
        work.push(name)
        return work

    # ---- pull requests ----

    def open(self, head, base='main'):
        return self.server.post(f'/api/v3/repos/coop/{self.name}/pulls',
                                {'title': f'feat: {head}', 'head': head, 'base': base})['number']

    def pull(self, number):
        return self.server.get(f'/api/v3/repos/coop/{self.name}/pulls/{number}')

    def suite_of(self, number, head):
        """How Coop's own checks of it ended."""
        def over():
            found = self.server.get(f'{self.api}/checks?number={number}&head={head}')['suites']
            return found and found[0]['state'] not in ('queued', 'running') and found[0]['state']
        return wait_until(over, f'the checks of #{number}', LONG_S)

    def change(self, name, files, **more):
        """A branch with its pull request, checked."""
        work = self.branch(name, files, **more)
        number = self.open(name)
        return number, self.suite_of(number, work.head()), work

    # ---- the queue ----

    def add(self, number, status=202, **more):
        return must(self.server, 'POST', f'{self.api}/merges', {'number': number, **more}, status=status)

    def merge(self, entry, wait_ms=0):
        return self.server.get(f'{self.api}/merges/{entry}' + (f'?wait_ms={wait_ms}' if wait_ms else ''))

    def ended(self, entry):
        return wait_until(lambda: (m := self.merge(entry, 5000))['state'] in ENDED and m, f'merge {entry}', LONG_S)

    def land(self, number, **more):
        return self.ended(self.add(number, **more)['id'])

    # ---- what is there ----

    def bare(self, *args):
        return subprocess.run(['git', '-c', 'safe.directory=*', '-C', str(folder_of(self.server, self.repo)), *args],
                              check=True, capture_output=True, text=True,
                              env=environment(self.server.folder)).stdout.strip()

    def history(self, branch='main'):
        return self.bare('rev-list', '--first-parent', branch).split()

    def own_refs(self):
        return self.bare('for-each-ref', 'refs/coop').splitlines()

    def is_sound(self, commit):
        """By the repository's own check, on this commit's files."""
        place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
        try:
            tar = subprocess.run(['git', '-c', 'safe.directory=*', '-C', str(folder_of(self.server, self.repo)), 'archive',
                                  commit], check=True, capture_output=True, env=environment(place)).stdout
            subprocess.run(['tar', '-x', '-C', str(place)], input=tar, check=True)
            return subprocess.run(['sh', 'check.sh'], cwd=place, capture_output=True).returncode == 0
        finally:
            shutil.rmtree(place)

    def words(self, commit='main'):
        """Of all files together."""
        return self.bare('grep', '-h', '', commit, '--', 'parts').split()

    def count_events(self, kind, **data):
        found = [e for e in self.server.get(f'/api/v1/events?kind={kind}&limit=500')['events']
                 if e['data'].get('repository') == f'coop/{self.name}']
        return len([e for e in found if all(e['data'].get(k) == v for k, v in data.items())])
