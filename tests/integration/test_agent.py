# SPDX-License-Identifier: Apache-2.0
"""coop-agent in a real box: the door, the face, git and its hook, with a scripted model."""
import pytest

from crewserver import crew_serving
from harness import wait_until

MIB = 1 << 20
AGENT_AND_BOX_MIB = 30

SCRIPT = r'''conversations:
  - match: "make the file made.txt"
    turns:
      - text: "I write it."
        tools:
          - {name: write, arguments: '{"path": "made.txt", "text": "made\n"}'}
          - {name: test, arguments: '{}'}
  - last: tool
    match: "checks, |No checks"
    turn: 2
    turns:
      - tools: [{name: commit, arguments: '{"message": "stuff"}'}]
  - last: tool
    match: "git commit: exit code"
    turn: 3
    turns:
      - text: "The hook wants another message."
        tools: [{name: commit, arguments: '{"message": "feat: make the file"}'}]
  - last: tool
    turn: 4
    turns:
      - tools: [{name: done, arguments: '{"summary": "made it"}'}]
  - match: "wait for me"
    turns:
      - text: "I wait."
        tools: [{name: shell, arguments: '{"command": "sleep 600"}'}]
'''


@pytest.fixture(scope='module')
def server():
    with crew_serving() as running:
        running.script(SCRIPT)
        yield running


def test_work(server):
    agent = server.begin_agent('make the file made.txt', adapter='coop', provider='openai', model='demo-1',
                               repository='coop/work')
    ended = server.agent_ended(agent)
    assert ended['state'] == 'done', (ended, server.output_of(ended))
    assert ended['report']['summary'] == 'made it' and ended['result']['passed'] is True
    assert [c['title'] for c in ended['result']['commits']] == ['feat: make the file']
    tools = [e['data'] for e in server.events_of(agent, 'tool.used')]
    assert [t['name'] for t in tools] == ['write', 'test', 'commit', 'commit', 'done']
    assert [t['exit_code'] == 0 for t in tools] == [False, True, False, True, False]
    assert {t['seen_by'] for t in tools} == {'agent'}
    thoughts = [e['data']['text'] for e in server.events_of(agent, 'agent.thought')]
    assert thoughts[:2] == ['I write it.', 'The hook wants another message.']


def test_memory(server):
    agent = server.begin_agent('wait for me', adapter='coop', provider='openai', model='demo-1')
    wait_until(lambda: server.events_of(agent, 'agent.thought'), 'the first words, before the command')
    stats = server.get(f'/api/v1/sandboxes/{agent["sandboxId"]}/stats')
    assert stats['memory_bytes'] <= AGENT_AND_BOX_MIB * MIB, stats
    server.ask('DELETE', f'/api/v1/agents/{agent["id"]}')
