# SPDX-License-Identifier: Apache-2.0
"""Each check of tools/check-* sees a breach that is planted, and lets a clean tree pass."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
C_LICENCE = '/* SPDX-License-Identifier: Apache-2.0 */\n'
LICENCE = '# SPDX-License-Identifier: Apache-2.0\n'
CLEAN = {
    'src/base/a.h': C_LICENCE + 'int a(void);\n',
    'src/http/b.c': C_LICENCE + '#include "base/a.h"\n',
    'script/x': '#!/bin/bash\n' + LICENCE + 'echo x\n',
    'src/meson.build': LICENCE,
}


@pytest.fixture(name='tree')
def clean_tree(tmp_path):
    for name, text in CLEAN.items():
        plant(tmp_path, name, text)
    shutil.copy(ROOT / '.clang-format', tmp_path)
    return tmp_path


def plant(tree, name, text):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def check(tool, tree):
    done = subprocess.run([ROOT / 'tools' / tool, tree], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize('tool', ['check-layers', 'check-style', 'check-format'])
def test_clean_tree_passes(tree, tool):
    status, out = check(tool, tree)
    if status == 77:
        pytest.skip(out.strip())
    assert (status, 'not ok' in out) == (0, False), out


@pytest.mark.parametrize('name,include,message', [
    ('src/http/c.c', 'store/db.h', 'src/http/c.c:2: http must not know store'),
    ('src/http/c.h', 'box/box.h', 'http must not know box'),
    ('src/box/c.c', 'http/server.h', 'box must not know http'),
    ('src/base/c.c', 'json/json.h', 'base must not know json'),
    ('src/api/c.c', 'daemon/x.h', 'api must not know daemon'),
    ('src/http/plain/c.c', 'team/x.h', 'http must not know team'),
    ('src/misc/c.c', 'base/a.h', 'folder "misc" has no row'),
    ('src/http/c.c', 'b.h', 'write #include "folder/b.h"'),
])
def test_layers(tree, name, include, message):
    plant(tree, name, C_LICENCE + f'#include "{include}"\n')
    status, out = check('check-layers', tree)
    assert status == 1
    assert message in out


STYLE = [
    ('src/http/c.c', 'int x;\n', 'licence', 'c.c:1: the first line'),
    ('src/http/meson.build', 'x = 1\n', 'licence', 'meson.build:1: the first line'),
    ('tools/y', '#!/usr/bin/python3\nprint()\n', 'licence', 'tools/y:1: the first line'),
    ('src/http/c.c', C_LICENCE + '\nvoid f(void)\n{\n    strcpy(a, b);\n}\n', 'banned calls', 'c.c:5: strcpy()'),
    ('tests/unit/c.c', C_LICENCE + 'int n = atoi (x);\n', 'banned calls', 'atoi()'),
    ('src/http/c.c', C_LICENCE + 'int p = fork();\n', 'banned calls', 'fork()'),
    ('docs/a.md', 'see ' + '/work' + '/main\n', 'machine paths', 'docs/a.md:1'),
    ('src/http/c.c', C_LICENCE + 'const char *p = "/root' + '/x";\n', 'machine paths', 'c.c:2'),
    ('src/http/c.c', C_LICENCE + '/* TODO: later */\n', 'unfinished', 'c.c:2'),
    ('src/http/c.c', C_LICENCE + '/* This\n * now uses epoll. */\n', 'narration', '"now uses"'),
    ('tools/y', '#!/bin/sh\n' + LICENCE + 'x=1 # refactored for speed\necho $x\n', 'narration', 'tools/y:3'),
    ('src/http/c.c', C_LICENCE + 'int x;\n' * 900, 'length', 'more than 900 lines'),
    ('src/http/c.c', C_LICENCE + 'int x; \n', 'whitespace', 'c.c:2: white space'),
    ('src/http/c.c', C_LICENCE + '\tint x;\n', 'whitespace', 'c.c:2: a tab'),
    ('src/http/c.c', C_LICENCE + 'int x;', 'whitespace', 'no newline'),
    ('script/y', '#!/bin/bash\n' + LICENCE + 'rm $undefined_thing/*\n', 'shellcheck', 'script/y:3'),
]


@pytest.mark.parametrize('name,text,rule,message', STYLE)
def test_style(tree, name, text, rule, message):
    if rule == 'shellcheck' and not shutil.which('shellcheck'):
        pytest.skip('shellcheck is not installed')
    plant(tree, name, text)
    status, out = check('check-style', tree)
    bad = [line.split(' ', 3)[3] for line in out.splitlines() if line.startswith('not ok')]
    assert status == 1
    assert bad == [rule]
    assert message in out


@pytest.mark.parametrize('name,text', [
    ('src/http/c.c', C_LICENCE + '/* unlike strcpy() */\nconst char *s = "system(";\n'),
    ('src/http/c.c', C_LICENCE + 'int x = conn->system(1) + g_atoi(2);\n'),
    ('src/init/c.c', C_LICENCE + 'int p = fork();\n'),
    ('src/http/c.c', C_LICENCE + 'const char *s = "we now tell it in a string";\n'),
    ('docs/a.md', 'a folder `/srv/data/x` and two spaces for a break  \n'),
    ('build-x/c.c', 'not ours'),
])
def test_style_lets_pass(tree, name, text):
    plant(tree, name, text)
    status, out = check('check-style', tree)
    assert status == 0, out


def test_format(tree):
    plant(tree, 'src/http/c.c', C_LICENCE + 'int  x ;\n')
    status, out = check('check-format', tree)
    if status == 77:
        pytest.skip(out.strip())
    assert status == 1
    assert 'c.c:2' in out


def test_format_without_files_fails(tmp_path):
    status, out = check('check-format', tmp_path)
    if status == 77:
        pytest.skip(out.strip())
    assert status == 1
