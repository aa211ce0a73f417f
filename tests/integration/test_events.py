# SPDX-License-Identifier: Apache-2.0
"""The event log over HTTP: pages, streams, filters, and what is said when something is gone."""
import concurrent.futures

import pytest

import eventlog
from harness import Stream, check_error, wait_until

FIRST = [{'kind': 'task.created', 'task_id': 't1', 'squad_id': 's1'},
         {'kind': 'task.moved', 'task_id': 't1', 'squad_id': 's1', 'data': '{"to":"done"}'},
         {'kind': 'task.created', 'task_id': 't2', 'squad_id': 's1'},
         {'kind': 'box.created', 'task_id': 't2', 'box_id': 'b1'},
         {'kind': 'box.killed', 'box_id': 'b1', 'execution_id': 'x1'},
         {'kind': 'box.created', 'box_id': 'b2'}]


@pytest.fixture
def prepared(make_server):
    """A server whose log holds FIRST after what a start writes."""
    server = make_server()
    assert server.stop() == 0
    server.base = eventlog.verify(server.home)
    eventlog.append(server.home, FIRST)
    return server.start()


def seqs(events):
    return [event['seq'] for event in events]


# ---- pages ----

def test_pages(prepared):
    everything = prepared.events()
    assert seqs(everything) == list(range(1, prepared.last_seq() + 1))
    for limit in (1, 2, 5, 500):
        found, after = [], 0
        for _ in range(100):
            page = prepared.get(f'/api/v1/events?after={after}&limit={limit}')
            assert set(page) == {'events', 'next_after', 'more', 'seq'}
            assert len(page['events']) <= limit
            assert page['seq'] == len(everything)
            assert page['more'] == (page['next_after'] < len(everything))
            found, after = found + page['events'], page['next_after']
            if not page['more']:
                break
        assert found == everything
    past = prepared.get('/api/v1/events?after=999999')
    assert past['events'] == [] and not past['more']


def test_an_event_has_its_fields(prepared):
    event = prepared.get(f'/api/v1/events?after={prepared.base + 1}&limit=1')['events'][0]
    assert event.pop('at').endswith('Z')
    assert event == {'seq': prepared.base + 2, 'kind': 'task.moved', 'actor': 'test', 'task_id': 't1',
                     'squad_id': 's1', 'data': {'to': 'done'}}


FILTERS = [('task=t1', [1, 2]), ('task=t2', [3, 4]), ('squad=s1', [1, 2, 3]), ('box=b1', [4, 5]), ('execution=x1', [5]),
           ('kind=box.created', [4, 6]), ('kind=box.*', [4, 5, 6]), ('kind=task.*,box.killed', [1, 2, 3, 5]),
           ('kind=task.created&squad=s1&task=t2', [3]), ('task=t1&box=b1', []), ('task=%74%31', [1, 2]), ('task=T1', []),
           ("task=t1'%20OR%201=1--", []), ('task=t%25', []), ('kind=task.created,task.created', [1, 3])]


@pytest.mark.parametrize('query, wanted', FILTERS)
def test_filters(prepared, query, wanted):
    """The same in pages and in a stream."""
    wanted = [prepared.base + n for n in wanted]
    page = prepared.get(f'/api/v1/events?after={prepared.base}&{query}')
    assert seqs(page['events']) == wanted
    if wanted:
        with Stream(prepared, f'/api/v1/events?after={prepared.base}&{query}') as stream:
            items = stream.until(lambda item: item['id'] == str(wanted[-1]) and item['event'] != 'beat')
        assert [int(item['id']) for item in items if item['event'] != 'beat'] == wanted


BAD = [('limit=0', 'limit'), ('limit=501', 'limit'), ('limit=-1', 'limit'), ('limit=1e2', 'limit'), ('limit=', 'limit'),
       ('limit=10&limit=20', 'limit'), ('after=-1', 'after'), ('after=x', 'after'), ('after=99999999999999999999', 'after'),
       ('after=1%00', 'after'), ('kind=', 'kind'), ('kind=box', 'box'), ('kind=*', '*'), ('kind=.*', '.*'),
       ('kind=box.*.*', 'box.*.*'), ('kind=box.created,', 'kind'), ('kind=BOX.created', 'BOX.created'),
       ('kind=%ff', 'kind'), ('kind=' + 'x' * 63 + '%C3%A9', 'kind'), ('kind=' + ','.join(['box.*'] * 33), 'kinds'),
       ('task=' + 'x' * 101, 'task'), ('task=%ff', 'task'), ('task=%zz', 'task'), ('bocks=b1', 'bocks'),
       ('Task=t1', 'Task'), ('task=a&task=b', 'task'), ('=1', '')]


@pytest.mark.parametrize('query, word', BAD)
def test_bad_parameters_are_named(server, query, word):
    for headers in ({}, {'Accept': 'text/event-stream'}):
        answer = server.ask('GET', f'/api/v1/events?{query}', headers=headers)
        check_error(server, answer, 400)
        assert word in answer.json['message']


@pytest.mark.parametrize('last', ['x', '-1', '1.5', ' 1 2', '99999999999999999999', '1,2', '0x1'])
def test_bad_last_event_id(server, last):
    answer = server.ask('GET', '/api/v1/events', headers={'Accept': 'text/event-stream', 'Last-Event-ID': last})
    assert answer.status == 400
    assert 'Last-Event-ID' in answer.json['message']


# ---- streams ----

def test_only_who_asks_gets_a_stream(server):
    """curl --http2 offers an upgrade with every call."""
    for headers in ({}, {'Accept': '*/*'}, {'Connection': 'Upgrade', 'Upgrade': 'h2c'}):
        answer = server.ask('GET', '/api/v1/events', headers=headers)
        assert answer.headers['Content-Type'] == 'application/json' and answer.json['events']


def test_a_stream_begins_with_a_beat(server):
    with Stream(server) as stream:
        assert stream.response.getheader('Content-Type') == 'text/event-stream'
        assert stream.response.getheader('Cache-Control') == 'no-store'
        beat = stream.next()
        assert beat['event'] == 'beat' and beat['data']['seq'] == int(beat['id']) == server.last_seq()
        made = server.make_key('read', 'seen by the stream')
        item = stream.next()
        assert item['event'] == item['data']['kind'] == 'key.created'
        assert int(item['id']) == item['data']['seq'] == int(beat['id']) + 1
        assert item['data']['data']['id'] == made['id']


def test_resuming(prepared):
    last = prepared.last_seq()
    for start in range(last + 1):
        with Stream(prepared, last_id=start) as stream:
            assert stream.next()['id'] == str(start)  # a beat, and where we stand
            got = [int(stream.next()['id']) for _ in range(last - start)]
        assert got == list(range(start + 1, last + 1))


def test_the_header_goes_before_the_query(prepared):
    """A browser reconnects to the same address, with the header."""
    with Stream(prepared, '/api/v1/events?after=0', last_id=3) as stream:
        stream.next()
        assert stream.next()['id'] == '4'


def test_beats_go_on(server):
    """They tell where the reader stands even when its filter lets nothing through."""
    with Stream(server, '/api/v1/events?kind=box.*') as stream:
        first = stream.next()
        server.make_key('read')
        last = server.last_seq()
        second = stream.next()
        assert (first['event'], second['event']) == ('beat', 'beat')
        assert int(second['id']) == last > int(first['id'])


def test_resync_for_the_future(server):
    with Stream(server, last_id=10 ** 12) as stream:
        items = stream.until(lambda item: item['event'] == 'resync')
        assert int(items[-1]['id']) == items[-1]['data']['seq'] == server.last_seq()
        server.make_key('read')
        assert stream.next()['event'] == 'key.created'


def test_resync_for_what_retention_deleted(make_server):
    server = make_server()
    assert server.stop() == 0
    eventlog.append(server.home, FIRST * 800)  # more than a start keeps in memory
    eventlog.make_older(server.home, 3600)
    server.env['COOP_EVENTS_RETENTION'] = '30m'
    server.start()
    first = wait_until(lambda: (e := server.events()) and e[0]['seq'] > 1 and e[0]['seq'], 'retention')
    with Stream(server, last_id=1) as stream:
        items = [stream.next(), stream.next()]
        assert [item['event'] for item in items] == ['beat', 'resync']
        assert int(items[1]['id']) >= first
    with Stream(server, last_id=first) as stream:
        assert stream.next()['event'] == 'beat'
    assert server.get('/api/v1/events/verify')


# ---- a slow reader ----

def make_many(server, n, workers=6):
    """`n` keys made and revoked: two events each."""
    def work(count):
        with server.connect() as sock:
            for _ in range(count):
                made = server.post('/api/v1/keys', {'name': 'load'}, sock=sock)
                assert server.ask('DELETE', f"/api/v1/keys/{made['id']}", sock=sock).status == 204
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, [n // workers] * workers))


def numbers_until(stream, last):
    items = stream.until(lambda item: item['id'] == str(last) and item['event'] != 'beat')
    return [int(item['id']) for item in items if item['event'] != 'beat']


def test_a_slow_reader_misses_nothing(make_server):
    """More than memory holds goes by while it does not read; then it gets all, once, in order."""
    server = make_server(env={'ASAN_OPTIONS': 'quarantine_size_mb=1'})
    make_many(server, 60)
    with Stream(server, last_id=0, receive_buffer=4096) as slow, Stream(server) as quick:
        first = int(quick.next()['id'])
        before = server.resident_kib()
        make_many(server, 2700)
        last = server.last_seq()
        assert last > 5400
        grown = server.resident_kib() - before
        assert numbers_until(quick, last) == list(range(first + 1, last + 1))
        assert numbers_until(slow, last) == list(range(1, last + 1))
    # The ring (4 MiB), keys in memory, and what the sanitizer adds.
    assert grown < 48 * 1024, f'{grown} KiB more'
