# SPDX-License-Identifier: Apache-2.0
"""A change that scanners cannot come to the end of has not passed them, and one that they are not there for is not clean."""
import pytest

from harness import wait_until
from teamserver import FILES, done, plan, plans, says, step, team_serving, tool

# One that is brought down by what it is given: too much to find, a crash, an answer that nobody understands,
# more than one call can be given.
BANDIT = '''#!/bin/sh
for file; do :; done
case $(cat "$file") in
*loud*) yes "{" | head -c 5000000 ;;
*dead*) kill -9 $$ ;;
*many*) echo '{"results": [], "metrics": {"_totals": {}'; for file; do echo ", \\"$file\\": {}"; done; echo '}}' ;;
*) echo nonsense; echo "I cannot" >&2; exit 3 ;;
esac
'''


def furnish(root):
    bandit = root / 'bin/bandit'
    bandit.write_text(BANDIT)
    bandit.chmod(0o755)


@pytest.fixture(scope='module')
def server():
    with team_serving(furnish) as running:
        yield running


@pytest.mark.parametrize('name, command, check, summary', [
    ('loud', 'echo "loud = 1" >a.py', 'scan: bandit', 'bandit found more than can be read'),
    ('dead', 'echo "dead = 1" >a.py', 'scan: bandit', 'bandit did not come to its end: killed by SIGKILL'),
    ('strange', 'echo "word = 1" >a.py', 'scan: bandit', 'bandit did not answer as it should: I cannot'),
    ('many', 'for n in $(seq 501); do echo "many = 1" >f$n.py; done', 'scan: bandit',
     '0 errors, 0 warnings, 0 notes; there are more files than it can look at'),
    ('odd', r'''echo good >"$(printf 'a\tb.c')"''', 'scan: names', '1 of the changed files have names with control characters')])
def test_is_refused(server, name, command, check, summary):
    server.script(plans(plan(step('show'))), says('coder*', [tool('shell', command=command)], [done()]))
    repo = server.new_repo(name, FILES)
    task = server.new_task(repository=repo)
    reviewed = wait_until(lambda: [a for a in server.task(task)['agents'] if a['kind'] == 'review' and a['ended_at']], 'a review')
    scans = {c['name']: c for c in reviewed[0]['result']['checks']}
    assert scans[check]['exit_code'] == 1 and reviewed[0]['result']['passed'] is False, scans
    assert scans[check]['summary'].startswith(summary), scans
    server.post(f'/api/v1/tasks/{task["id"]}/stop', {}, status=200)


MEMBERS = [{'role': 'coder'}, {'role': 'tester'}, {'role': 'reviewer', 'template': 'tiny'}]


@pytest.mark.parametrize('squad, why', [
    ('default', "shellcheck has not looked: the template 'reviewer' is not built, and 'tiny', which was taken in its place, has no "
                'shellcheck. Run `coop template build reviewer`'),
    ('tiny', "shellcheck has not looked: the template 'tiny' has no shellcheck. Add it there, or let reviewers have one that has "
             "it: `coop template build reviewer`")])
def test_missing(server, squad, why):
    """Nobody can fix that in the change, so it is merged; but it is not clean, and everybody is told what to do."""
    if squad == 'tiny':
        server.post('/api/v1/squads', {'name': squad, 'members': MEMBERS}, status=201)
    server.script(plans(plan(step('show'))), says('coder*', [tool('write', path='a.sh', text='#!/bin/sh\ntrue\n')], [done()]))
    repo = server.new_repo(f'missing-{squad}', FILES)
    task = server.new_task(repository=repo, squad=squad)
    ended = server.task_done(task)
    [reviewer] = [a for a in server.agents(task) if a['kind'] == 'review']
    [scan] = [c for c in reviewer['result']['checks'] if c['name'] == 'scan: shellcheck']
    assert scan['exit_code'] is None and scan['skipped'].startswith(why), scan
    runs = server.get(f'/api/v3/repos/{repo}/commits/{reviewer["result"]["head_oid"]}/check-runs')['check_runs']
    [run] = [r for r in runs if r['name'] == 'scan: shellcheck']
    assert run['conclusion'] == 'action_required' and run['output']['title'].startswith(why), run
    reviews = server.get(f'/api/v3/repos/{repo}/pulls/{ended["pull_number"]}/reviews')
    assert any(f'Not scanned: {why}' in r['body'] for r in reviews), reviews
    report = ended['report']
    assert not report['production_ready'] and f'scan: shellcheck: {why}' in ' '.join(report['reasons']), report
    assert report['scans']['passed'] == 0 and report['scans']['skipped'] > 0, report
