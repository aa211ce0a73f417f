# SPDX-License-Identifier: Apache-2.0
"""A server whose squad really works: coop-agent in boxes, and a scripted brain behind the door."""
import json

from harness import read_all, wait_until
from workserver import RepoCalls, WorkServer, git, serving

TASKS = '/api/v1/tasks'
MODEL = 'demo/coder'
LONG_S = 60
ENDED = ('done', 'failed', 'cancelled')
# Every file below parts/ has to say "good" in its first line.
CHECK = '''for file in parts/*; do
    read -r word <"$file"
    if [ "$word" = good ]; then echo "ok - $file"; else echo "not ok - $file says $word"; bad=1; fi
done
exit ${bad:-0}
'''
FILES = {'check.sh': CHECK, 'parts/start': 'good\n', 'coop.yaml': 'checks:\n  - name: parts\n    run: sh check.sh\n'}


# ---- what models say ----

def tool(name, **arguments):
    return {'name': name, 'arguments': json.dumps(arguments)}


def write(path, text):
    return tool('write', path=path, text=text)


def done(summary='I did it.', **more):
    return tool('done', summary=summary, **more)


def says(role, *turns, **conditions):
    """One conversation: each turn a list of calls of tools, or what it says in words."""
    shown = [{'text': t} if isinstance(t, str) else t if isinstance(t, dict) else {'tools': t} for t in turns]
    return {'role': role, **conditions, 'turns': shown}


def writes(path, text, **conditions):
    return says('coder*', [write(path, text)], [done()], **conditions)


def step(name, **more):
    return {'name': name, 'title': f'Write {name}', 'role': 'coder', **more}


def plan(*steps, **more):
    return {'project': 'parts', 'summary': 'Adds parts.', 'features': [], 'steps': list(steps), **more}


def plans(body, **conditions):
    return says('planner*', json.dumps(body), **conditions)


APPROVES = [says('tester*', [done('All of it runs.', verdict='approve')]),
            says('reviewer*', [done('It reads well.', verdict='approve')])]


class TeamCalls(RepoCalls):
    """What tests ask of a server with a squad, however it was started."""

    def script(self, *conversations, models=('coder',)):
        text = json.dumps({'conversations': [*conversations, *APPROVES]})  # JSON is YAML
        body = {'kind': 'script', 'script': text, 'models': list(models)}
        answer = self.ask('PUT', '/api/v1/providers/demo', body=body)
        assert answer.status in (200, 201), answer

    def new_repo(self, name='work', files=FILES):
        source = self.folder / f'source-{name}'
        source.mkdir()
        git(source, 'init', '--quiet', '--initial-branch=main')
        for path, text in files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text)
        git(source, 'add', '.')
        git(source, 'commit', '--quiet', '-m', 'feat: begin')
        self.import_repo(name, source)
        return f'coop/{name}'

    # ---- tasks ----

    def new_task(self, request='Add parts', **body):
        return self.post(TASKS, {'request': request, **body}, status=201)

    def give_plan(self, task, body):
        answer = self.ask('PUT', f'{TASKS}/{task["id"]}/plan', body=body)
        assert answer.status == 200, answer

    def task(self, task):
        return self.get(f'{TASKS}/{task["id"]}')

    def task_in(self, task, *states, seconds=LONG_S):
        return wait_until(lambda: (t := self.task(task))['state'] in states and t,
                          lambda: f'{states}: {json.dumps(self.task(task))[:6000]}', seconds)

    def task_done(self, task, seconds=LONG_S):
        ended = self.task_in(task, *ENDED, 'blocked', seconds=seconds)
        assert ended['state'] == 'done', (ended['problem'], self.said(task))
        return ended

    def agents(self, task):
        return self.get(f'/api/v1/agents?per_page=100&task={task["id"]}')['agents']

    def said(self, task):
        """What became of each agent, and what its program printed."""
        return [(a['agent'], a['state'], a['problem'], a.get('run') and [
            self.output(a['sandboxId'], a['run'], stream).body.decode()[-2000:] for stream in ('stdout', 'stderr')])
                for a in self.agents(task)]

    def events_of(self, task, *kinds):
        found = self.get(f'/api/v1/events?task={task["id"]}&limit=500')['events']
        return [e for e in found if not kinds or e['kind'] in kinds]

    def request_only(self, method, path, body=b''):
        """For an answer that nobody will live to give."""
        with self.connect() as sock:
            sock.sendall(self.request(method, path, body=body))
            read_all(sock)


class TeamServer(TeamCalls, WorkServer):
    def file(self, repository, path, ref='main'):
        """What the repository has, or None."""
        bare = self.bare(repository.split('/')[1])
        listed = git(bare, 'ls-tree', '-r', '--name-only', ref).splitlines()
        return git(bare, 'show', f'{ref}:{path}') if path in listed else None

    def branches(self, repository):
        return git(self.bare(repository.split('/')[1]), 'for-each-ref', '--format=%(refname:short)',
                   'refs/heads').splitlines()

    def subjects(self, name, ref):
        return git(self.bare(name), 'log', '--format=%s', ref).splitlines()

    def restart(self, **env):
        """After it was killed."""
        self.env.pop('COOP_FAIL_AT', None)
        self.env.update(env)
        super().restart()


def team_serving(also=None, **env):
    """`also` puts what else is wanted into the root of boxes."""
    def furnish(root):
        (root / 'usr/local/bin').mkdir(parents=True, exist_ok=True)
        if also is not None:
            also(root)
    return serving(TeamServer, furnish, env={'COOP_TEAM_MODEL': MODEL, 'COOP_TEAM_RETRY_PAUSE': '100ms', **env})
