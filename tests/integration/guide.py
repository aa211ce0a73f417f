# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of a document: each ```sh block is followed by the ```text that it prints."""
import re
import subprocess

BLOCK = re.compile(r'^```sh\n(.*?)^```\n(?:^```text\n(.*?)^```$)', re.M | re.S)
MARK = '--- next ---'
TIMEOUT_S = 120


def as_pattern(text):
    """`…` stands for whatever there is."""
    return '.*?'.join(re.escape(part) for part in text.strip().split('…'))


def check_examples(document, env, prepare='', replace=(), **options):
    """All blocks are one script, so that they can build on each other."""
    text = document.read_text()
    blocks = BLOCK.findall(text)
    assert blocks and len(blocks) == text.count('```sh')
    script = prepare + f'\necho; echo "{MARK}"\n'.join(sh for sh, _ in blocks)
    for before, after in replace:
        script = script.replace(before, after)
    done = subprocess.run(['bash', '-eo', 'pipefail', '-c', script], capture_output=True, text=True, timeout=TIMEOUT_S,
                          env=env, check=False, **options)
    assert done.returncode == 0, (done.stdout, done.stderr)
    for (sh, want), got in zip(blocks, done.stdout.split(MARK), strict=True):
        pattern = as_pattern(want) + ('.*' if want.rstrip().endswith('…') else '')
        assert re.fullmatch(pattern, got.strip(), re.S), (sh, want, got)
