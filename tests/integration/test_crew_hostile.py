# SPDX-License-Identifier: Apache-2.0
"""Agents that say too much, leave traps behind, or break what would judge them."""
import pytest

from crewserver import crew_serving
from harness import WAIT_S, wait_until

SAID = 20000


@pytest.fixture(scope='module')
def server():
    with crew_serving() as running:
        yield running


def test_words_of_any_script_end_it(server):
    """A problem is cut between characters, or it could not be read again; and it says whose words it is."""
    ended = server.agent_ended(server.begin_agent(
        r's=x; for i in $(seq 1500); do s="$s\u00e4"; done',
        r'''face POST /agent/v1/done "{\"outcome\": \"failed\", \"summary\": \"$s\"}"'''))
    assert ended['state'] == 'failed' and 'says: xää' in ended['problem'], ended
    left, = server.events_of(ended, 'agent.left')
    assert left['data']['problem'] == ended['problem'] and left['data']['seen_by'] == 'coop'


def count_said(server, agent):
    found, after = 0, 0
    while page := server.get(f'/api/v1/events?execution={agent["id"]}&kind=agent.said&limit=500&after={after}')['events']:
        found, after = found + len(page), page[-1]['seq']
    return found


def test_output_is_bounded(server):
    """What an adapter reads out of lines counts as what is said at the face; its last words are its summary."""
    ended = server.agent_ended(server.begin_agent(
        f'''yes '{{"say": "said", "text": "x"}}' | head -n {SAID}''', '''echo '{"say": "said", "text": "the end"}' '''))
    assert ended['state'] == 'done' and ended['report']['summary'] == 'the end', ended
    assert 500 < count_said(server, ended) < SAID / 2


def test_wide_events_are_cut(server):
    """Eight members of eight kilobytes are more than an event has room for."""
    wide = ', '.join(f'\\"{name}\\": \\"$s\\"' for name in ('text', 'name', 'arguments', 'output', 'model', 'path'))
    ended = server.agent_ended(server.begin_agent(
        's=x; for i in $(seq 13); do s=$s$s; done',
        f'''face POST /agent/v1/report "{{\\"events\\": [{{\\"kind\\": \\"tool\\", {wide}}}]}}" | head -n 1'''))
    assert ' 200 ' in server.output_of(ended), server.output_of(ended)
    used, = server.events_of(ended, 'tool.used')
    assert set(used['data']['output']) == {'x'}


def test_holes_are_not_read_to_their_end(server):
    """Each as long as a file may be: together more than anybody waits for."""
    ended = server.agent_ended(server.begin_agent(
        'for i in $(seq 6000); do dd of=hole$i bs=1M seek=60 count=0 2>/dev/null; done; ls | wc -l'), seconds=3 * WAIT_S)
    assert server.output_of(ended) == '6000\n', ended
    assert ended['state'] == 'failed' and 'MiB' in ended['problem'], ended['problem']
    assert not ended['result'].get('files'), ended
    wait_until(lambda: not server.has_box(ended), 'the end of the box')
    assert all(kept.stat().st_size < 1 << 20 for kept in (server.home / 'kept').glob('*'))


def test_checks_that_cannot_be_read_do_not_pass(server):
    ended = server.agent_ended(server.begin_agent('echo "checks: 7" >coop.yaml', repository='coop/work'))
    assert ended['state'] == 'done' and ended['result']['passed'] is False, ended
    assert 'coop.yaml' in ended['result']['checks'][0]['output']


def test_a_question_stops_no_clock_of_who_works_on(server):
    """Its time stands still while it waits for a person, and not while it goes on asking models."""
    script = server.folder / 'script.yaml'
    script.write_text('conversations: [{turns: [{text: "Yes."}]}]\n')
    server.cli('provider', 'add', 'script', '--kind', 'script', '--script', str(script), '--model', 'demo-*')
    task = server.post('/api/v1/tasks', {'request': 'a thing', 'repository': 'coop/work', 'policy': {'planner': 'person', 'agent_s': 5}})
    agent = server.begin_agent(
        """face POST /agent/v1/ask '{"question": "may I?"}'""",
        'while :; do i=$((i + 1)); face POST /openai/v1/chat/completions '
        '"{\\"model\\": \\"script/demo-1\\", \\"messages\\": [{\\"role\\": \\"user\\", \\"content\\": \\"$i\\"}]}"; sleep 0.2; done',
        taskId=task['id'])
    ended = server.agent_ended(agent, seconds=2 * WAIT_S)
    assert ended['state'] == 'failed' and 'within 5 s' in ended['problem'], (ended['problem'], server.output_of(ended)[-2000:])


def test_the_server_stops_while_files_are_kept(server):
    """Nothing of what it was about is left in its memory, and the next one ends the box."""
    agent = server.begin_agent('head -c 400M /dev/zero >much',
                               """face POST /agent/v1/done '{"outcome": "failed", "summary": "no"}'""")
    wait_until(lambda: list((server.home / 'kept').glob('*.part')), 'the archive')
    server.stop()
    assert not list((server.home / 'kept').glob('*.part'))
    server.restart()
    wait_until(lambda: not server.has_box(server.agent(agent)), 'the end of the box')
