# SPDX-License-Identifier: Apache-2.0
"""docs/api.md says what happens."""
import pathlib
import re
import subprocess

GUIDE = pathlib.Path(__file__).parents[2] / 'docs' / 'api.md'
BLOCK = re.compile(r'^```sh\n(.*?)^```\n(?:^```text\n(.*?)^```$)', re.M | re.S)
MARK = '--- next ---'


def as_pattern(text):
    """`…` stands for whatever there is."""
    return '.*?'.join(re.escape(part) for part in text.strip().split('…'))


def test_examples(boxes):
    blocks = BLOCK.findall(GUIDE.read_text())
    assert len(blocks) == GUIDE.read_text().count('```sh')
    script = 'curl() { command curl -sS --fail-with-body "$@"; }\n'
    script += f'\necho; echo "{MARK}"\n'.join(sh for sh, _ in blocks)
    script = script.replace('http://localhost:8003', f'http://127.0.0.1:{boxes.port}')
    done = subprocess.run(['bash', '-eo', 'pipefail', '-c', script], capture_output=True, text=True, timeout=120,
                          env={'PATH': '/usr/bin:/bin', 'KEY': boxes.key})
    assert done.returncode == 0, (done.stdout, done.stderr)
    for (sh, want), got in zip(blocks, done.stdout.split(MARK), strict=True):
        pattern = as_pattern(want) + ('.*' if want.rstrip().endswith('…') else '')
        assert re.fullmatch(pattern, got.strip(), re.S), (sh, want, got)
