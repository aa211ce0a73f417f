# SPDX-License-Identifier: Apache-2.0
"""Every scanner of the template `reviewer`, made of real packages: what it finds is a check run and a comment on
the line, whatever the code says to it; the coder fixes it, and the change is merged.

The template is kept between runs, as those of test_templates_real are."""
import base64

import pytest

from realserver import RealServer, real_server
from teamserver import MODEL, TeamCalls, done, plan, says, step, tool, write

TASK_S = 240
CHECKS = 'checks:\n  - name: there\n    run: test -e coop.yaml\n'
KEY = 'AKIA' + 'IOSFODNN7' + 'EXAMPL3'
# Each with the mark that would silence it, and the line on which it is found.
KINDS = {
    'bandit': {
        'path': 'run.py', 'rule': 'B602', 'line': 5,
        'bad': 'import subprocess\n\n\ndef run(words):\n    return subprocess.call(words, shell=True)  # nosec\n',
        'good': 'import subprocess\n\n\ndef run(words):\n    return subprocess.call(words)\n'},
    'eslint': {
        'path': 'node_modules/run.js', 'rule': 'security/detect-eval-with-expression', 'line': 2,
        'bad': '/* eslint-disable */\nmodule.exports = (text) => eval(text);\n', 'good': 'module.exports = (text) => JSON.parse(text);\n'},
    'shellcheck': {
        'path': 'run.sh', 'rule': 'SC2068', 'line': 3,
        'bad': '#!/bin/sh\n# shellcheck disable=SC2068\ncat $@\n', 'good': '#!/bin/sh\ncat "$@"\n'},
    'cppcheck': {
        'path': 'run.c', 'rule': 'arrayIndexOutOfBounds', 'line': 5,
        'bad': 'int run(void)\n{\n    int a[2] = {0};\n    // cppcheck-suppress arrayIndexOutOfBounds\n    a[3] = 1;\n    return a[0];\n}\n',
        'good': 'int run(void)\n{\n    int a[2] = {0};\n    a[1] = 1;\n    return a[0];\n}\n'},
    'secrets': {
        'path': 'run.txt', 'rule': 'AWS', 'line': 1,
        'bad': f'key = "{KEY}"  # pragma: allowlist secret\n', 'good': 'key = ask("key")\n'},
}
# What somebody has decided before: a mark in the base, and what it silences, on lines that stay as they were.
OLD = {
    'old.py': 'import subprocess\n\n\ndef old(words):\n    return subprocess.call(words, shell=True)  # nosec\n',
    'old.js': '/* eslint-disable */\nmodule.exports = (text) => eval(text);\n/* eslint-enable */\n',
    'old.sh': '#!/bin/sh\n# shellcheck disable=SC2068\ncat $@\n',
    'old.c': 'int old(void)\n{\n    int a[2] = {0};\n    // cppcheck-suppress arrayIndexOutOfBounds\n    a[3] = 1;\n    return a[0];\n}\n',
    'old.txt': f'key = "{KEY}"  # pragma: allowlist secret\n'}
MORE = {'old.py': '\n\nWORD = 1\n', 'old.js': 'module.exports.word = 1;\n', 'old.sh': 'true\n', 'old.c': '\nint word = 1;\n',
        'old.txt': 'word\n'}


class RealTeam(TeamCalls, RealServer):
    def file(self, repository, path):
        return base64.b64decode(self.get(f'/api/v3/repos/{repository}/contents/{path}')['content']).decode()


def coder(kind):
    """Makes the mistake, and puts it right once it is told."""
    case = KINDS[kind]
    return [says('coder*', [write(case['path'], case['good'])], [done()], asked=case['rule']),
            says('coder*', [write(case['path'], case['bad'])], [done()], asked=f'Add what {kind} finds')]


APPEND = says('coder*', [*(tool('shell', command=f"printf '%s' '{text}' >>{path}") for path, text in MORE.items())], [done()],
              asked='Touch what is old')


@pytest.fixture(scope='module')
def server(program):
    env = {'COOP_TEAM_MODEL': MODEL, 'E2B_TEMPLATE_CODER': 'base', 'E2B_TEMPLATE_TESTER': 'base', 'COOP_TEAM_RETRY_PAUSE': '100ms'}
    with real_server(program, {'base', 'reviewer'}, env, make=RealTeam) as one:
        one.script(*(turn for kind in KINDS for turn in coder(kind)), APPEND)
        yield one


@pytest.fixture(scope='module')
def tasks(server):
    """All at once: as many as may go on side by side do."""
    asked = {kind: f'Add what {kind} finds' for kind in KINDS} | {'old': 'Touch what is old'}
    return {name: server.new_task(request, plan=plan(step('one', title=request)),
                                  repository=server.new_repo(name, {'coop.yaml': CHECKS, **(OLD if name == 'old' else {})}))
            for name, request in asked.items()}


def scans_of(server, task):
    """What scanners said, by round."""
    return [{c['name']: c for c in a['result']['checks'] if c['name'].startswith('scan: ')}
            for a in sorted(server.agents(task), key=lambda a: a['started_at']) if a['kind'] == 'review']


@pytest.mark.parametrize('kind', KINDS)
def test_found_fixed_and_merged(server, tasks, kind):
    case, repo = KINDS[kind], f'coop/{kind}'
    ended = server.task_done(tasks[kind], TASK_S)
    assert ended['round'] == 2 and server.file(repo, case['path']) == case['good']
    first, second = scans_of(server, tasks[kind])
    assert first[f'scan: {kind}']['exit_code'] == 1 and second[f'scan: {kind}']['exit_code'] == 0, (first, second)
    pull = f'/api/v3/repos/{repo}/pulls/{ended["pull_number"]}'
    lines = [c for c in server.get(f'{pull}/comments') if case['rule'] in c['body']]
    assert [(c['path'], c['original_line']) for c in lines] == [(case['path'], case['line'])], lines
    runs = server.get(f'/api/v3/repos/{repo}/commits/{lines[0]["original_commit_id"]}/check-runs')['check_runs']
    assert (f'scan: {kind}', 'failure') in [(r['name'], r['conclusion']) for r in runs], runs
    assert not any(scan['skipped'] for scan in second.values()), second
    assert ended['report']['production_ready'], ended['report']['reasons']


def test_marks_of_the_base_stay(server, tasks):
    """On lines that the change leaves alone they count, and nothing else does."""
    ended = server.task_done(tasks['old'], TASK_S)
    [scans] = scans_of(server, tasks['old'])
    assert {name: scan['exit_code'] for name, scan in scans.items()} == {f'scan: {kind}': 0 for kind in KINDS}, scans
    assert not [f for scan in scans.values() for f in scan['findings'] if f['severity'] == 'error'], scans
    assert ended['round'] == 1 and ended['report']['production_ready'], ended['report']['reasons']
