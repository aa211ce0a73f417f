# SPDX-License-Identifier: Apache-2.0
"""How much one key may ask for, and that others do not notice."""
import pytest

from harness import Stream, wait_until


@pytest.fixture
def limited(make_server):
    return make_server(env={'COOP_HTTP_RATE_PER_KEY': '1', 'COOP_HTTP_RATE_BURST': '8'})


def use_up(server, **who):
    """Calls until the first that is turned away."""
    for n in range(20):
        answer = server.ask('GET', '/api/v1/session', **who)
        if answer.status != 200:
            return n, answer
    raise AssertionError('no limit')


def test_a_key_is_limited_and_others_are_not(limited):
    other = limited.make_key('read')['key']
    n, answer = use_up(limited)
    assert 6 <= n <= 9  # one went for the key, and a little comes back meanwhile
    assert answer.status == 429
    assert answer.json['code'] == 429 and 'rate_per_key' in answer.json['message']
    assert int(answer.headers['Retry-After']) == 1
    assert limited.ask('GET', '/api/v1/session', key=other).status == 200
    assert limited.ask('GET', '/health', key=None).status == 200
    metrics = limited.ask('GET', '/metrics', key=other).body.decode()
    assert 'coop_api_refused_total{why="rate"} 1' in metrics


def test_it_comes_back_after_retry_after(limited):
    use_up(limited)
    wait_until(lambda: limited.ask('GET', '/api/v1/session').status == 200, 'another call', 10)


def test_being_refused_costs_nothing_more(limited):
    """Somebody who hammers on gets exactly what somebody who waits gets."""
    use_up(limited)
    passed = []
    wait_until(lambda: (passed.append(limited.ask('GET', '/api/v1/session').status), passed.count(200) == 2)[1],
               'two more calls', 10)
    assert set(passed) == {200, 429}


def test_a_session_draws_on_its_key(limited):
    cookie = limited.sign_in()
    n, answer = use_up(limited, key=None, headers={'Cookie': cookie})
    assert n <= 7 and answer.status == 429
    assert limited.ask('GET', '/api/v1/session').status == 429


def test_the_owner_on_the_control_socket_is_not_limited(limited):
    use_up(limited)
    for _ in range(30):
        with limited.connect_control() as sock:
            assert limited.ask('GET', '/api/v1/stats', key=None, host='localhost', sock=sock).status == 200


def test_streams_per_key(make_server):
    server = make_server(env={'COOP_HTTP_STREAMS_PER_KEY': '2'})
    other = server.make_key('read')['key']
    accept = {'Accept': 'text/event-stream'}
    with Stream(server) as one, Stream(server):
        answer = server.ask('GET', '/api/v1/events', headers=accept)
        assert answer.status == 429
        assert 'streams_per_key' in answer.json['message'] and int(answer.headers['Retry-After']) >= 1
        assert server.get('/api/v1/events')['events']  # a page is no stream
        with Stream(server, key=other) as stream:
            assert stream.next()['event'] == 'beat'
        one.close()
        wait_until(lambda: server.get('/api/v1/stats')['http']['streams'] == 1, 'the end is seen')
        with Stream(server) as again:
            assert again.next()['event'] == 'beat'


def test_streams_are_given_back_however_they_end(make_server):
    """Refused, answered to HEAD, cut or closed: none may leave its place taken."""
    server = make_server(env={'COOP_HTTP_STREAMS_PER_KEY': '1'})
    accept = {'Accept': 'text/event-stream'}
    for _ in range(3):
        assert server.ask('GET', '/api/v1/events?limit=x', headers=accept).status == 400
        assert server.ask('HEAD', '/api/v1/events', headers=accept).status == 200
        with Stream(server) as stream:
            stream.next()
        wait_until(lambda: server.get('/api/v1/stats')['http']['streams'] == 0, 'the end is seen')
        with server.connect() as sock:
            sock.sendall(server.request('GET', '/api/v1/events', headers=accept))
        wait_until(lambda: server.get('/api/v1/stats')['http']['connections'] == 1, 'the end is seen')


@pytest.mark.parametrize('name, value', [('COOP_HTTP_RATE_PER_KEY', '0'), ('COOP_HTTP_RATE_BURST', 'many'),
                                         ('COOP_HTTP_STREAMS_PER_KEY', '-1')])
def test_bad_limits_do_not_start(make_server, name, value):
    server = make_server(start=False, env={name: value}).spawn()
    assert server.wait() == 78
    assert name in server.log()
