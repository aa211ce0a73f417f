# SPDX-License-Identifier: Apache-2.0
"""The commands on boxes, against real ones."""
import hashlib
import json
import os
import pty
import re
import select
import signal
import subprocess

import pytest

from harness import PROGRAM, WAIT_S, wait_until


@pytest.fixture
def cli(boxes):
    def run(*args, code=0, **options):
        done = subprocess.run(command(boxes, *args), env=boxes.environment(), capture_output=True, timeout=WAIT_S,
                              **options)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done
    return run


def command(boxes, *args):
    return [PROGRAM, *map(str, args)]


def live(boxes):
    return {one['sandbox_id'] for one in boxes.get('/api/v1/sandboxes')['sandboxes']}


@pytest.fixture
def box(cli):
    made = cli('sandbox', 'create').stdout.decode().strip()
    yield made
    cli('rm', made)


@pytest.mark.parametrize('args, code, out, err', [
    (['seq', '-s', '+', '3'], 0, b'1+2+3\n', b''),
    (['echo out; echo err >&2; exit 3'], 3, b'out\n', b'err\n'),
    (['printf "x\\000\\377"'], 0, b'x\0\xff', b''),
    (['kill -TERM $$'], 143, b'', None),
    (['no-such-program', 'x'], 127, b'', None),
])
def test_run_is_as_if_it_ran_here(boxes, cli, args, code, out, err):
    before = live(boxes)
    done = cli('run', '--', *args, code=code)
    assert done.stdout == out
    if err is not None:
        assert done.stderr == err
    assert live(boxes) == before


def test_run_with_everything(boxes, cli):
    done = cli('run', '-e', 'A=b c', '-w', '/tmp', '-u', '0:0', '--memory', '64MiB', '--', 'echo "$A"; pwd; id -u')
    assert done.stdout == b'b c\n/tmp\n0\n'
    told = json.loads(cli('run', '-o', 'json', '--', 'echo x; exit 2', code=2).stdout)
    assert told['stdout'] == 'x\n' and told['end']['exit_code'] == 2
    assert cli('run', '--timeout', '1s', '--', 'sleep', '100', code=124).stdout == b''
    assert b"'--memry'" in cli('run', '--memry', '1', '--', 'true', code=2).stderr


def posts(boxes):
    """How often each route was asked to do something."""
    said = boxes.ask('GET', '/metrics').body.decode()
    counts = {}
    for route, n in re.findall(r'coop_http_requests_total\{method="POST",route="([^"]+)",[^}]*\} (\d+)', said):
        counts[route] = counts.get(route, 0) + int(n)
    return counts


@pytest.mark.parametrize('flag, line, given, out', [
    ('--rm', 'echo x; cat', b'y\n', b'x\n'), ('-i', 'echo x; cat', b'y\n', b'x\ny\n'), ('-t', 'echo x', b'', b'x\r\n')])
def test_run_is_one_request(boxes, cli, flag, line, given, out):
    before, boxes_before = posts(boxes), live(boxes)
    assert cli('run', flag, '--', line, input=given).stdout == out
    after = posts(boxes)
    assert after['/api/v1/sandboxes'] == before.get('/api/v1/sandboxes', 0) + 1
    assert after.get('/api/v1/sandboxes/{id}/commands') == before.get('/api/v1/sandboxes/{id}/commands')
    assert live(boxes) == boxes_before


def test_run_detached(boxes, cli):
    before = posts(boxes)
    made = cli('run', '-d', '--', 'echo x; sleep 1000').stdout.decode().strip()
    assert made in live(boxes)
    assert [c['command'] for c in boxes.get(f'/api/v1/sandboxes/{made}/commands')['commands']] == ['echo x; sleep 1000']
    told = json.loads(cli('run', '-o', 'json', '-d', '--', 'true').stdout)
    after = posts(boxes)
    assert after['/api/v1/sandboxes'] == before.get('/api/v1/sandboxes', 0) + 2
    assert after.get('/api/v1/sandboxes/{id}/commands') == before.get('/api/v1/sandboxes/{id}/commands')
    cli('rm', made)
    cli('rm', told['sandbox_id'])


def test_a_run_that_is_refused_leaves_no_box(boxes, cli):
    before = live(boxes)
    assert b'no-such-template' in cli('run', '--template', 'no-such-template', '--', 'true', code=4).stderr
    assert b'standard input is no terminal' in cli('run', '-it', '--', 'true', code=2, stdin=subprocess.DEVNULL).stderr
    assert cli('run', '-u', 'x' * 100, '--', 'true', code=2).stderr
    assert live(boxes) == before


def test_options_after_the_command_are_the_commands(cli):
    assert cli('run', 'seq', '-s', 'o', '2').stdout == b'1o2\n'
    assert cli('run', 'head', '-o', 'json', code=1).stdout == b''


def test_input(cli, box):
    data = os.urandom(3_000_000)
    done = cli('exec', '-i', box, '--', 'sha256sum', '-', input=data)
    assert done.stdout.decode().split()[0] == hashlib.sha256(data).hexdigest()
    assert cli('exec', box, '--', 'cat', '-').stdout == b''


def test_a_signal_reaches_the_command(boxes, box):
    child = subprocess.Popen(command(boxes, 'exec', box, '--', 'trap "echo caught; exit 7" TERM; echo ready; '
                                     'while :; do sleep 1; done'),
                             env=boxes.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b'ready\n'
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=WAIT_S)
    assert out == b'caught\n' and child.returncode == 7


def test_a_run_that_is_killed_is_left_to_its_box(boxes, box):
    child = subprocess.Popen(command(boxes, 'exec', box, '--', 'echo ready; sleep 1000'), env=boxes.environment(),
                             stdout=subprocess.PIPE)
    assert child.stdout.readline() == b'ready\n'
    child.kill()
    child.wait()
    child.stdout.close()
    assert boxes.get(f'/api/v1/sandboxes/{box}/commands')['commands'][-1]['state'] == 'running'


def test_copies(boxes, cli, box, tmp_path):
    data = os.urandom(1_000_000)
    tree = tmp_path / 'tree'
    (tree / 'a').mkdir(parents=True)
    (tree / 'a' / 'file').write_bytes(data)
    (tree / 'a' / 'run').write_text('#!/bin/sh\n')
    (tree / 'a' / 'run').chmod(0o755)
    (tree / 'link').symlink_to('a/file')
    cli('cp', tree, f'{box}:/tmp/')
    assert cli('exec', box, 'cat', '/tmp/tree/link').stdout == data
    back = tmp_path / 'back'
    cli('cp', f'{box}:/tmp/tree', back)
    assert (back / 'a' / 'file').read_bytes() == data and os.readlink(back / 'link') == 'a/file'
    assert os.access(back / 'a' / 'run', os.X_OK)
    cli('cp', tree / 'a' / 'file', f'{box}:/tmp/one')
    cli('cp', f'{box}:/tmp/one', tmp_path)
    assert (tmp_path / 'one').read_bytes() == data and not list(tmp_path.glob('*.part'))
    assert b'there is no' in cli('cp', f'{box}:/nothing', tmp_path, code=4).stderr
    assert b'one of the two' in cli('cp', tree, tmp_path, code=2).stderr


def test_logs(boxes, cli, box):
    cli('exec', box, '--', 'echo one; echo two >&2')
    done = cli('logs', box)
    assert (done.stdout, done.stderr) == (b'one\n', b'two\n')
    detached = boxes.start_command(box, 'echo first; read line < /tmp/go || :; echo last')['id']
    assert b'first' in wait_until(lambda: cli('logs', box, detached).stdout, 'output')
    boxes.ended(box, detached)
    assert cli('logs', '-f', box, detached).stdout == b'first\nlast\n'
    assert b'no command has run' in cli('logs', cli('sandbox', 'create', '--lease', 'logs').stdout.decode().strip(),
                                        code=4).stderr


def test_lists(boxes, cli, box):
    assert box in cli('ps').stdout.decode() and box in cli('sandbox', 'ls').stdout.decode()
    assert {one['sandbox_id'] for one in json.loads(cli('ps', '-o', 'json').stdout)} == live(boxes)
    assert box in cli('sandbox', 'stats').stdout.decode()
    table = cli('top', '--once', box).stdout.decode().splitlines()
    assert len(table) == 2 and '%' in table[1]
    assert box in cli('sandbox', 'show', box).stdout.decode()


def test_pause_and_resume(cli, box):
    cli('sandbox', 'pause', box)
    assert b'paused' in cli('exec', box, 'true', code=6).stderr
    cli('sandbox', 'resume', box)
    cli('exec', box, 'true')


def test_what_is_not_there(cli):
    for args in (['exec', 'sb-nothing', 'true'], ['rm', 'sb-nothing'], ['logs', 'sb-nothing'],
                 ['sandbox', 'show', 'sb-nothing'], ['cp', 'sb-nothing:/x', '/tmp/']):
        assert cli(*args, code=4).stderr.startswith(b'coop: ')


@pytest.mark.parametrize('new', [False, True])
def test_shell(boxes, box, new):
    before = live(boxes)
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(boxes.environment())
        os.execv(PROGRAM, command(boxes, 'shell', *([] if new else [box])))
    seen = b''

    def expect(text):
        nonlocal seen
        while text not in seen:
            assert select.select([fd], [], [], WAIT_S)[0], seen
            seen += os.read(fd, 65536)
        seen = seen.split(text, 1)[1]
    os.write(fd, b'echo $((20 + 22)) $(stty size)\r')
    expect(b'42 ')
    # A word of the command itself: before that the terminal is still the shell's.
    os.write(fd, b"sh -c 'echo up$((1+1)); exec sleep 1000'\r")
    expect(b'up2')
    os.write(fd, b'\x03')
    os.write(fd, b'echo $((1+1))=$?\r')
    expect(b'2=130')
    os.write(fd, b'exit 5\r')
    with pytest.raises(OSError):
        while select.select([fd], [], [], WAIT_S)[0]:
            os.read(fd, 65536)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    os.close(fd)
    assert live(boxes) == before
