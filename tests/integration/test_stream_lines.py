# SPDX-License-Identifier: Apache-2.0
"""What the commands in an agent's box print, in the stream of its work: live, in order, resumed to the byte, and
nobody waits for who reads it."""
import pytest

from crewserver import crew_serving
from harness import Stream, check_error, wait_until

SCRIPT = r'''conversations:
  - match: "say something"
    turns:
      - text: "I speak."
        tools: [{name: shell, arguments: '{"command": "echo from the shell; printf rest"}'}]
  - last: tool
    turn: 2
    turns:
      - tools: [{name: done, arguments: '{"summary": "said it"}'}]
'''
WAITS = 'while ! test -e /tmp/go; do sleep 0.05; done'


@pytest.fixture(scope='module')
def server():
    with crew_serving() as running:
        running.script(SCRIPT)
        yield running


def at(agent):
    return f'/api/v1/sse/execution/{agent["id"]}'


def printed(items, run, stream=None):
    return [line for item in items if item['event'] == 'command.output' and item['data']['data']['run'] == run
            and stream in (None, item['data']['data']['stream']) for line in item['data']['data']['lines']]


def has_line(text):
    return lambda item: item['event'] == 'command.output' and text in item['data']['data']['lines']


def ends(run):
    return lambda item: item['event'] == 'command.ended' and item['data']['data']['run'] == run


def go_on(server, agent):
    """Also in a box that a server has just found again."""
    wait_until(lambda: server.ask('POST', f'/api/v1/sandboxes/{agent["sandboxId"]}/commands',
                                  body={'command': 'echo >/tmp/go', 'wait': True}).status == 200, 'that it goes on')


def started(server, *lines):
    """Once its command is known; by then a short one may have ended."""
    agent = server.begin_agent(*lines)
    return wait_until(lambda: (a := server.agent(agent))['run'] and a, 'its command')


def test_live_and_resumed(server):
    agent = started(server, 'echo first', 'echo bad >&2', r"printf 'h\303\251\377 \001\r\n'", WAITS, 'echo last', 'printf open')
    run = agent['run']
    with Stream(server, f'{at(agent)}?after=0') as stream:
        seen = stream.until(has_line('hé\ufffd \x01'))
        while 'bad' not in printed(seen, run, 'stderr'):
            seen += stream.until(has_line('bad'))
        assert 'first' in printed(seen, run, 'stdout')
        begun = [i for i, item in enumerate(seen) if item['event'] == 'command.started' and item['data']['data']['run'] == run]
        told = [i for i, item in enumerate(seen) if item['event'] == 'command.output' and item['data']['data']['run'] == run]
        assert len(begun) == 1 and begun[0] < told[0]
        one = seen[told[0]]['data']
        assert one['kind'] == 'command.output' and one['box_id'] == agent['sandboxId'] and one['data']['offset'] == 0
        go_on(server, agent)
        seen += stream.until(ends(run))
    assert printed(seen, run, 'stdout') == ['first', 'hé\ufffd \x01', 'last', 'open'] and printed(seen, run, 'stderr') == ['bad']
    assert server.agent_ended(agent)['state'] == 'done'
    # From anywhere: exactly what came behind it.
    for i, item in enumerate(seen):
        if item['event'] not in ('command.output', 'command.started'):
            continue
        with Stream(server, at(agent), last_id=item['id']) as stream:
            rest = stream.until(ends(run))
        for name in ('stdout', 'stderr'):
            assert printed(seen[:i + 1] + rest, run, name) == printed(seen, run, name), (item, rest)
    # And all of it from what is kept.
    with Stream(server, f'{at(agent)}?after=0') as stream:
        assert printed(stream.until(ends(run)), run, 'stdout') == printed(seen, run, 'stdout')


def test_the_box_too(server):
    """From its making to its end, though the work began later and ended earlier."""
    agent = started(server, 'echo quick')
    with Stream(server, f'{at(agent)}?after=0') as stream:
        seen = [item['event'] for item in stream.until(lambda item: item['event'] == 'box.killed')]
    order = [name for name in seen if name in ('box.created', 'box.ready', 'command.started', 'agent.joined', 'agent.left', 'box.killed')]
    assert order[:3] == ['box.created', 'box.ready', 'command.started'] and order[-1] == 'box.killed' and 'agent.left' in order, seen


def test_from_now_on(server):
    agent = started(server, 'echo before', WAITS, 'echo behind')
    with Stream(server, f'{at(agent)}?after=0') as stream:
        stream.until(has_line('before'))
    with Stream(server, at(agent)) as stream:
        first = stream.next()
        assert first['event'] == 'beat' and f';{agent["run"]}:7.0' in first['id']
        go_on(server, agent)
        assert printed(stream.until(ends(agent['run'])), agent['run']) == ['behind']
    server.agent_ended(agent)


def test_a_server_that_was_killed(server):
    agent = started(server, 'echo before', WAITS, 'echo behind')
    with Stream(server, f'{at(agent)}?after=0') as stream:
        seen = stream.until(has_line('before'))
    server.kill()
    server.restart()
    with Stream(server, at(agent), last_id=seen[-1]['id']) as stream:
        go_on(server, agent)
        assert printed(stream.until(ends(agent['run'])), agent['run']) == ['behind']
    assert server.agent_ended(agent)['state'] == 'done'


def test_nobody_waits_for_a_reader(server):
    lines, length = 6000, 4000
    size = lines * (length + 1)
    agent = started(server, f"x=$(printf '%.0sx' {{1..{length}}})", f'for ((i = 0; i < {lines}; i++)); do echo $x; done', 'echo over')
    with Stream(server, f'{at(agent)}?after=0', receive_buffer=4096) as stream:
        stream.until(lambda item: item['event'] == 'command.started')
        assert server.agent_ended(agent, seconds=180)['state'] == 'done'  # it has read nothing of it
        told = missing = lines = 0
        last = []
        for item in iter(stream.next, None):
            if item['event'] == 'command.output' and item['data']['data']['run'] == agent['run']:
                data = item['data']['data']
                # A line that a hole cuts has no end of its own.
                told += sum(len(line) + ('missing' not in data) for line in data['lines'])
                missing += data.get('missing', 0)
                lines += len(data['lines'])
                last = data['lines'][-1:] or last
            if ends(agent['run'])(item):
                break
    assert told + missing == size + len('over\n') and last == ['over'], (told, missing)
    stats = server.get('/api/v1/sse/stats')['streams']['executions']
    assert stats['lines_sent'] >= lines > 0 and stats['events_sent'] > 0


def test_a_long_line(server):
    agent = started(server, "printf '%.0sé' {1..5000}", 'echo', 'echo over')
    with Stream(server, f'{at(agent)}?after=0') as stream:
        lines = printed(stream.until(ends(agent['run'])), agent['run'])
    assert ''.join(lines) == 'é' * 5000 + 'over' and max(len(line.encode()) for line in lines) <= 4096


def test_commands_of_coops_own_agent(server):
    agent = server.begin_agent('say something', adapter='coop', provider='openai', model='demo-1')
    agent = server.agent_ended(agent)
    with Stream(server, f'{at(agent)}?after=0') as stream:
        lines = printed(stream.until(ends(agent['run'])), agent['run'])
    assert agent['state'] == 'done' and 'from the shell' in lines and 'rest' in lines, lines


@pytest.mark.parametrize('last_id', ['5;', '5;x', '5;1:2', '5;0:1.1', '5;1:1.1,', '5;1:-1.0', '5;99999999999:1.1', '5;1:1.1.1', 'x;1:1.1'])
def test_ids_that_are_none(server, last_id):
    agent = server.get('/api/v1/agents')['agents'][0]
    check_error(server, server.ask('GET', at(agent), headers={'Last-Event-ID': last_id}), 400)


def test_a_squads_stream_has_no_lines(server):
    check_error(server, server.ask('GET', '/api/v1/sse/squad/default', headers={'Last-Event-ID': '5;1:1.1'}), 400)
