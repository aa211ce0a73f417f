# SPDX-License-Identifier: Apache-2.0
"""Repositories without a coop.yaml, checked as they are: what is recognised runs in the template that is made for it.

The templates are real and kept between runs, as those of test_templates_real are."""
import json

import pytest

from gitserver import Work, make_repo, url_of
from harness import wait_until
from realserver import real_server

CHECK_S = 240
PACKAGE = json.dumps({'name': 'one', 'version': '1.0.0', 'scripts': {'lint': 'node --check one.js', 'test': 'node test.js'}})
KINDS = {
    'npm': {
        'template': 'nodejs-18', 'source': 'package.json',
        'files': {'package.json': PACKAGE, 'one.js': 'module.exports = () => 1;\n',
                  'test.js': "require('assert').strictEqual(require('./one')(), 1);\n"},
        'bad': {'one.js': 'module.exports = () => 2;\n'},
        'runs': ['npm run lint', 'npm run test'], 'fails': 'npm run test'},
    'pytest': {
        'template': 'python-3.11', 'source': 'pytest',
        'files': {'one.py': 'def one():\n    return 1\n', 'tests/test_one.py': 'from one import one\n\n\ndef test_one():\n    assert one() == 1\n'},
        'bad': {'one.py': 'def one():\n    return 2\n'}, 'runs': ['pytest'], 'fails': 'pytest'},
    'go': {
        'template': 'go-1.21', 'source': 'go.mod',
        'files': {'go.mod': 'module one\n\ngo 1.21\n', 'one.go': 'package one\n\nfunc One() int { return 1 }\n',
                  'one_test.go': 'package one\n\nimport "testing"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal()\n\t}\n}\n'},
        'bad': {'one.go': 'package one\n\nfunc One() int { return 2 }\n'}, 'runs': ['go vet', 'go test'], 'fails': 'go test'},
    'meson': {
        'template': 'c', 'source': 'meson.build',
        'files': {'meson.build': "project('one', 'c')\ntest('one', executable('one', 'one.c'))\n", 'one.c': 'int main(void) { return 0; }\n'},
        'bad': {'one.c': 'int main(void) { return 1; }\n'}, 'runs': ['meson setup', 'meson test'], 'fails': 'meson test'},
    'make': {
        'template': 'base', 'source': 'Makefile',
        'files': {'Makefile': 'check:\n\tgrep -q good word\n', 'word': 'good\n'},
        'bad': {'word': 'bad\n'}, 'runs': ['make check'], 'fails': 'make check'},
    'cargo': {
        'template': 'rust', 'source': 'Cargo.toml',
        'files': {'Cargo.toml': '[package]\nname = "one"\nversion = "0.1.0"\nedition = "2021"\n',
                  'src/lib.rs': 'pub fn one() -> u8 { 1 }\n#[test]\nfn is_one() { assert_eq!(one(), 1); }\n'},
        'bad': {'src/lib.rs': 'pub fn one() -> u8 { 2 }\n#[test]\nfn is_one() { assert_eq!(one(), 1); }\n'},
        'runs': ['cargo test'], 'fails': 'cargo test'},
}


@pytest.fixture(scope='module')
def server(program):
    with real_server(program, {kind['template'] for kind in KINDS.values()}) as one:
        yield one


class Project:
    def __init__(self, server, folder, name, files):
        path, _ = make_repo(server, name)
        self.server, self.api = server, f'/api/v1/repos/coop/{name}/checks'
        self.work = Work(folder / name, url_of(server, path)).init()
        self.push('main', files)

    def push(self, branch, files):
        for name, text in files.items():
            path = self.work.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.work.git('add', '-A')
        self.work.git('commit', '-q', '--allow-empty', '-m', 'feat: change')
        self.work.push(f'HEAD:{branch}')

    def check(self, *branches):
        """Side by side."""
        suites = [self.server.post(self.api, {'branch': branch}, status=202)['id'] for branch in branches]

        def over():
            now = [self.server.get(f'{self.api}/{suite}') for suite in suites]
            return all(suite['state'] not in ('queued', 'running') for suite in now) and now
        return wait_until(over, 'the end of the suites', CHECK_S)

    def logs(self, suite):
        return [self.server.ask('GET', f'{self.api}/{suite["id"]}/log/{c["id"]}').body for c in suite['checks']]


@pytest.mark.parametrize('kind', KINDS)
def test_detected(server, tmp_path, kind):
    """It passes as it is, and fails when what it tests is broken."""
    case = KINDS[kind]
    project = Project(server, tmp_path, kind, case['files'])
    project.push('broken', case['bad'])
    good, bad = project.check('main', 'broken')
    assert good['state'] == 'passed', (good['problem'], project.logs(good))
    assert good['source'] == f'detected: {case["source"]}' and good['template'].split()[0] == case['template']
    assert [c['name'] for c in good['checks']] == case['runs']
    assert good['receipt']['receipt']['tree_compared']
    assert bad['state'] == 'failed'
    assert [c['name'] for c in bad['checks'] if c['conclusion'] == 'failure'] == [case['fails']]
