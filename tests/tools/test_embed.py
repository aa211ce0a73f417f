# SPDX-License-Identifier: Apache-2.0
"""tools/embed: what it refuses and what it writes; test-http-assets compiles a table of it."""
import hashlib
import pathlib
import re
import subprocess

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'embed'


def run(folder, *args, name='table'):
    done = subprocess.run([TOOL, '--name', name, '--output', folder / 'out.c', '--root', folder, *args],
                          capture_output=True, text=True, check=False)
    text = (folder / 'out.c').read_text() if done.returncode == 0 else ''
    return done.returncode, done.stderr, text


def rows(text):
    return [re.findall(r'"((?:[^"\\]|\\.)*)"|(\w+)', line)
            for line in text.splitlines() if line.startswith('    {"')]


def row_paths(text):
    return [row[0][0] for row in rows(text)]


def test_paths_are_sorted_and_index_is_the_root(tmp_path):
    (tmp_path / 'sub').mkdir()
    files = ['z.js', 'index.html', 'sub/index.html', 'a.css']
    for file in files:
        (tmp_path / file).write_text('x')
    code, _, text = run(tmp_path, *[tmp_path / f for f in files], f'/other={tmp_path}/a.css')
    assert code == 0
    assert row_paths(text) == ['/', '/a.css', '/other', '/sub/index.html', '/z.js']


@pytest.mark.parametrize('name, kind', [
    ('a.html', 'text/html; charset=utf-8'), ('a.js', 'text/javascript; charset=utf-8'),
    ('a.css', 'text/css; charset=utf-8'), ('a.svg', 'image/svg+xml'), ('A.PNG', 'image/png'),
    ('a.woff2', 'font/woff2'), ('a.json', 'application/json'), ('a.b.txt', 'text/plain; charset=utf-8'),
])
def test_content_type(tmp_path, name, kind):
    (tmp_path / name).write_bytes(b'x')
    _, _, text = run(tmp_path, tmp_path / name)
    assert rows(text)[0][1][0] == kind


def test_etag_is_of_the_content(tmp_path):
    (tmp_path / 'a.txt').write_bytes(b'hello')
    (tmp_path / 'b.txt').write_bytes(b'hello')
    (tmp_path / 'c.txt').write_bytes(b'Hello')
    _, _, text = run(tmp_path, *[tmp_path / f for f in ('a.txt', 'b.txt', 'c.txt')])
    tags = [row[2][0] for row in rows(text)]
    assert tags[0] == f'\\042{hashlib.sha256(b"hello").hexdigest()[:32]}\\042'
    assert tags[0] == tags[1] != tags[2]


def test_gzip_only_where_it_gains(tmp_path):
    (tmp_path / 'a.txt').write_bytes(b'x' * 1000)
    (tmp_path / 'b.txt').write_bytes(b'short')
    (tmp_path / 'c.png').write_bytes(b''.join(hashlib.sha256(bytes([i])).digest() for i in range(50)))
    (tmp_path / 'd.txt').write_bytes(b'')
    _, _, text = run(tmp_path, *[tmp_path / f for f in ('a.txt', 'b.txt', 'c.png', 'd.txt')])
    assert [row[5][1] for row in rows(text)] == ['gzip0', 'NULL', 'NULL', 'NULL']
    # magic, deflate, no flags, and four zero bytes where the time would be
    assert '"\\037\\213\\010' + '\\000' * 5 in text


def test_same_bytes_each_time(tmp_path):
    (tmp_path / 'a.txt').write_bytes(b'x' * 1000)
    first = run(tmp_path, tmp_path / 'a.txt')[2]
    (tmp_path / 'a.txt').touch()
    assert run(tmp_path, tmp_path / 'a.txt')[2] == first


@pytest.mark.parametrize('args, message', [
    (['a.odd'], 'has no content type'),
    (['none.txt'], 'No such file'),
    (['a.txt', 'a.txt'], '/a.txt is given twice'),
    (['/x=a.txt', '/x=a.txt'], '/x is given twice'),
    (['../a.txt'], 'is not in'),
])
def test_refuses(tmp_path, args, message):
    (tmp_path / 'a.txt').write_text('x')
    (tmp_path / 'a.odd').write_text('x')
    args = [a.replace('=', f'={tmp_path}/') if '=' in a else tmp_path / a for a in args]
    code, error, _ = run(tmp_path, *args)
    assert code != 0
    assert message in error


def test_refuses_a_name_that_is_no_identifier(tmp_path):
    (tmp_path / 'a.txt').write_text('x')
    assert 'not a C identifier' in run(tmp_path, tmp_path / 'a.txt', name='a b')[1]
