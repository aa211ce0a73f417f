# SPDX-License-Identifier: Apache-2.0
"""What may happen to an entry of the merge queue while its checks run: settings change, others meddle, the server dies.

The check of these repositories waits once a file says so, for a file in its box: what is under way stays so as long
as a test likes."""
import json
import os
import re
import shutil

import pytest

import workserver
from boxserver import API, LAYER, TINY
from harness import wait_until
from mergeserver import CHECK, Project, must

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')
GATE = CHECK + 'while [ -e gate ] && [ ! -e /tmp/open ]; do sleep 0.05; done\n'
ODD_LAYER, ODD = '0d' * 20, '1' * 40
SLOW_S = 60


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        yield made


class Gated(Project):
    """What lands from now on is checked behind a gate; the pull requests that are there were checked before."""

    def close(self):
        work = self.clone()
        self.write(work, {'check.sh': GATE, 'gate': ''}, 'test: wait')
        work.push('HEAD:main')

    def suite(self, entry):
        """Of this entry, with its box: its command runs there."""
        def runs():
            now = self.merge(entry)
            suite = now['suite_id'] and self.server.get(f'{self.api}/checks/{now["suite_id"]}')
            return now['state'] == 'checking' and suite and suite['state'] == 'running' and \
                [c['status'] for c in suite['checks']] == ['in_progress'] and suite
        return wait_until(runs, f'the checks of merge {entry}', SLOW_S)

    def open_gate(self, entry):
        box = self.suite(entry)['box_id']
        assert self.server.run(box, ': >/tmp/open')['end']['exit_code'] == 0


@pytest.fixture
def gated(server, request):
    """One pull request, checked and behind main by a commit."""
    project = Gated(server, re.sub('[^a-z0-9]+', '-', request.node.name).strip('-'))
    project.number, state, project.work = project.change('task-1', {'parts/one': 'one\n'})
    assert state == 'passed'
    project.close()
    project.tip = project.history()[0]
    return project


@pytest.mark.parametrize('settings, words', [({'merge_methods': ['squash']}, 'does not merge by rebase now'),
                                             ({'up_to_date': True}, 'the base has commits that it lacks'),
                                             ({'required_approvals': 1}, 'it lacks approvals')])
def test_rules_change_meanwhile(gated, settings, words):
    """What is set while it waits for its checks holds for it, too."""
    entry = gated.add(gated.number, method='rebase')['id']
    gated.suite(entry)
    gated.set(**settings)
    gated.open_gate(entry)
    ended = gated.ended(entry)
    assert (ended['state'], ended['reason']) == ('failed', 'rules') and words in ended['problem'], ended
    assert gated.history()[0] == gated.tip and not gated.pull(gated.number)['merged']


def test_nobody_cancels_its_suite(server, gated):
    """That would have it built anew, as often as somebody likes."""
    entry = gated.add(gated.number)['id']
    suite = gated.suite(entry)
    for key in (server.key, server.make_key('box')['key']):
        refused = server.ask('DELETE', f'{gated.api}/checks/{suite["id"]}', key=key)
        assert refused.status == 409 and f'take entry {entry} out' in refused.json['message'], refused
    # Nor by having the pull request's own checks run, or stopped, once more.
    own = server.post(f'{gated.api}/checks', {'number': gated.number}, status=202)['id']
    must(server, 'DELETE', f'{gated.api}/checks/{own}')
    gated.open_gate(entry)
    ended = gated.ended(entry)
    assert ended['tries'] == 1 and ended['suite_id'] == suite['id']
    # The newest word on the head is that nobody knows.
    assert (ended['state'], ended['reason']) == ('failed', 'rules') and 'has not checked' in ended['problem']


def test_its_suite_goes_with_it(server, gated):
    entry = gated.add(gated.number)['id']
    suite = gated.suite(entry)
    must(server, 'DELETE', f'{gated.api}/merges/{entry}')
    assert gated.ended(entry)['state'] == 'cancelled'
    wait_until(lambda: server.get(f'{gated.api}/checks/{suite["id"]}')['state'] == 'cancelled', 'its suite')
    wait_until(lambda: suite['box_id'] not in server.live(), 'its box')


def test_put_merge_answers_before_it_has_landed(server, gated):
    at = f'/api/v3/repos/coop/{gated.name}/pulls/{gated.number}/merge'
    for _ in range(2):
        waiting = must(server, 'PUT', f'{at}?wait_ms=1', {'merge_method': 'squash'}, status=202)
        assert (waiting['merged'], waiting['sha']) == (False, None)
    entry = waiting['queue']['id']
    assert waiting['queue']['url'].endswith(f'{gated.api}/merges/{entry}')
    gated.open_gate(entry)
    landed = must(server, 'PUT', at, {'merge_method': 'squash'})
    assert landed['merged'] and landed['queue']['id'] == entry and landed['sha'] == gated.history()[0]
    # Once more, as a client does that lost the answer: it is told as GitHub tells it.
    again = must(server, 'PUT', at, status=405)
    assert again['message'].startswith('Pull Request is not mergeable') and 'not open' in again['message']
    for bad in ('wait_ms=60001', 'wait_ms=-1', 'wait_ms=soon'):
        must(server, 'PUT', f'{at}?{bad}', status=422)


def test_killed_while_it_is_checked(server, gated):
    """kill -9 with a command under way in a box: the suite is run anew in another box, the entry lands once."""
    entry = gated.add(gated.number, method='merge')['id']
    before = gated.suite(entry)
    candidate = gated.merge(entry)['candidate_oid']
    server.kill()
    server.restart()
    after = gated.suite(entry)
    assert after['id'] == before['id'] and after['tries'] == 2 and after['box_id'] != before['box_id']
    wait_until(lambda: before['box_id'] not in server.live(), 'the box of before')
    gated.open_gate(entry)
    ended = gated.ended(entry)
    assert ended['state'] == 'landed' and ended['landing_oid'] == candidate == gated.history()[0] and ended['tries'] == 1
    assert gated.count_events('pr.merged', number=gated.number) == 1
    receipt = gated.pull(gated.number)['coop']['receipt']
    assert json.loads(receipt)['receipt']['head'] == candidate
    wait_until(lambda: not gated.own_refs(), 'no ref of the queue')


@needs_failpoints
def test_killed_behind_update_branch(server):
    """The branch of a pull request has moved and no row says so: the next start tells of it, and checks that head."""
    project = Project(server, 'updated')
    number, _, work = project.change('task-1', {'parts/one': 'one\n'})
    hand = project.clone()
    project.write(hand, {'parts/hand': 'hand\n'})
    hand.push('HEAD:main')
    server.kill()
    server.env['COOP_FAIL_AT'] = 'ref-moved:1'
    server.restart()
    with pytest.raises((OSError, AssertionError)):
        must(server, 'PUT', f'/api/v3/repos/coop/updated/pulls/{number}/update-branch', {}, status=202)
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.restart()
    tip = project.bare('rev-parse', 'task-1')
    assert tip != work.head()
    wait_until(lambda: project.pull(number)['head']['sha'] == tip, 'the row follows')
    assert project.suite_of(number, tip) == 'passed'
    assert project.count_events('commit.pushed', ref='refs/heads/task-1', after=tip) == 1
    assert project.land(number)['state'] == 'landed'


def test_another_tree_in_the_box():
    """What git finds in the box is not what was to be checked: an error of ours, tried again, never a result."""
    with workserver.serving() as server:
        templates = server.keeper.templates
        shutil.copytree(templates / LAYER, templates / ODD_LAYER, symlinks=True)
        os.chown(templates / ODD_LAYER / 'home/user', 1000, 1000)
        git = templates / ODD_LAYER / 'bin/git'
        git.write_text(f'#!/bin/sh\ncase $* in *write-tree*) echo {ODD} ;; *init*) mkdir -p $GIT_DIR ;; esac\n')
        (templates / 'odd.json').write_text(json.dumps({**TINY, 'name': 'odd', 'hash': '0d' * 20, 'key': 'odd', 'layers': [ODD_LAYER]}))
        server.kill()
        server.restart()
        project = Project(server, 'odd')
        work = project.clone()
        project.write(work, {'coop.yaml': 'template: odd\nchecks:\n  - "true"\n'})
        work.push('HEAD:main')
        number, state, work = project.change('task-1', {'parts/one': 'one\n'})
        assert state == 'error'
        suite = server.get(f'{project.api}/checks?number={number}')['suites'][0]
        assert f'the tree in the box is {ODD}, not {work.head("HEAD^{tree}")}' in suite['problem'] and suite['tries'] == 3
        assert server.get(f'{project.api}/checks/{suite["id"]}')['receipt'] is None
        assert 'has not checked' in project.add(number, status=403)['message']
        wait_until(lambda: not server.get(API)['sandboxes'], 'the end of the box')
