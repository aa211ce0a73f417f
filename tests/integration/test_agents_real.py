# SPDX-License-Identifier: Apache-2.0
"""Command-line agents that others wrote, from npm, each in a box of its own: a small task, with a scripted model."""
import os
import pathlib
import shutil
import sys

import pytest

from boxserver import LAYER, libraries
from crewserver import crew_serving

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'sdk'))
import npm  # noqa: E402

AGENTS = pathlib.Path(__file__).parents[1] / 'sdk' / 'agents'
PROGRAMS = {'claude': '@anthropic-ai/claude-code-linux-x64/claude', 'opencode': 'opencode-linux-x64/bin/opencode',
            'codex': '@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex'}
MAKE = 'echo made >made.txt'


def conversations(name, arguments):
    """It says what it does, does it, and says that it is done; whatever else is asked gets a word."""
    return f'''conversations:
  - match: "make the file made.txt"
    turns:
      - text: "I make the file."
        tools: [{{name: {name}, arguments: '{arguments}'}}]
  - last: tool
    turn: 2
    turns: [{{text: "The file is made."}}]
  - turns: [{{text: "yes"}}, {{text: "yes"}}, {{text: "yes"}}, {{text: "yes"}}]
'''


TOOLS = {
    'claude-code': ('Bash', '{"command": "%s", "description": "make it"}' % MAKE),
    'codex': ('exec_command', '{"cmd": "%s"}' % MAKE),
    'opencode': ('bash', '{"command": "%s", "description": "make it"}' % MAKE),
}


def furnish(root):
    cache = npm.install(AGENTS, pathlib.Path(os.environ['COOP_AGENTS_CACHE']))
    for name, path in PROGRAMS.items():
        program = cache / 'node_modules' / path
        try:
            os.link(program, root / 'bin' / name)
        except OSError:
            shutil.copy(program, root / 'bin' / name)
        for library in libraries(str(program)):
            target = root / library.lstrip('/')
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, target)


@pytest.fixture(scope='module')
def server():
    with crew_serving(furnish=furnish, env={'COOP_BOXES_MEMORY': '2GiB', 'COOP_BOXES_DISK': '512MiB'}) as running:
        yield running


@pytest.mark.parametrize('adapter', sorted(TOOLS))
def test_it_finishes_a_task(server, adapter, tmp_path):
    script = tmp_path / 'script.yaml'
    script.write_text(conversations(*TOOLS[adapter]))
    server.cli('provider', 'add', adapter, '--kind', 'script', '--script', str(script), '--model', f'{adapter}-*')
    agent = server.begin_agent('Please make the file made.txt here.', adapter=adapter, repository='coop/work', provider=adapter,
                               model=f'{adapter}-1')
    ended = server.agent_ended(agent, 120)
    assert ended['state'] == 'done' and ended['result']['passed'], (ended, server.output_of(ended)[-6000:])
    assert ended['result']['checks'][0]['output'] == 'made\n', ended
    assert ended['report']['summary'] == 'The file is made.'
    assert [e['data']['name'] for e in server.events_of(agent, 'tool.used')], server.output_of(ended)
    assert ended['first_call_at'] is not None
