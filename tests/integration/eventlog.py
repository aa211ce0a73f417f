# SPDX-License-Identifier: Apache-2.0
"""The event log of a stopped server, read and written past the program.

The chain of hashes is made here a second time, so that a test does not ask the program whether
the program is right.
"""
import contextlib
import hashlib
import sqlite3
import struct
import time

COLUMNS = 'seq, at_us, kind, actor, task_id, squad_id, box_id, execution_id, data, owner'
NONE = struct.pack('<Q', 2 ** 64 - 1)


def row_hash(previous, row):
    state = hashlib.blake2b(previous, digest_size=32)
    state.update(struct.pack('<QQ', row[0], row[1]))
    for text in row[2:9]:
        state.update(NONE if text is None else struct.pack('<Q', len(text.encode())) + text.encode())
    if row[9]:
        state.update(struct.pack('<Q', len(row[9].encode())) + row[9].encode())
    return state.digest()


def open_log(home):
    return contextlib.closing(sqlite3.connect(home / 'coop.db'))


def insert(db, row, previous):
    digest = row_hash(previous, row)
    db.execute(f'INSERT INTO events ({COLUMNS}, hash) VALUES ({",".join("?" * 11)})', (*row, digest))
    return digest


def append(home, events):
    """Each a dict of columns."""
    with open_log(home) as db, db:
        last = db.execute('SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1').fetchone()
        seq, previous = last or (0, bytes(32))
        for event in events:
            seq += 1
            row = (seq, int(time.time() * 1e6), event['kind'], event.get('actor', 'test'), event.get('task_id'),
                   event.get('squad_id'), event.get('box_id'), event.get('execution_id'), event.get('data', '{}'), event.get('owner', ''))
            previous = insert(db, row, previous)
    return seq


def rewrite(home, change):
    """Every row as `change` makes it, and the chain anew."""
    with open_log(home) as db, db:
        rows = db.execute(f'SELECT {COLUMNS} FROM events ORDER BY seq').fetchall()
        db.execute('DELETE FROM events')
        previous = bytes(32)
        for row in rows:
            previous = insert(db, change(row), previous)


def make_older(home, seconds):
    """As if everything had happened long ago."""
    rewrite(home, lambda row: (row[0], row[1] - seconds * 1000000, *row[2:]))


def forget_owners(home):
    """As a server wrote it that knew none."""
    rewrite(home, lambda row: (*row[:9], ''))
    with open_log(home) as db, db:
        db.execute('DROP INDEX events_by_owner')
        db.execute('ALTER TABLE events DROP COLUMN owner')
        db.execute('DELETE FROM schema WHERE version = 18')
        db.execute('PRAGMA user_version = 17')


def verify(home):
    """The number of events; fails where one does not follow from the one before."""
    with open_log(home) as db:
        assert db.execute('PRAGMA integrity_check').fetchall() == [('ok',)]
        rows = db.execute(f'SELECT {COLUMNS}, hash FROM events ORDER BY seq').fetchall()
    previous = bytes(32)
    for number, row in enumerate(rows, 1):
        assert row[0] == number, f'event {number} is missing'
        previous = row_hash(previous, row[:10])
        assert previous == row[10], f'event {number} does not follow'
    return len(rows)
