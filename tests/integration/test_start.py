# SPDX-License-Identifier: Apache-2.0
"""`coop start`: the server under its supervisor."""
import json
import os
import re
import signal
import subprocess
import urllib.request

import pytest

TIMEOUT = 60


class Started:
    """A running `coop start`; its log is read line by line."""

    def __init__(self, coop, *args, **options):
        self.process = coop.popen('start', '--home', coop.folder / 'data', '--listen', '127.0.0.1:0', *args,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def until(self, pattern):
        for line in self.process.stderr:
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f'the log ended without {pattern}')

    def pid_of_server(self):
        return int(self.until(r'mod=supervisor msg="started" program=serve pid=(\d+)').group(1))

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(TIMEOUT)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture
def start(coop):
    running = []

    def begin(*args, **options):
        running.append(Started(coop, *args, **options))
        return running[-1]
    yield begin
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


USER = ['--user', 'nobody'] if os.geteuid() == 0 else []


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGINT])
def test_start_and_stop(start, how):
    running = start(*USER, '--log', 'info,supervisor=debug')
    pid = running.pid_of_server()
    running.until('mod=supervisor msg="state" program=serve from=starting to=ready')
    assert running.process.stdout.readline() == 'Coop is ready.\n'
    assert running.stop(how) == 0
    assert is_gone(pid)


@pytest.mark.parametrize('who', ['root', 'user'] if os.geteuid() == 0 else ['user'])
@pytest.mark.parametrize('output', ['text', 'json'])
def test_address_and_link(start, who, output):
    """They work as they are printed, with a port that the kernel chose."""
    user = ['--user', 'nobody'] if who == 'root' else []
    running = start(*user, '--output', output, who=who)
    first = running.process.stdout.readline()
    if output == 'json':
        told = json.loads(first)
        address, link = told['address'], told['link']
    else:
        assert first == 'Coop is ready.\n'
        address, link = [running.process.stdout.readline().split()[-1] for _ in range(2)]
    ticket = re.fullmatch(re.escape(address) + r'/#ticket=([0-9a-f]+)', link)[1]
    assert not address.endswith(':0')
    request = urllib.request.Request(address + '/api/v1/session', json.dumps({'ticket': ticket}).encode(),
                                     {'Content-Type': 'application/json'})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        assert answer.status == 201 and 'coop_session=' in answer.headers['Set-Cookie']
    assert running.stop() == 0


def test_a_killed_server_is_restarted(start):
    running = start(*USER)
    first = running.pid_of_server()
    running.until('mod=daemon msg="ready"')
    os.kill(first, signal.SIGKILL)
    second = running.pid_of_server()
    assert second != first
    running.until('mod=daemon msg="ready"')
    assert running.stop() == 0
    assert is_gone(second)


def test_a_killed_supervisor_takes_the_server_along(start):
    running = start(*USER)
    running.pid_of_server()
    running.until('mod=daemon msg="ready"')
    running.process.kill()
    running.process.wait()
    # The server holds this pipe too: it ends when the server has ended.
    assert 'msg="stopping"' in running.process.stderr.read()


def test_not_twice_on_one_folder(coop, start):
    running = start(*USER)
    running.until('mod=daemon msg="ready"')
    second = coop('start', *USER, '--home', coop.folder / 'data', '--listen', '127.0.0.1:0')
    assert second.returncode == 6
    assert second.stderr.count('program=serve') == 1
    assert running.stop() == 0


if os.geteuid() == 0:
    @pytest.mark.parametrize('user, code, message', [
        ('root', 2, 'the server does not run as root'),
        ('no-such-user', 1, "there is no user 'no-such-user'"),
    ])
    def test_users(coop, user, code, message):
        done = coop('start', '--user', user)
        assert done.returncode == code and message in done.stderr


def test_only_root_chooses_a_user(coop):
    done = coop('start', '--user', 'daemon', who='user')
    assert done.returncode == 2 and "only root can run the server as user 'daemon'" in done.stderr
