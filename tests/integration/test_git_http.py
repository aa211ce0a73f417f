# SPDX-License-Identifier: Apache-2.0
"""Clone, fetch and push by people: git's own client over both versions of its protocol."""
import pytest

from gitserver import VERSIONS, Work, folder_of, make_repo, url_of
from harness import Server


@pytest.fixture
def server(tmp_path):
    s = Server(tmp_path).start()
    yield s
    s.finish()


@pytest.mark.parametrize('version', VERSIONS)
def test_push_and_clone(server, tmp_path, version):
    path, repo = make_repo(server, 'first')
    one = Work(tmp_path / 'one', url_of(server, path), version).init()
    oid = one.commit()
    one.push('main')
    two = Work(tmp_path / 'two', url_of(server, path), version).clone()
    assert two.head() == oid
    second = two.commit('other', message='fix: mend it')
    two.push('HEAD:refs/heads/topic')
    one.git('fetch', '-q', 'origin')
    assert one.head('origin/topic') == second
    told = [(e['kind'], e['data']['ref'], e['data']['after']) for e in server.events()
            if e['kind'] in ('commit.pushed', 'branch.created')]
    assert told == [('branch.created', 'refs/heads/main', oid), ('branch.created', 'refs/heads/topic', second)]
    assert folder_of(server, repo).is_dir()


@pytest.mark.parametrize('prefix, name, made', [('team', 'coder', 'team-coder'), ('team-', 'coder', 'team-coder'),
                                                ('team', 'team-coder', 'team-coder'), ('', 'coder', 'coder')])
def test_names_of_identities_begin_with_a_prefix(tmp_path, prefix, name, made):
    server = Server(tmp_path, env={'GITHUB_AGENT_PREFIX': prefix} if prefix else {}).start()
    try:
        identity = server.post('/api/v1/identities', {'name': name})
        assert (identity['name'], identity['email']) == (made, f'{made}@coop.invalid')
    finally:
        server.finish()
