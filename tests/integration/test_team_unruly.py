# SPDX-License-Identifier: Apache-2.0
"""Agents that go wrong, and what they stand on: one that goes in circles, one that floods its room, programs and boxes that
die, models that are away or silent.  All of it at the same time, each in a task of its own: none disturbs another."""
import http.server
import json
import os
import signal
import threading

import pytest

from harness import wait_until
from roomserver import Room
from teamserver import done, plan, plans, says, step, team_serving, tool, write

TURNS = 8
SENT = 300
# One message after the other, as fast as they go, past the program that would wait; what was answered is the work.
FLOOD = r'''cd parts; body='{"text": "again and again"}'
for n in $(seq SENT); do exec 3<>/dev/tcp/127.0.0.1/3128
printf 'POST /rooms/%s/messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' \
    "$ROOM_ID" "${#body}" "$body" >&3; read -r version code rest <&3; cat <&3 >/dev/null; exec 3>&-; echo $code; done >/tmp/codes
(echo good; grep -c 201 /tmp/codes; grep -c 429 /tmp/codes) >one
'''.replace('SENT', str(SENT))
# Half of the work is pushed, and then something happens; whoever comes after finds that half.
HALF = '''if git log --format=%s | grep -q half; then printf 'good\\n' >parts/one
else printf 'bad\\n' >parts/one; git add -A; git commit -q -m 'feat: add half'; git push -q; THEN; fi
'''
SEAT = {'provider': 'demo', 'model': 'coder'}
COUNCIL = {'planner': 'council', 'council': {'seats': [SEAT] * 4, 'quorum': 2, 'timeout_s': 20}}
JOINED = {'plan': plan(step('joined')), 'dissent': ['C wanted a second step']}
SCRIPT = [
    says('council-2-*', {'text': 'late', 'first_ms': 60000}), says('council-3-*', 'What is a plan?'),
    says('council-*', json.dumps({'ranking': ['B', 'A'], 'why': 'shorter'}), match='Rank the plans'),
    says('council-*', json.dumps(plan(step('seat')))), says('chairman-*', json.dumps(JOINED)),
    plans(plan(step('one'))),
    says('coder*', *[[tool('shell', command='echo round')]] * 5 * TURNS, asked='Go in circles'),
    says('coder*', [tool('shell', command=FLOOD)], [done()], asked='Flood the room'),
    says('coder*', *[[tool('shell', command=HALF.replace('THEN', 'kill -9 $PPID'))]] * 2, [done()], asked='Die in the middle'),
    says('coder*', [tool('shell', command=HALF.replace('THEN', 'sleep 1000'))], [done()], asked='Lose the box'),
    says('coder*', [write('parts/one', 'good\n')], [done()]),
]


class Provider(http.server.ThreadingHTTPServer):
    """Nobody listens at first; then it has too much to do, twice; then it answers."""

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Answers, bind_and_activate=False)
        self.server_bind()
        self.busy, self.asked = 2, []

    def url(self):
        return f'http://127.0.0.1:{self.server_port}/v1'

    def open(self):
        self.server_activate()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        busy = len(self.server.asked) < self.server.busy
        self.server.asked.append(529 if busy else 200)
        if busy:
            self.answer(529, 'application/json', json.dumps({'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}))
            return
        spoken = sum(m['role'] == 'assistant' for m in body['messages'])
        call = [write('parts/one', 'good\n'), done()][spoken]
        delta = {'role': 'assistant', 'tool_calls': [{'index': 0, 'id': f'call_{spoken}', 'type': 'function', 'function': call}]}
        self.answer(200, 'text/event-stream', ''.join(f'data: {json.dumps(piece)}\n\n' for piece in (
            {'id': 'x', 'object': 'chat.completion.chunk', 'choices': [{'index': 0, 'delta': delta}]},
            {'id': 'x', 'object': 'chat.completion.chunk', 'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'tool_calls'}]},
        )) + 'data: [DONE]\n\n')

    def answer(self, status, kind, text):
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def add_squad(server, name, role):
    """Of the usual ones, with one whose model is another provider's."""
    body = {'kind': 'compatible', 'base_url': server.providers[name].url(), 'models': [f'{name}-*']}
    assert server.ask('PUT', f'/api/v1/providers/{name}', body=body).status in (200, 201)
    members = [{'role': r, **({'llm_provider': name, 'llm_model': f'{name}-1'} if r == role else
                              {'llm_provider': 'demo', 'llm_model': 'coder'})} for r in ('planner', 'coder', 'tester', 'reviewer')]
    server.post('/api/v1/squads', {'name': name, 'members': members})


@pytest.fixture(scope='module')
def server():
    with team_serving(COOP_TEAM_CONCURRENT_TASKS='20') as running:
        running.script(*SCRIPT)
        running.providers = {name: Provider() for name in ('flaky', 'nowhere', 'speechless')}
        for name in running.providers:
            add_squad(running, name, 'planner' if name == 'speechless' else 'coder')
        begin(running)
        yield running
        for provider in running.providers.values():
            provider.server_close()


def begin(server):
    kinds = {'circles': ('Go in circles', {'policy': {'turns': TURNS}}), 'flood': ('Flood the room', {}),
             'dies': ('Die in the middle', {}), 'box': ('Lose the box', {}), 'quiet': ('Work quietly', {}),
             'flaky': ('Ask whoever comes back', {'squad': 'flaky'}),
             'nowhere': ('Ask who never comes', {'squad': 'nowhere', 'policy': {'agent_s': 8}}),
             'speechless': ('Plan without a model', {'squad': 'speechless'}), 'council': ('Ask a council', {'policy': COUNCIL})}
    server.tasks = {name: server.new_task(request, repository=server.new_repo(name), **more)
                    for name, (request, more) in kinds.items()}


def tries(server, task):
    return [e['data']['state'] for e in server.events_of(task, 'step.ended')]


def test_a_model_that_comes_back(server):
    task, provider = server.tasks['flaky'], server.providers['flaky']
    wait_until(lambda: any(e['data']['model'] == 'flaky-1' for e in server.events_of(task, 'model.called')), 'a refusal')
    provider.open()
    server.task_done(task)
    assert provider.asked[:2] == [529, 529] and set(provider.asked[2:]) == {200}
    assert tries(server, task) == ['done'] and server.file('coop/flaky', 'parts/one') == 'good'


def test_one_that_goes_in_circles(server):
    task = server.tasks['circles']
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and '3 tries' in blocked['problem'] and 'turns' in blocked['problem'], blocked['problem']
    agents = server.agents(task)
    assert [a['report']['reason'] for a in agents] == ['turns'] * 3 and all(0 < a['turns'] <= TURNS for a in agents), agents
    assert server.file('coop/circles', 'parts/one') is None


def test_one_that_floods_its_room(server):
    """It gets as many in as one may; whoever else is in the room is heard, and the work goes on."""
    task = server.tasks['flood']
    wait_until(lambda: server.task(task)['state'] not in ('queued', 'planning', 'preparing'), 'the room')
    room = Room(server, task)
    with room.join() as person:
        room.post(text='I am here too')
        while (said := person.text().get('message', {})).get('text') != 'I am here too':
            pass
        assert said['seen_by'] == 'person'
    server.task_done(task)
    _, taken, refused = server.file('coop/flood', 'parts/one').split('\n')
    assert int(taken) + int(refused) == SENT and int(refused) > 0
    stored, after = 0, 0
    while page := room.get(f'/messages?after={after}&limit=100')['messages']:
        stored, after = stored + sum(m['text'] == 'again and again' for m in page), page[-1]['n']
    assert stored == int(taken)
    server.task_done(server.tasks['quiet'])


def test_a_program_that_dies(server):
    """From its last commit, in the same box."""
    task = server.tasks['dies']
    server.task_done(task)
    assert tries(server, task) == ['lost', 'done'] and server.file('coop/dies', 'parts/one') == 'good'
    first, second = [a for a in reversed(server.agents(task)) if a['kind'] == 'work']
    assert 'SIGKILL' in first['problem'] and first['sandboxId'] == second['sandboxId']


def test_a_box_that_dies(server):
    """Its first process is killed, and so is everything in it."""
    task = server.tasks['box']
    wait_until(lambda: any('half' in c['title'] for c in commits(server, task)), 'half of the work')
    [agent] = [a for a in server.agents(task) if a['state'] == 'working']
    os.kill(server.init_pid(agent['sandboxId']), signal.SIGKILL)
    server.task_done(task)
    assert tries(server, task) == ['lost', 'done'] and server.file('coop/box', 'parts/one') == 'good'
    first, second = [a for a in reversed(server.agents(task)) if a['kind'] == 'work']
    assert first['sandboxId'] != second['sandboxId']


def commits(server, task):
    branch = f'{task["branch"]}--coder-1'
    if branch not in server.branches('coop/box'):
        return []
    return [{'title': title} for title in server.subjects('box', branch)]


@pytest.mark.parametrize('name', ['nowhere', 'speechless'])
def test_a_model_that_never_comes(server, name):
    task = server.tasks[name]
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and f"'{name}'" in blocked['problem'], blocked['problem']
    [question] = blocked['questions']
    assert question['state'] == 'open' and f"'{name}'" in question['text']
    assert server.file(f'coop/{name}', 'parts/one') is None


def test_a_council_with_a_silent_and_a_malformed_member(server):
    """Two of four are enough for a plan that is worked on and merged; who said what stays to be seen."""
    task = server.tasks['council']
    server.task_done(task)
    assert server.file('coop/council', 'parts/one') == 'good' and [s['name'] for s in server.task(task)['steps']] == ['joined']
    shown = server.cli('plan', 'show', str(task['number']))
    for words in ('Council: synthesis', 'opinion 1 (coder): answered', 'opinion 2 (coder): silent', 'opinion 3 (coder): malformed',
                  'ranking 4 (coder): answered', '\nDissent\n- C wanted a second step\n'):
        assert words in shown, shown
    assert 'What is a plan?' in server.cli('plan', 'show', str(task['number']), '--voices')


def test_nothing_is_left(server):
    """Of all of them: no box, no process, no agent."""
    for task in server.tasks.values():
        server.task_in(task, 'done', 'blocked')
    wait_until(lambda: server.live() == set(), 'the end of the boxes')
    assert all(a['ended_at'] for task in server.tasks.values() for a in server.agents(task))
    wait_until(lambda: server.boxes_of_keeper() == [], server.boxes_of_keeper)
