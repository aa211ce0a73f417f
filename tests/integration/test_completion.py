# SPDX-License-Identifier: Apache-2.0
"""The completion scripts, in the shells themselves."""
import shutil
import subprocess

import pytest

CASES = [
    ('coop ver', {'verify', 'version'}),
    ('coop config ', {'show'}),
    ('coop config show --comp', {'--compat'}),
    ('coop -o json completion ', {'bash', 'zsh', 'fish'}),
    ('coop version --output ', {'text', 'json'}),
    ('coop version -o j', {'json'}),
    ('coop __', set()),
]


def run_shell(shell, script, *args):
    if shutil.which(shell) is None:
        pytest.skip(f'{shell} is not installed')
    done = subprocess.run([shell, '-c', script, *args], text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0 and done.stderr == '', done.stderr
    return {line.split('\t')[0].split(':')[0] for line in done.stdout.splitlines()}


@pytest.fixture
def script(coop):
    def write(shell):
        path = coop.folder / f'coop.{shell}'
        done = coop('completion', shell)
        assert done.returncode == 0
        assert coop.json('completion', shell)['script'] == done.stdout
        path.write_text(done.stdout, encoding='utf-8')
        return str(path)
    return write


@pytest.mark.parametrize('line, want', CASES)
def test_bash(script, line, want):
    found = run_shell('bash', '''
        source "$1"
        complete -p coop >/dev/null || exit 1
        read -ra COMP_WORDS <<<"$2"
        [[ $2 == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _coop
        printf '%s\\n' "${COMPREPLY[@]}"''', 'bash', script('bash'), line)
    assert found - {'', '--output', '--help'} == want


@pytest.mark.parametrize('line, want', CASES)
def test_zsh(script, line, want):
    """The functions of its completion system are replaced by ones that print what they are given."""
    found = run_shell('zsh', '''
        compdef() { registered=$2 }
        _describe() { local -a list; list=("${(@P)argv[-1]}"); print -rl -- "${(@)list}" }
        compadd() { print -rl -- "$@" }
        _files() { : }
        source "$1"
        [[ $registered == coop ]] || exit 1
        words=("${(@s: :)2}")
        CURRENT=$#words
        _coop''', 'zsh', script('zsh'), line)
    prefix = line.rpartition(' ')[2]
    assert {f for f in found if f.startswith(prefix)} - {'--output', '--help'} == want


@pytest.mark.parametrize('line, want', CASES)
def test_fish(script, line, want):
    found = run_shell('fish', 'source $argv[1]; complete -C $argv[2]', script('fish'), line)
    assert {f for f in found if not f.startswith('/')} - {'--output', '--help'} == want
