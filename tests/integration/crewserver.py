# SPDX-License-Identifier: Apache-2.0
"""A server whose agents are played by what they are told: the goal is a script of the shell."""
import contextlib
import pathlib
import shutil
import tempfile

from boxserver import API, LAYER, need_boxes
from harness import WAIT_S, wait_until
from workserver import WorkServer, add_git, git, make_source

AGENTS = '/api/v1/agents'
PLAYER = '''
description: does what it is told
command: [/bin/bash, -c, "{goal}"]
output: json
events:
  - where: {say: said}
    kind: said
    text: text
  - where: {say: tool}
    kind: tool
    name: name
'''
# One request to the agents' face: method, path, body.
FACE = r'''face() { exec 3<>/dev/tcp/127.0.0.1/3128
printf '%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' \
    "$1" "$2" "${#3}" "$3" >&3; cat <&3; exec 3>&-; echo; }
'''
CHECKS = 'checks:\n  - {name: made, run: "! test -e made.txt || cat made.txt; ! test -e broken.txt"}\n'
ENDS = ('done', 'failed', 'lost', 'stopped')


class CrewServer(WorkServer):
    def script(self, text):
        """What the model says."""
        answer = self.ask('PUT', '/api/v1/providers/openai', body={'kind': 'script', 'script': text})
        assert answer.status in (200, 201), answer

    def begin_agent(self, *lines, **more):
        """One that does what the lines say, or of another adapter."""
        prelude = [] if 'adapter' in more else [FACE]
        return self.post(AGENTS, {'role': 'coder', 'adapter': 'player', 'requirements': [*prelude, *lines], **more})

    def agent(self, agent):
        return self.get(f'{AGENTS}/{agent["id"]}')

    def agent_in(self, agent, *states, seconds=WAIT_S):
        return wait_until(lambda: (a := self.agent(agent))['state'] in states and a, f'{states}', seconds)

    def agent_ended(self, agent, seconds=WAIT_S):
        return self.agent_in(agent, *ENDS, seconds=seconds)

    def has_box(self, agent):
        boxes = {one['sandbox_id'].removeprefix('sb-') for one in self.get(API)['sandboxes']}
        return agent['sandboxId'] in boxes

    def events_of(self, agent, *kinds):
        found = self.get(f'/api/v1/events?execution={agent["id"]}&limit=500')['events']
        return [e for e in found if e['kind'] in kinds]

    def output_of(self, agent):
        """What its program printed."""
        return self.output(agent['sandboxId'], agent['run']).body.decode()


@contextlib.contextmanager
def crew_serving(furnish=None, **options):
    """`furnish` puts what else is wanted into the root of boxes."""
    need_boxes()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    place.chmod(0o711)  # the door is another user
    try:
        server = CrewServer(place, **options)
        server.home.mkdir(mode=0o700)
        (server.home / 'agents').mkdir()
        (server.home / 'agents' / 'player.yaml').write_text(PLAYER)
        server.keeper.prepare()
        add_git(server.keeper.templates / LAYER)
        (server.keeper.templates / LAYER / 'usr/local/bin').mkdir(parents=True, exist_ok=True)
        if furnish is not None:
            furnish(server.keeper.templates / LAYER)
        server.start()
        try:
            source = make_source(place / 'source')
            (source / 'coop.yaml').write_text(CHECKS)
            git(source, 'add', '.')
            git(source, 'commit', '--quiet', '-m', 'feat: check what was made')
            server.import_repo('work', source)
            yield server
        except BaseException:
            print(server.log()[-6000:])
            raise
        finally:
            server.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)
