# SPDX-License-Identifier: Apache-2.0
"""tools/check-hardening sees each flag that is left out."""
import json
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = '''
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[64];
    strncpy(text, argv[0], (size_t)argc * 8);
    printf("%s %d\\\\n", text, argc * argc);
    return 0;
}
'''
DYNAMIC = ['-O2', '-fstack-protector-strong', '-fPIE', '-pie', '-Wl,-z,relro',
           '-Wl,-z,now', '-Wl,-z,noexecstack']
STATIC = ['-O2', '-fstack-protector-strong', '-static', '-fsanitize=undefined',
          '-fsanitize-undefined-trap-on-error']


def bad(tmp_path, kind, flags):
    if not shutil.which('gcc'):
        pytest.skip('gcc is not installed')
    (tmp_path / 'a.c').write_text(SOURCE)
    subprocess.run(['gcc', '-w', '-o', tmp_path / 'a', tmp_path / 'a.c', *flags], check=True)
    done = subprocess.run([ROOT / 'tools' / 'check-hardening', kind, tmp_path / 'a'], capture_output=True,
                          text=True, check=False)
    found = [line.partition(': ')[2] for line in done.stdout.splitlines() if line.startswith('not ok')]
    assert done.returncode == bool(found)
    return found


@pytest.mark.parametrize('without,instead,missing', [
    (None, [], []),
    ('-fstack-protector-strong', ['-fno-stack-protector'], ['stack protector']),
    ('-pie', ['-no-pie'], ['position independent']),
    ('-Wl,-z,relro', ['-Wl,-z,norelro'], ['read-only relocations']),
    ('-Wl,-z,now', ['-Wl,-z,lazy'], ['bound at start']),
    ('-Wl,-z,noexecstack', ['-Wl,-z,execstack'], ['no executable stack']),
    (None, ['-s'], ['symbols kept']),
    (None, ['-fsanitize=address'], ['no sanitizer']),
])
def test_dynamic(tmp_path, without, instead, missing):
    flags = [flag for flag in DYNAMIC if flag != without]
    assert bad(tmp_path, 'dynamic', flags + instead) == missing


@pytest.mark.parametrize('without,missing', [
    (None, []),
    ('-fsanitize=undefined', ['undefined behaviour traps']),
    ('-static', ['no interpreter']),
    ('-fsanitize-undefined-trap-on-error', ['undefined behaviour traps', 'no sanitizer library']),
])
def test_static(tmp_path, without, missing):
    assert bad(tmp_path, 'static', [flag for flag in STATIC if flag != without]) == missing


@pytest.mark.parametrize('entries,status', [
    ([('../src/base/a.c', 'gcc -O2 -D_FORTIFY_SOURCE=2 -c')], 0),
    ([('../src/base/a.c', 'gcc -O2 -D_FORTIFY_SOURCE=2 -c'), ('../src/base/b.c', 'gcc -O2 -c')], 1),
    ([('../src/base/a.c', 'gcc -O0 -D_FORTIFY_SOURCE=2 -c')], 1),
    ([('../tests/a.c', 'gcc -O2 -D_FORTIFY_SOURCE=2 -c')], 1),
])
def test_flags(tmp_path, entries, status):
    commands = tmp_path / 'compile_commands.json'
    commands.write_text(json.dumps([{'file': f, 'command': c} for f, c in entries]))
    done = subprocess.run([ROOT / 'tools' / 'check-hardening', 'flags', commands], capture_output=True,
                          text=True, check=False)
    assert done.returncode == status, done.stdout
