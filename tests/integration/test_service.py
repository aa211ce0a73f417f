# SPDX-License-Identifier: Apache-2.0
"""Boxes for curl and jq."""
import json
import subprocess

import pytest

from boxserver import API
from harness import check_error, wait_until


def shell(server, line, **env):
    """A line as the documentation prints it, with a key in every call of curl."""
    setup = ('curl() { command curl -sS -H "X-API-Key: $KEY" "$@"; }\n'
             f'cd /\n{line}').replace('http://localhost:8003', f'http://127.0.0.1:{server.port}')
    done = subprocess.run(['bash', '-eo', 'pipefail', '-c', setup], capture_output=True, text=True,
                          env={'PATH': '/usr/bin:/bin', 'KEY': server.key, **env}, timeout=60)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


# ---- as printed ----

CREATE = '''curl -X POST http://localhost:8003/sandbox/create -d '{
  "environment": "tiny",
  "timeout": 3600
}' '''
EXECUTE = r'''curl -X POST http://localhost:8003/sandbox/$SANDBOX_ID/execute \
  -H "Content-Type: application/json" \
  -d '{
    "files": {"test.js": "console.log(\"test\");"},
    "commands": ["cat test.js"]
  }' '''
COST = '''curl http://localhost:8003/sandboxes | \\
  jq '[.sandboxes[].uptime] | add / 3600 * 0.20' '''
DELETE_ALL = '''for id in $(curl -s http://localhost:8003/sandboxes | jq -r '.sandboxes[].sandbox_id'); do
  curl -X DELETE http://localhost:8003/sandbox/$id
done'''


def test_lines_of_the_guide(boxes):
    made = json.loads(shell(boxes, CREATE))
    assert made['sandbox_id'].startswith('sb-') and made['status'] == 'ready'
    assert made['environment'] == 'tiny' and made['timeout'] == 3600
    done = json.loads(shell(boxes, EXECUTE, SANDBOX_ID=made['sandbox_id']))
    assert done['success'] is True and done['stdout'] == 'console.log("test");'
    status = json.loads(shell(boxes, f'curl http://localhost:8003/sandbox/{made["sandbox_id"]}/status'))
    assert status['status'] == 'ready' and status['executions'] == 1
    listed = json.loads(shell(boxes, "curl http://localhost:8003/sandboxes | jq '.sandboxes'"))
    assert {'sandbox_id', 'status', 'environment', 'uptime', 'executions', 'cost'} == set(listed[0])
    assert float(shell(boxes, COST)) >= 0
    shell(boxes, CREATE)
    gone = shell(boxes, DELETE_ALL)
    assert gone.count('"terminated"') == 2
    assert json.loads(shell(boxes, 'curl -s http://localhost:8003/sandboxes')) == {'sandboxes': []}
    assert json.loads(shell(boxes, 'curl http://localhost:8003/health'))['service'] == 'coop'


def test_without_a_body(boxes):
    made = json.loads(shell(boxes, 'curl -X POST http://localhost:8003/sandbox/create'))
    assert made['environment'] == 'tiny' and made['timeout'] == 3600
    shell(boxes, f'curl -X DELETE http://localhost:8003/sandbox/{made["sandbox_id"]}')
    status = json.loads(shell(boxes, f'curl http://localhost:8003/sandbox/{made["sandbox_id"]}/status'))
    assert status['status'] == 'terminated' and status['reason'] == 'killed'


# ---- execute ----

def test_files_and_order(boxes):
    with boxes.box() as box:
        done = boxes.execute(box, files={'a/b/c.txt': 'eins\n', '/tmp/x': 'zwei\n', 'ü.txt': 'drei'},
                             commands=['cat a/b/c.txt /tmp/x', 'cat ü.txt >&2', 'pwd'])
        first, second, third = done['results']
        assert first['stdout'] == 'eins\nzwei\n' and first['exit_code'] == 0 and first['reason'] == 'exit'
        assert second['stderr'] == 'drei' and second['command'] == 'cat ü.txt >&2'
        assert third['stdout'] == '/home/user\n'
        assert done['stdout'] == 'eins\nzwei\n/home/user\n' and done['stderr'] == 'drei'
        assert done['success'] and done['exit_code'] == 0 and done['test_results'] is None
        assert boxes.execute(box, files={'only': 'files'})['results'] == []
        assert boxes.execute(box)['success']


def test_stop_on_error(boxes):
    with boxes.box() as box:
        lines = ['false', 'echo next', 'exit 7']
        done = boxes.execute(box, commands=lines)
        assert [r['exit_code'] for r in done['results']] == [1] and not done['success'] and done['exit_code'] == 1
        done = boxes.execute(box, commands=lines, stop_on_error=False)
        assert [r['exit_code'] for r in done['results']] == [1, 0, 7]
        assert not done['success'] and done['exit_code'] == 7


def test_environment_and_folder(boxes):
    with boxes.box(env={'A': 'of the box', 'B': 'of the box'}) as box:
        done = boxes.execute(box, env={'B': 'of the call', 'ODD': '= "\n'}, cwd='/tmp',
                             commands=['echo $A, $B; pwd', 'printenv ODD'])
        assert done['stdout'] == 'of the box, of the call\n/tmp\n= "\n\n'


def test_time_is_for_the_call(boxes):
    with boxes.box() as box:
        # Each of the two would have its time alone, and the first has it on a busy machine too.
        done = boxes.execute(box, commands=['sleep 1', 'echo begun; sleep 5.5; echo late', 'true'], timeout=6)
        first, second = done['results']
        assert first['reason'] == 'exit' and second['reason'] == 'timeout' and second['exit_code'] == 124
        assert second['stdout'] == 'begun\n' and not done['success']
        done = boxes.execute(box, commands=['sleep 100 & sleep 100'], timeout=1)
        assert done['results'][0]['reason'] == 'timeout'
        assert boxes.run(box, 'for p in /proc/[0-9]*/cmdline; do tr "\\0" " " < $p; done')['stdout'].count('sleep') == 0


def test_a_paused_box_keeps_no_call(boxes):
    with boxes.box() as box:
        boxes.post(f'{API}/{box}/pause', b'', status=200)
        check_error(boxes, boxes.ask('POST', f'/sandbox/{box}/execute', body={'commands': ['true']}), 409)
        check_error(boxes, boxes.ask('POST', f'/sandbox/{box}/execute', body={'files': {'a': 'b'}}), 409)
        boxes.post(f'{API}/{box}/resume', b'', status=200)
        assert boxes.execute(box, commands=['true'])['success']


def test_bytes_become_text(boxes):
    with boxes.box() as box:
        done = boxes.execute(box, commands=[r"printf 'a\377\000b\303'"])
        assert done['stdout'] == 'a\ufffd\ufffdb\ufffd'


def test_endless_output_has_a_bound(boxes):
    with boxes.box() as box:
        done = boxes.execute(box, commands=['seq 1000000', 'yes >&2 & sleep 0.5; kill $!; echo end'])
        first, second = done['results']
        assert first['stdout_truncated'] and 'stderr_truncated' not in first
        assert first['stdout'].startswith('1\n2\n3\n') and first['stdout'].endswith('\n999999\n1000000\n')
        assert ' bytes left out]' in first['stdout'] and len(first['stdout']) < 1100000
        assert second['stderr_truncated'] and second['stdout'] == 'end\n'
        many = boxes.execute(box, commands=['seq 100000'] * 14)
        assert sum(len(r['stdout']) for r in many['results']) < 5 * 1024 * 1024


def test_bad_files(boxes):
    with boxes.box() as box:
        for files, status in [({'/proc/x': 'y'}, (400, 403, 404)), ({'/etc/passwd': 'x'}, (403,)),
                              ({'a' * 300: 'x'}, (400,)), ({'/': 'x'}, (400, 403, 409)),
                              ({'x/../../../../../etc/shadow': ''}, (403,))]:
            answer = boxes.ask('POST', f'/sandbox/{box}/execute', body={'files': files, 'commands': ['true']})
            assert answer.status in status, (files, answer)
            assert 'file ' in answer.json['message']
        assert boxes.get(f'/sandbox/{box}/status')['executions'] == 0


BAD_BODIES = [
    {'command': 'true'}, {'commands': 'true'}, {'commands': [1]}, {'commands': ['']}, {'commands': [None]},
    {'commands': ['x' * 70000]}, {'commands': ['true'] * 257}, {'files': ['a']}, {'files': {'a': 1}},
    {'files': {'': 'x'}}, {'files': {'a' * 5000: 'x'}}, {'timeout': 0}, {'timeout': -1}, {'timeout': 86401},
    {'timeout': '5'}, {'timeout': 1.5}, {'env': {'A=B': 'x'}}, {'env': {'': 'x'}}, {'env': {'A': 1}},
    {'env': {f'A{i}': '' for i in range(257)}}, {'cwd': ''}, {'cwd': 'x' * 5000}, {'stop_on_error': 1}, [],
]


@pytest.mark.parametrize('body', BAD_BODIES, ids=lambda b: json.dumps(b)[:40])
def test_bad_executions(boxes, shared_box, body):
    check_error(boxes, boxes.ask('POST', f'/sandbox/{shared_box}/execute', body=body), 400)


@pytest.mark.parametrize('body', [
    {'environment': 1}, {'environment': ''}, {'template': 'tiny'}, {'timeout': 0}, {'timeout': 86401},
    {'timeout': '3600'}, {'env': []}, {'name': 'x' * 64}, {'name': 'a\u0007b'}, {'lease': ''},
    {'lease': 'idempotency/x'}, {'lease': 'x' * 256}, {'nonsense': True},
], ids=lambda b: json.dumps(b)[:40])
def test_bad_creates(boxes, body):
    check_error(boxes, boxes.ask('POST', '/sandbox/create', body=body), 400)


def test_unknown_environment_names_those_there_are(boxes):
    answer = boxes.ask('POST', '/sandbox/create', body={'environment': 'cobol-85'})
    check_error(boxes, answer, 404)
    assert 'cobol-85' in answer.json['message'] and 'nodejs-18' in answer.json['message']


@pytest.mark.parametrize('method,path', [
    ('POST', '/sandbox/{}/execute'), ('GET', '/sandbox/{}/status'), ('DELETE', '/sandbox/{}')])
@pytest.mark.parametrize('name', ['sb-00000000000000000000', 'x', 'sb-', '%00', 'a' * 3000,
                                  '00000000-0000-4000-8000-000000000000'], ids=lambda n: n[:24])
def test_no_such_box(boxes, method, path, name):
    answer = boxes.ask(method, path.format(name), body={} if method == 'POST' else b'')
    check_error(boxes, answer, 400 if name == '%00' else 404)


def test_a_caller_that_leaves(boxes):
    """What runs goes on; what would come next does not begin."""
    with boxes.box() as box:
        sock = boxes.connect()
        sock.sendall(boxes.request('POST', f'/sandbox/{box}/execute', body={
            'commands': ['echo begun > /tmp/begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo on > /tmp/on',
                         'echo third > /tmp/third']}))
        wait_until(lambda: boxes.run(box, 'cat /tmp/begun')['stdout'] == 'begun\n', 'the first command')
        sock.close()
        boxes.run(box, 'echo > /tmp/go')
        wait_until(lambda: boxes.run(box, 'cat /tmp/on')['stdout'] == 'on\n', 'the rest of it')
        wait_until(lambda: boxes.get(f'{API}/{box}/commands/1')['state'] == 'ended', 'its end')
        assert boxes.run(box, 'ls /tmp/third')['end']['exit_code'] != 0


PYTEST_LINES = '''============================= test session starts ==============================
collected 3 items

test_a.py ..F                                                            [100%]

=================================== FAILURES ===================================
__________________________________ test_three __________________________________
=========================== short test summary info ============================
FAILED test_a.py::test_three - assert 1 == 2
========================= 1 failed, 2 passed in 0.12s ==========================
'''


def test_results_of_tests(boxes):
    with boxes.box() as box:
        done = boxes.execute(box, files={'out': PYTEST_LINES}, commands=['echo not yet', 'cat out; exit 1'])
        results = done['test_results']
        assert (results['runner'], results['total'], results['passed'], results['failed'],
                results['skipped']) == ('pytest', 3, 2, 1, 0)
        assert any('test_three' in name for name in results['failing'])
        assert not done['success']

        # The summary stands behind more than anybody reads.
        done = boxes.execute(box, commands=['seq 1000000; cat out'])
        assert (done['test_results']['failed'], done['test_results']['partial']) == (1, True)
