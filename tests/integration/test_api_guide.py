# SPDX-License-Identifier: Apache-2.0
"""docs/api.md says what happens."""
import pathlib

from guide import check_examples

GUIDE = pathlib.Path(__file__).parents[2] / 'docs' / 'api.md'


def test_examples(boxes):
    check_examples(GUIDE, {'PATH': '/usr/bin:/bin', 'KEY': boxes.key},
                   prepare='curl() { command curl -sS --fail-with-body "$@"; }\n',
                   replace=[('http://localhost:8003', f'http://127.0.0.1:{boxes.port}')])
