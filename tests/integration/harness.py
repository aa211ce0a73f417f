# SPDX-License-Identifier: Apache-2.0
"""A real `coop serve` in a folder of its own, and clients that are plain sockets.

Waiting means waiting for the thing itself, with a deadline that only a broken server reaches.
"""
import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import re
import resource
import select
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
PROGRAM = os.environ.get('COOP_PROGRAM', 'coop')
WAIT_S = 60
IS_ROOT = os.geteuid() == 0
TICKS_A_SECOND = os.sysconf('SC_CLK_TCK')
# What a sanitizer, GLib or an assertion says before, or instead of, ending the process.
ALARM = re.compile(r'AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|runtime error:'
                   r'|CRITICAL \*\*|WARNING \*\*|^ERROR:|\(process:\d+\)', re.M)
# One line of the log, whatever is in it.
LOG_LINE = re.compile(r't=\S+Z level=(debug|info|warn|error) mod=[\w-]+ msg="(?:[^"\\]|\\.)*"'
                      r'(?: \w+=(?:[!#-<>-\[\]-~]+|"(?:[ !#-\[\]-~…]|\\.)*"))*')


def wait_until(check, what, seconds=WAIT_S):
    """Asks again and again: for states that no file descriptor tells of.  `what`: words, or who finds them."""
    end = time.monotonic() + seconds
    while True:
        result = check()
        if result:
            return result
        assert time.monotonic() < end, f'{what() if callable(what) else what}: not within {seconds} s'
        select.select([], [], [], 0.02)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f'{self.status} {self.body[:300]!r}'


def read_answer(sock, method='GET'):
    """The body of a stream, which has no end, is left unread."""
    response = http.client.HTTPResponse(sock, method=method)
    response.begin()
    endless = response.getheader('Content-Type') == 'text/event-stream'
    return Answer(response, b'' if endless else response.read())


def read_all(sock):
    """Until the server closes; a reset counts as a close."""
    got = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65536):
            got += piece
    return bytes(got)


class Server:
    """Not started by the constructor: a test may want to prepare the folder."""

    def __init__(self, folder, args=(), env=None, preexec=None, prefix=()):
        self.folder = pathlib.Path(folder)
        self.home = self.folder / 'home'
        self.log_path = self.folder / 'log'
        self.args, self.env, self.preexec, self.prefix = list(args), dict(env or {}), preexec, list(prefix)
        self.port = free_port()
        self.process = self.key = self.link = None
        self.stopped_hard = False

    @property
    def address(self):
        return ('127.0.0.1', self.port)

    @property
    def host(self):
        return f'127.0.0.1:{self.port}'

    @property
    def control_path(self):
        return str(self.home / 'run' / 'control.sock')

    def environment(self):
        keep = {k: v for k, v in os.environ.items() if k in ('PATH', 'LANG', 'ASAN_OPTIONS', 'UBSAN_OPTIONS')}
        quiet = {'G_DEBUG': 'fatal-criticals', 'COOP_HTTP_RATE_PER_KEY': '1000000',
                 'COOP_HTTP_RATE_BURST': '1000000', 'COOP_HTTP_STREAMS_PER_KEY': '100000',
                 'COOP_BOXES_ENABLED': 'false', 'COOP_TEMPLATES_BUILD': 'false'}
        return {**keep, **quiet, 'COOP_HOME': str(self.home), **self.env}

    def command(self):
        user = ['--user', 'root'] if IS_ROOT and not self.prefix else []
        return [*self.prefix, PROGRAM, 'serve', '-o', 'json', '--listen', self.host, *user, *self.args]

    def before_exec(self):
        """A test that is killed leaves no server behind."""
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if self.preexec is not None:
            self.preexec()

    def spawn(self):
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(self.command(), env=self.environment(), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log, preexec_fn=self.before_exec)
        return self

    def start(self):
        self.spawn()
        line = self._read_line()
        assert line, f'the server did not start:\n{self.log()}'
        self.link = json.loads(line)['link']
        self.key = (self.home / 'key').read_text().strip()
        wait_until(self._has_told_of_its_start, 'the event of the start')
        return self

    def _has_told_of_its_start(self):
        """It is ready a moment earlier; tests that count events wait for this one."""
        with self.connect_control() as sock:
            page = self.get('/api/v1/events?kind=server.started&limit=500', key=None, host='localhost', sock=sock)
        return page['events'] and page['events'][-1]['data']['pid'] == self.pid

    def _read_line(self):
        fd, got = self.process.stdout.fileno(), b''
        end = time.monotonic() + WAIT_S
        while b'\n' not in got:
            ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            piece = os.read(fd, 4096) if ready else b''
            if not piece:
                return b''
            got += piece
        return got

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors='replace')

    def log_lines(self, text):
        return [line for line in self.log().splitlines() if text in line]

    def kill(self):
        """kill -9: what was not on the disk is lost."""
        self.process.kill()
        self._reap()

    def stop(self, seconds=WAIT_S):
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds=WAIT_S):
        status = self.process.wait(seconds)
        self._reap()
        return status

    def wait_killed(self):
        """It has met a failpoint."""
        assert self.wait() == -signal.SIGKILL

    def _reap(self):
        if self.process is not None:
            self.process.wait(WAIT_S)
            self.process.stdout.close()
            self.process = None

    def finish(self):
        """The end of a test: a clean stop and a clean log."""
        status = 0
        if self.process is not None:
            try:
                status = self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
                status = 'no stop within the deadline'
        log = self.log() if self.log_path.exists() else ''
        alarm = ALARM.search(log)
        assert alarm is None, f'the server complained:\n{log[alarm.start():alarm.start() + 6000]}'
        assert status == 0, f'the server ended with {status}:\n{log[-3000:]}'

    # ---- clients ----

    def connect(self, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(WAIT_S)
        s.connect(self.address)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def connect_control(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(WAIT_S)
        s.connect(self.control_path)
        return s

    def request(self, method, path, headers=None, body=b'', key='', version='1.1', host=''):
        """The bytes of a request.  `key` '' is the first admin key, None is nobody; `host` ''
        is the right one, None is none."""
        fields = {}
        if host is not None:
            fields['Host'] = host or self.host
        if key is not None:
            fields['X-API-Key'] = key or self.key
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            fields['Content-Type'] = 'application/json'
        if body:
            fields['Content-Length'] = str(len(body))
        fields.update(headers or {})
        lines = [f'{method} {path} HTTP/{version}']
        lines += [f'{name}: {value}' for name, value in fields.items() if value is not None]
        return '\r\n'.join(lines).encode('latin-1') + b'\r\n\r\n' + body

    def ask(self, method, path, headers=None, body=b'', key='', version='1.1', host='', sock=None):
        bytes_ = self.request(method, path, headers, body, key, version, host)
        with contextlib.ExitStack() as stack:
            s = sock or stack.enter_context(self.connect())
            s.sendall(bytes_)
            return read_answer(s, method)

    def get(self, path, **more):
        answer = self.ask('GET', path, **more)
        assert answer.status == 200, answer
        return answer.json

    def post(self, path, body, status=201, **more):
        answer = self.ask('POST', path, body=body, **more)
        assert answer.status == status, answer
        return answer.json

    def raw(self, bytes_):
        """Sends, and gives back everything until the server closes."""
        with self.connect() as s:
            with contextlib.suppress(ConnectionError):
                s.sendall(bytes_)
            return read_all(s)

    def is_well(self):
        return self.ask('GET', '/health', key=None).status == 200

    # ---- what tests ask for again and again ----

    def make_key(self, scopes='admin', name='test', **more):
        return self.post('/api/v1/keys', {'name': name, 'scopes': scopes, **more})

    def sign_in(self):
        """A cookie, by a ticket."""
        ticket = self.post('/api/v1/tickets', b'')['ticket']
        answer = self.ask('POST', '/api/v1/session', body={'ticket': ticket}, key=None)
        assert answer.status == 201, answer
        return answer.headers['Set-Cookie'].split(';')[0]

    def last_seq(self):
        return self.get('/api/v1/stats')['seq']

    def events(self, after=0, **filters):
        """All of them, page by page."""
        query = ''.join(f'&{name}={value}' for name, value in filters.items())
        found, more = [], True
        while more:
            page = self.get(f'/api/v1/events?after={after}&limit=500{query}')
            found += page['events']
            after, more = page['next_after'], page['more']
        return found

    def pids(self, program):
        """Of those that a supervisor has started, one after the other."""
        return [int(pid) for pid in re.findall(rf'msg="started" program={program} pid=(\d+)', self.log())]

    def family(self):
        """Folders in /proc of itself and of all that it has started."""
        parents = {}
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                parents[int(process.name)] = int((process / 'stat').read_text().rpartition(')')[2].split()[1])
        found = [self.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return [pathlib.Path(f'/proc/{pid}') for pid in found]

    def resident_kib(self):
        text = pathlib.Path(f'/proc/{self.pid}/status').read_text()
        return int(re.search(r'^VmRSS:\s+(\d+)', text, re.M)[1])

    def cpu_s(self):
        """Its own time: what else runs on the machine does not count."""
        fields = pathlib.Path(f'/proc/{self.pid}/stat').read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def open_fds(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))


class Stream:
    """An event stream: each item is a dict with id, event, data."""

    def __init__(self, server, path='/api/v1/events', last_id=None, receive_buffer=None, headers=None, method='GET',
                 **more):
        headers = {'Accept': 'text/event-stream', **(headers or {})}
        if last_id is not None:
            headers['Last-Event-ID'] = str(last_id)
        self.sock = server.connect(receive_buffer)
        self.sock.sendall(server.request(method, path, headers=headers, **more))
        self.response = http.client.HTTPResponse(self.sock)
        self.response.begin()
        assert self.response.status == 200, self.response.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.response.close()
        self.sock.close()

    def next(self):
        """None at the end."""
        item = {}
        while line := self.response.readline():
            text = line.decode().rstrip('\n')
            if text == '' and item:
                return item
            name, _, value = text.partition(': ')
            item[name] = json.loads(value) if name == 'data' else value
        return None

    def until(self, enough):
        """Items up to and including the first for which `enough` is true."""
        items, end = [], time.monotonic() + WAIT_S
        while item := self.next():
            items.append(item)
            if enough(item):
                return items
            assert time.monotonic() < end, f'not within {WAIT_S} s; the last were {items[-3:]}'
        raise AssertionError(f'the stream ended early, after {items[-3:]}')


def check_error(server, answer, status):
    """An error says what and not more: no path, no SQL, no secret, no source file."""
    assert answer.status == status, answer
    assert answer.headers['Content-Type'] == 'application/json'
    if 'documentation_url' in answer.json:  # GitHub's form
        assert set(answer.json) - {'errors'} == {'message', 'documentation_url', 'status', 'request_id'}
        assert answer.json['status'] == str(status) and answer.json['message']
    else:
        assert set(answer.json) == {'code', 'message', 'request_id'}
        assert answer.json['code'] == status and answer.json['message']
    text = answer.body.decode().lower()
    for word in (str(server.home), 'coop.db', '.c:', 'sqlite', 'select ', 'insert ', 'no such table', server.key[:14]):
        assert word.lower() not in text, text


def limit_files(n):
    """For Server(preexec=...)."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
