# SPDX-License-Identifier: Apache-2.0
"""The guides say what happens, and name nothing that is not there."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from commands import known_commands
from guide import check_examples
from harness import PROGRAM
from realserver import real_server

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob('*.md'), *ROOT.glob('docs/*.md'), *ROOT.glob('docs/design/*.md')])
# What was said of another time stays.
OF_NOW = [path for path in DOCUMENTS if path.name != 'CHANGELOG.md']
BLOCK = re.compile(r'^```(\w*)\n(.*?)^```$', re.M | re.S)


def named(path):
    return str(path.relative_to(ROOT))


@pytest.fixture(scope='module')
def server(program):
    with real_server(program) as one:
        yield one


@pytest.mark.parametrize('name', ['ARCHITECTURE', 'docs/configuration', 'docs/integration', 'docs/maintenance',
                                  'docs/troubleshooting'])
def test_examples(server, tmp_path, name):
    programs = tmp_path / 'bin'
    programs.mkdir()
    (programs / 'coop').symlink_to(pathlib.Path(PROGRAM).resolve())
    address = f'http://127.0.0.1:{server.port}'
    env = {'PATH': f'{programs}:/usr/bin:/bin', 'KEY': server.key, 'COOP_API_KEY': server.key, 'HOME': str(tmp_path),
           'SANDBOX_SERVICE_URL': address}
    check_examples(ROOT / f'{name}.md', env, cwd=tmp_path,
                   prepare='curl() { command curl -sS --fail-with-body "$@"; }\n',
                   replace=[('http://localhost:8003', address)])


# ---- what documents name ----

@pytest.fixture(scope='module')
def commands(program):
    return known_commands(program)


def calls_of(text):
    """Words behind `coop`, in blocks and in lines; what no shell would read is no call."""
    places = [line for kind, block in BLOCK.findall(text) if kind in ('', 'sh') for line in block.splitlines()]
    places += re.findall(r'`([^`\n]+)`', BLOCK.sub('', text))
    for place in places:
        for call in re.findall(r'(?:^|[$(|;&]\s*|build/|^ +)coop ((?:[^|;&)#`"\']|"[^"]*"|\'[^\']*\')+)', place):
            try:
                yield shlex.split(call)
            except ValueError:
                continue


def problem_of(words, commands):
    """None, or what is not there; a column of explanations may follow the arguments."""
    path = ()
    for word in words:
        if (*path, word) not in commands:
            break
        path = (*path, word)
    rest = words[len(path):words.index('--')] if '--' in words else words[len(path):]
    holds_others = any((*path, word) in commands for word in commands[path])
    if not path or (holds_others and rest and re.fullmatch('[a-z][a-z-]*', rest[0])):
        return f"coop {' '.join(words)}: no such command"
    missing = [word for word in rest if re.fullmatch('--[a-z][a-z-]*', word) and word not in commands[path]]
    return f"coop {' '.join(path)} has no {missing[0]}" if missing else None


@pytest.mark.parametrize('path', OF_NOW, ids=named)
def test_commands_are_there(commands, path):
    problems = [problem_of(words, commands) for words in calls_of(path.read_text())]
    assert [problem for problem in problems if problem] == []


def test_commands_that_are_not_there(commands):
    """The test before finds what it is for."""
    text = '`coop usage`, `coop task shwo 12`\n```\n$ build/coop task ls --opne   # all\ncoop ps | wc; coop rm x --frce\n```\n'
    problems = [problem_of(words, commands) for words in calls_of(text)]
    assert problems == ['coop task ls has no --opne', None, 'coop rm has no --frce', 'coop usage: no such command',
                        'coop task shwo 12: no such command']


def test_settings_are_there(program):
    told = subprocess.run([program, 'config', 'show', '-o', 'json'], check=True, capture_output=True, text=True).stdout
    settings = {setting['name'] for setting in json.loads(told)}
    sections = {name.split('.')[0] for name in settings if '.' in name}
    # Kinds of events are written the same.
    kinds = set(re.findall(r'"(\w+\.\w+)"', (ROOT / 'src' / 'store' / 'event-kinds.c').read_text()))
    for path in [ROOT / 'README.md', ROOT / 'SECURITY.md', *ROOT.glob('docs/*.md')]:
        named_here = {name for name in re.findall(r'`([a-z]+\.[a-z_]+)`', path.read_text()) if name.split('.')[0] in sections}
        assert not named_here - settings - kinds, named(path)


def test_configuration_guide_is_whole(program, tmp_path):
    """tools/config-guide writes its tables; after a change run it once more."""
    guide = ROOT / 'docs' / 'configuration.md'
    copy = tmp_path / 'configuration.md'
    shutil.copy(guide, copy)
    subprocess.run([ROOT / 'tools' / 'config-guide', program, copy], check=True, env={'PATH': os.environ['PATH']})
    assert copy.read_text() == guide.read_text(), 'run: tools/config-guide build-dev/coop docs/configuration.md'


def anchors_of(path):
    heads = re.findall(r'^#+ (.*)$', BLOCK.sub('', path.read_text()), re.M)
    return {re.sub(r'[^\w\- ]', '', head.lower()).replace(' ', '-') for head in heads}


@pytest.mark.parametrize('path', DOCUMENTS, ids=named)
def test_links_lead_somewhere(path):
    for text, link in re.findall(r'\[([^\]]*)\]\(([^)\s]+)\)', BLOCK.sub('', path.read_text())):
        if re.match(r'[a-z]+:', link):
            continue
        place, _, anchor = link.partition('#')
        target = path.parent / place if place else path
        assert target.exists(), f'{text}: {link}'
        assert not anchor or anchor in anchors_of(target), f'{text}: {link}'


# ---- what is beside them ----

def test_installation_check(server):
    """The five ticks."""
    done = subprocess.run([sys.executable, ROOT / 'examples' / 'test_sandbox_integration.py'], text=True, check=False,
                          capture_output=True, timeout=120,
                          env={**os.environ, 'E2B_API_KEY': server.key,
                               'SANDBOX_SERVICE_URL': f'http://127.0.0.1:{server.port}'})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['✓ Sandbox service healthy', '✓ Coder service healthy', '✓ Sandbox created',
                                        '✓ Code executed successfully', '✓ Tests passed', '🎉 All tests passed!']


def test_dashboard(server):
    """It asks for nothing that is not measured."""
    panels = json.loads((ROOT / 'docs' / 'grafana.json').read_text())['panels']
    asked = {name for panel in panels for target in panel.get('targets', [])
             for name in re.findall(r'coop_[a-z_]+', target['expr'])}
    measured = set(re.findall(r'^coop_[a-z_]+', server.ask('GET', '/metrics').body.decode(), re.M))
    assert asked and not asked - measured
