# SPDX-License-Identifier: Apache-2.0
"""`coop config show`: every source, its precedence, its mistakes."""
import os

import pytest

KEY = 'e2b_' + '0123456789' * 4


def show(coop, *args, **options):
    return {e['name']: e for e in coop.json('config', 'show', *args, **options)}


def test_defaults(coop, who):
    entries = show(coop, who=who)
    root = who in ('root', 'userns')
    assert entries['home']['value'] == ('/var/lib/coop' if root else f'{coop.folder}/.local/share/coop')
    assert entries['http.listen'] == {**entries['http.listen'], 'value': '127.0.0.1:8003,[::1]:8003',
                                      'origin': 'default'}
    assert entries['auth.key']['value'] is None


def test_xdg_folder_of_an_ordinary_user(coop):
    entries = show(coop, who='user', env={'XDG_DATA_HOME': '/x/data'})
    assert entries['home']['value'] == '/x/data/coop'


def test_each_source_overrides_the_one_before(coop, who):
    home = coop.folder / 'data'
    home.mkdir()
    args, env = ['--home', home], {}
    (home / 'config.yaml').write_text('http:\n  rate_burst: 11\n', encoding='utf-8')
    entry = show(coop, *args, env=env, who=who)['http.rate_burst']
    assert (entry['value'], entry['origin']) == ('11', f'{home}/config.yaml:2')
    env['COOP_HTTP_RATE_BURST'] = '12'
    entry = show(coop, *args, env=env, who=who)['http.rate_burst']
    assert (entry['value'], entry['origin']) == ('12', 'environment COOP_HTTP_RATE_BURST')
    args += ['--set', 'http.rate_burst=13']
    entry = show(coop, *args, env=env, who=who)['http.rate_burst']
    assert (entry['value'], entry['origin']) == ('13', 'option --set')


def test_listen_replaces_and_compat_adds(coop):
    entries = show(coop, '--listen', 'localhost:9000', '--listen=10.0.0.1:80', '--compat')
    assert entries['http.listen']['value'] == '127.0.0.1:9000,[::1]:9000,10.0.0.1:80'
    assert entries['http.compat']['value'] == 'true'


def test_secrets_are_never_shown(coop):
    env = {'E2B_API_KEY': KEY, 'GITHUB_TOKEN': 'ghp_hunter2', 'REDIS_URL': 'redis://:hunter2@h/0',
           'DATABASE_URL': 'postgresql+asyncpg://u:hunter2@h/d'}
    for args in (['config', 'show'], ['config', 'show', '-o', 'json']):
        done = coop(*args, env=env)
        assert done.returncode == 0
        assert 'hunter2' not in done.stdout + done.stderr and KEY not in done.stdout + done.stderr
    bad = coop('config', 'show', env={k: v + ' hunter2' for k, v in env.items()})
    assert bad.returncode == 78
    assert 'hunter2' not in bad.stderr and bad.stderr.count('(not shown)') == 4


def test_what_belongs_to_later_parts_gets_a_notice(coop):
    done = coop('config', 'show', env={'REDIS_URL': 'redis://redis:4', 'NATS_URL': 'nats://nats:4222'})
    assert done.returncode == 0
    assert 'redis.url' in done.stdout and 'redis://redis:4' in done.stdout
    assert done.stderr.count('coop: note: environment variable ') == 2


@pytest.mark.parametrize('text, message', [
    ('http:\n  lisen: x\n', '2:10: unknown setting http.lisen: did you mean http.listen?'),
    ('http:\n  rate_burst: lots\n', "2:15: http.rate_burst: 'lots' is not a whole number from 1 to 10000000"),
    ('http: [\n', 'not valid YAML'),
    ('a: &x\nb: *x\n', 'anchors and tags are not supported'),
])
def test_bad_files(coop, text, message):
    (coop.folder / 'config.yaml').write_text(text, encoding='utf-8')
    for command in (['config', 'show'], ['start'], ['serve']):
        done = coop(*command, '--home', coop.folder)
        assert done.returncode == 78
        assert f'{coop.folder}/config.yaml:' in done.stderr and message in done.stderr


def test_files_that_are_no_files(coop):
    path = coop.folder / 'config.yaml'
    os.mkfifo(path)
    assert 'is not a regular file' in coop('config', 'show', '--home', coop.folder).stderr
    path.unlink()
    path.symlink_to('/etc/passwd')
    assert 'is a link' in coop('config', 'show', '--home', coop.folder).stderr


def test_a_file_that_may_not_be_read(coop):
    path = coop.folder / 'config.yaml'
    path.write_text('log: {level: info}\n', encoding='utf-8')
    path.chmod(0)
    done = coop('config', 'show', '--home', coop.folder, who='user')
    assert done.returncode == 78 and 'Permission denied' in done.stderr
