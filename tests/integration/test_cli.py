# SPDX-License-Identifier: Apache-2.0
"""The frame of the command line: help, exit codes, formats."""
import json
import os
import pty
import re
import select

import pytest

from commands import known_commands


def check_help(coop, path):
    """Of a command and of those below it, which it tells; their names, and the names of their options."""
    done = coop(*path, '--help')
    assert done.returncode == 0 and done.stderr == ''
    assert done.stdout.startswith('Usage: coop ' + ' '.join(path))
    assert '--output FORMAT' in done.stdout
    described = coop.json(*path, '--help')
    assert described['summary'] and not described['summary'].endswith('.')
    assert all(o['help'] for o in described['options'])
    assert '__' not in done.stdout
    below = [entry['name'] for entry in described['commands']]
    found = {path: {*below, *(f"--{o['name']}" for o in described['options'])}}
    for name in below:
        found |= check_help(coop, (*path, name))
    return found


def test_every_command_has_help(coop):
    found = check_help(coop, ())
    assert {('version',), ('config', 'show'), ('doctor',), ('start',), ('completion', 'bash')} <= set(found)
    for path in [(), ('config',), ('task', 'ls')]:
        assert coop.json('help', *path) == coop.json(*path, '--help')
    # Shells are told of the same.
    assert known_commands(coop.program) == found


def test_help_lists_the_exit_codes(coop):
    assert re.search(r'\n  78  the configuration is wrong', coop('help').stdout)


@pytest.mark.parametrize('args, code, message', [
    ([], 2, 'a command is missing'),
    (['verson'], 2, "unknown command 'verson': did you mean 'version'?"),
    (['config', 'sohw'], 2, "unknown command 'sohw': did you mean 'show'?"),
    (['config'], 2, 'a command is missing'),
    (['version', '--outptu'], 2, "unknown option '--outptu': did you mean '--output'?"),
    (['version', 'x'], 2, "'x' is one argument too many"),
    (['version', '-o'], 2, "option '-o' needs a value"),
    (['version', '-o', 'xml'], 2, "'xml' is not a value of --output: choose one of text, json"),
    (['help', 'nothing'], 2, "there is no command 'nothing'"),
    (['__probe', 'nothing', '/'], 2, "there is no probe 'nothing'"),
    (['config', 'show', '--listen', 'x'], 78, "option --listen: 'x' is not an address and a port"),
    (['config', 'show', '--set', 'x'], 2, "option --set: 'x' is not NAME=VALUE"),
    (['config', 'show', '--set', 'log.levl=x'], 2, 'unknown setting log.levl: did you mean log.level?'),
    (['doctor', '--listen', '127.0.0.1:1'], 2, "unknown option '--listen'"),
])
def test_errors(coop, args, code, message):
    done = coop(*args)
    assert done.returncode == code
    assert done.stdout == ''
    assert done.stderr.startswith('coop: ') and message in done.stderr
    as_json = coop(*args, '--output=json') if '-o' not in args else None
    if as_json is not None:
        error = json.loads(as_json.stderr)['error']
        assert error['code'] == code and message in error['message']
        assert as_json.stdout == ''


def test_version(coop, who):
    done = coop('version', who=who)
    assert re.fullmatch(r'coop \d+\.\d+\.\d+( \([-\w.]+\))?\n', done.stdout)
    assert coop('--version', who=who).stdout == done.stdout
    assert coop.json('version', who=who)['version'] in done.stdout


def test_a_full_disk_is_a_failure(coop):
    with open('/dev/full', 'w', encoding='utf-8') as full:
        done = coop('version', stdout=full)
    assert done.returncode == 1 and done.stderr == 'coop: could not write the result\n'


def on_terminal(coop, *args, env=None):
    """What the program prints when its standard output is a terminal."""
    ours, theirs = pty.openpty()
    process = coop.popen(*args, stdout=theirs, env={'TERM': 'xterm', **(env or {})})
    os.close(theirs)
    text = b''
    while select.select([ours], [], [], 30)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    assert process.wait(30) == 0
    return text.decode()


def test_colours_only_on_a_terminal(coop):
    assert '\x1b[' in on_terminal(coop, 'help')
    assert '\x1b[' not in on_terminal(coop, 'help', env={'NO_COLOR': '1'})
    assert '\x1b[' not in on_terminal(coop, 'help', env={'TERM': 'dumb'})
    assert '\x1b[' not in coop('help').stdout


def test_terminal_escapes_of_others_are_not_passed_on(coop):
    done = coop('\x1b]0;owned\x07')
    assert '\x1b' not in done.stderr and '\\x1b]0;owned\\x07' in done.stderr
