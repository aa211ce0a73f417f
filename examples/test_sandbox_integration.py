#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is this installation whole?  Asks a running Coop for a box, runs code in it, and runs tests.

    E2B_API_KEY=$(coop key) python3 examples/test_sandbox_integration.py

SANDBOX_SERVICE_URL and CODER_SERVICE_URL say where the two services are; both are Coop, so both default to
http://localhost:8003.  Needs nothing but Python.
"""
import json
import os
import sys
import urllib.error
import urllib.request

SANDBOX = os.environ.get('SANDBOX_SERVICE_URL', 'http://localhost:8003').rstrip('/')
CODER = os.environ.get('CODER_SERVICE_URL', SANDBOX).rstrip('/')
KEY = os.environ.get('E2B_API_KEY') or os.environ.get('COOP_API_KEY', '')
SECONDS = 120

FILES = {
    'multiply.js': 'module.exports = (a, b) => a * b;\n',
    'multiply.test.js': (
        "const test = require('node:test');\n"
        "const assert = require('node:assert');\n"
        "const multiply = require('./multiply');\n"
        "test('multiplies', () => assert.strictEqual(multiply(6, 7), 42));\n"
        "test('by zero', () => assert.strictEqual(multiply(6, 0), 0));\n"),
}


class Failed(Exception):
    """What went wrong, and what to do."""


def call(method, url, body=None):
    request = urllib.request.Request(url, method=method, headers={'X-API-Key': KEY, 'Content-Type': 'application/json'},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors='replace')
        hint = '; set E2B_API_KEY to what `coop key` prints' if error.code == 401 else ''
        raise Failed(f'{method} {url}: {error.code} {said}{hint}') from error
    except OSError as error:
        raise Failed(f'{method} {url}: {error}; is the server running (script/start)?') from error


def need(holds, what):
    if not holds:
        raise Failed(what)


def execute(sandbox, files, commands):
    return call('POST', f'{SANDBOX}/sandbox/{sandbox}/execute', {'files': files, 'commands': commands, 'timeout': 60})


def check_code(sandbox):
    done = execute(sandbox, {'hello.py': 'print(6 * 7)\n'}, ['python3 hello.py'])
    need(done['success'] and done['results'][0]['stdout'] == '42\n', f'the code did not print 42: {done}')


def check_tests(sandbox):
    done = execute(sandbox, FILES, ['node --test'])
    totals = done.get('test_results') or {}
    need(done['success'] and totals.get('passed') == 2 and totals.get('failed') == 0, f'the tests did not pass: {done}')


def main():
    health = call('GET', f'{SANDBOX}/health')
    need(health.get('status') in ('healthy', 'ok', 'degraded'), f'the sandbox service says {health}')
    print('✓ Sandbox service healthy')
    need(isinstance(call('GET', f'{CODER}/api/v1/squads').get('squads'), list), 'the coder service has no squads')
    print('✓ Coder service healthy')
    sandbox = call('POST', f'{SANDBOX}/sandbox/create', {'timeout': 300})['sandbox_id']
    try:
        print('✓ Sandbox created')
        check_code(sandbox)
        print('✓ Code executed successfully')
        check_tests(sandbox)
        print('✓ Tests passed')
    finally:
        call('DELETE', f'{SANDBOX}/sandbox/{sandbox}')
    print('🎉 All tests passed!')


if __name__ == '__main__':
    try:
        main()
    except Failed as failed:
        sys.exit(f'✗ {failed}')
