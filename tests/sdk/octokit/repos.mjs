// SPDX-License-Identifier: Apache-2.0
// The repository's side of the dialect; usage: node repos.mjs BASE_URL KEY KEY_THAT_READS
import assert from 'node:assert/strict';
import { Octokit } from '@octokit/rest';

const [baseUrl, key, readKey] = process.argv.slice(2);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const connect = (auth) => new Octokit({ baseUrl, auth, log: quiet });
const github = connect(key);
const owner = 'team', repo = 'demo';
const at = { owner, repo };
const base64 = (text) => Buffer.from(text).toString('base64');
const text = (content) => Buffer.from(content.content, content.encoding).toString();

async function refused(promise, status, words) {
  const error = await promise.then(() => assert.fail('was not refused'), (e) => e);
  assert.equal(error.status, status, error.stack);
  if (words) assert.match(error.message, words);
  assert.ok(error.response.data.documentation_url.startsWith('http'));
  return error.response.data;
}

// A commit made of its parts, as bots make them that have no clone.
async function objects(parent) {
  const { data: blob } = await github.git.createBlob({ ...at, content: base64('bytes'), encoding: 'base64' });
  const { data: tree } = await github.git.createTree({ ...at, base_tree: parent.tree.sha, tree: [
    { path: 'made/bytes', mode: '100755', type: 'blob', sha: blob.sha },
    { path: 'made/text', mode: '100644', type: 'blob', content: 'text' }] });
  const { data: commit } = await github.git.createCommit({ ...at, message: 'feat: made', tree: tree.sha, parents: [parent.sha] });
  assert.equal(commit.parents[0].sha, parent.sha);
  const { data: tag } = await github.git.createTag({ ...at, tag: 'made', message: 'Made', object: commit.sha, type: 'commit' });
  await github.git.createRef({ ...at, ref: 'refs/tags/made', sha: tag.sha });
  assert.equal((await github.git.getTag({ ...at, tag_sha: tag.sha })).data.object.sha, commit.sha);
  const { data: file } = await github.repos.getContent({ ...at, path: 'made/text', ref: 'made' });
  assert.equal(text(file), 'text');
  await refused(github.git.createTree({ ...at, tree: [{ path: 'x', mode: '100644', type: 'blob', sha: 'f'.repeat(40) }] }), 422);
  await refused(github.repos.listPullRequestsAssociatedWithCommit({ ...at, commit_sha: commit.sha }), 404);
}

async function users() {
  const { data, headers } = await github.users.getAuthenticated();
  assert.equal(data.type, 'User');
  assert.ok(Number(headers['x-ratelimit-limit']) > 0);
  assert.equal((await github.users.getByUsername({ username: data.login })).data.id, data.id);
  const { data: rate } = await github.rateLimit.get();
  assert.ok(rate.rate.limit >= rate.rate.remaining && rate.resources.core.reset > 0);
  await refused(connect('e2b_' + '0'.repeat(40)).users.getAuthenticated(), 401, /Bad credentials/);
  await refused(new Octokit({ baseUrl, log: quiet }).users.getAuthenticated(), 401, /Requires authentication/);
  await refused(github.users.getByUsername({ username: 'nobody-here' }), 404, /Not Found/);
}

async function repository() {
  const { data: made } = await github.repos.createInOrg({ org: owner, name: repo, description: 'One', private: true });
  assert.equal(made.full_name, 'team/demo');
  assert.equal(made.owner.login, owner);
  const invalid = await refused(github.repos.createInOrg({ org: owner, name: repo }), 422, /already exists/);
  assert.equal(invalid.errors[0].resource, 'Repository');
  const { data: got } = await github.repos.get(at);
  assert.equal(got.id, made.id);
  assert.equal(got.permissions.admin, true);
  assert.equal((await connect(readKey).repos.get(at)).data.permissions.push, false);
  await refused(github.repos.get({ owner, repo: 'none' }), 404, /Not Found/);
  await refused(connect(readKey).repos.delete(at), 403);
  await refused(github.repos.listCommits(at), 409, /empty/);
}

// Files, each a commit, the first of them the repository's first.
async function files() {
  const first = await github.repos.createOrUpdateFileContents(
    { ...at, path: 'docs/read me.md', message: 'docs: first', content: base64('# One\n') });
  assert.equal(first.status, 201);
  const sha = first.data.content.sha;
  await refused(github.repos.createOrUpdateFileContents(
    { ...at, path: 'docs/read me.md', message: 'docs: again', content: base64('x') }), 422, /sha/);
  await refused(github.repos.createOrUpdateFileContents(
    { ...at, path: 'docs/read me.md', message: 'docs: again', content: base64('x'), sha: 'f'.repeat(40) }), 409);
  const second = await github.repos.createOrUpdateFileContents({
    ...at, path: 'docs/read me.md', message: 'docs: second', content: base64('# Two\n'), sha,
    committer: { name: 'Ann', email: 'ann@example.org' },
  });
  assert.equal(second.status, 200);
  assert.equal(second.data.commit.committer.email, 'ann@example.org');
  const { data: content } = await github.repos.getContent({ ...at, path: 'docs/read me.md' });
  assert.equal(text(content), '# Two\n');
  const { data: older } = await github.repos.getContent({ ...at, path: 'docs/read me.md', ref: first.data.commit.sha });
  assert.equal(text(older), '# One\n');
  const { data: folder } = await github.repos.getContent({ ...at, path: 'docs' });
  assert.deepEqual(folder.map((e) => [e.type, e.name]), [['file', 'read me.md']]);
  const { data: raw } = await github.repos.getContent({ ...at, path: 'docs/read me.md', mediaType: { format: 'raw' } });
  assert.equal(raw, '# Two\n');
  await github.repos.createOrUpdateFileContents({ ...at, path: 'gone', message: 'feat: x', content: '' });
  const { data: gone } = await github.repos.getContent({ ...at, path: 'gone' });
  await github.repos.deleteFile({ ...at, path: 'gone', message: 'feat: not x', sha: gone.sha });
  await refused(github.repos.getContent({ ...at, path: 'gone' }), 404);
  await refused(github.repos.getContent({ ...at, path: '../../etc/passwd' }), 400);
  await refused(github.repos.getContent({ ...at, path: 'docs', ref: 'no such ref' }), 404);
}

async function branches() {
  const { data: main } = await github.git.getRef({ ...at, ref: 'heads/main' });
  const { data: made } = await github.git.createRef({ ...at, ref: 'refs/heads/feature/one', sha: main.object.sha });
  assert.equal(made.ref, 'refs/heads/feature/one');
  await refused(github.git.createRef({ ...at, ref: 'refs/heads/feature/one', sha: main.object.sha }), 422, /already exists/);
  await refused(github.git.createRef({ ...at, ref: 'refs/heads/x', sha: 'f'.repeat(40) }), 422, /does not exist/);
  const { data: commit } = await github.repos.createOrUpdateFileContents(
    { ...at, path: 'src/a.txt', message: 'feat: a', content: base64('a\n'), branch: 'feature/one' });
  const { data: branch } = await github.repos.getBranch({ ...at, branch: 'feature/one' });
  assert.equal(branch.commit.sha, commit.commit.sha);
  assert.equal(branch.protected, false);
  assert.equal((await github.repos.getBranch({ ...at, branch: 'main' })).data.protected, true);
  await refused(github.git.updateRef({ ...at, ref: 'heads/feature/one', sha: main.object.sha }), 422, /fast forward/);
  await github.git.updateRef({ ...at, ref: 'heads/feature/one', sha: main.object.sha, force: true });
  await github.git.updateRef({ ...at, ref: 'heads/feature/one', sha: commit.commit.sha });
  const { data: matching } = await github.git.listMatchingRefs({ ...at, ref: 'heads/feature' });
  assert.deepEqual(matching.map((r) => r.ref), ['refs/heads/feature/one']);
  for (const ref of ['heads/none', 'heads/a..b', 'heads/%2e%2e', 'heads/x\u0001', 'heads/ü'])
    await refused(github.git.getRef({ ...at, ref }), 404);
  await github.git.createRef({ ...at, ref: 'refs/heads/short-lived', sha: main.object.sha });
  assert.equal((await github.git.deleteRef({ ...at, ref: 'heads/short-lived' })).status, 204);
  await refused(github.git.deleteRef({ ...at, ref: 'heads/short-lived' }), 422, /does not exist/);
  await refused(github.git.deleteRef({ ...at, ref: 'heads/main' }), 403, /protected/);
}

async function commits() {
  const ref = 'feature/one';
  const { data: commit } = await github.repos.getCommit({ ...at, ref });
  assert.deepEqual(commit.stats, { total: 1, additions: 1, deletions: 0 });
  assert.deepEqual(commit.files.map((f) => [f.filename, f.status, f.patch]), [['src/a.txt', 'added', '@@ -0,0 +1 @@\n+a']]);
  const { data: diff } = await github.repos.getCommit({ ...at, ref, mediaType: { format: 'diff' } });
  assert.match(diff, /^diff --git a\/src\/a.txt/);
  const { data: patch } = await github.repos.getCommit({ ...at, ref, mediaType: { format: 'patch' } });
  assert.match(patch, /Subject: \[PATCH\] feat: a/);
  await refused(github.repos.getCommit({ ...at, ref: 'none' }), 422, /No commit found/);
  const { data: compared } = await github.repos.compareCommitsWithBasehead({ ...at, basehead: 'main...feature/one' });
  assert.deepEqual([compared.status, compared.ahead_by, compared.behind_by, compared.files.length], ['ahead', 1, 0, 1]);
  const { data: plain } = await github.git.getCommit({ ...at, commit_sha: commit.sha });
  assert.equal(plain.message, 'feat: a');
  const { data: tree } = await github.git.getTree({ ...at, tree_sha: plain.tree.sha, recursive: 'true' });
  assert.deepEqual(tree.tree.map((e) => e.path), ['docs', 'docs/read me.md', 'src', 'src/a.txt']);
  const { data: blob } = await github.git.getBlob({ ...at, file_sha: tree.tree[3].sha });
  await objects(plain);
  assert.equal(text(blob), 'a\n');
}

async function pages() {
  const all = await github.paginate(github.repos.listCommits, { ...at, per_page: 1 });
  assert.deepEqual(all.map((c) => c.commit.message), ['feat: not x', 'feat: x', 'docs: second', 'docs: first']);
  let seen = 0;
  for await (const { data } of github.paginate.iterator(github.repos.listBranches, { ...at, per_page: 1 })) {
    assert.equal(data.length, 1);
    seen++;
  }
  assert.equal(seen, 2);
  for (let n = 0; n < 33; n++) await github.repos.createInOrg({ org: 'many', name: `r${n}` });
  const mine = await github.paginate(github.repos.listForOrg, { org: 'many' });
  assert.equal(new Set(mine.map((r) => r.id)).size, 33);
  const { data: first, headers } = await github.repos.listForOrg({ org: 'many' });
  assert.equal(first.length, 30);
  assert.match(headers.link, /rel="next".*rel="last"/);
  assert.equal((await github.repos.listForOrg({ org: 'many', per_page: 1e9, page: -1 })).data.length, 33);
}

async function unchanged() {
  const { headers } = await github.repos.get(at);
  await github.request('GET /repos/{owner}/{repo}', { ...at, headers: { 'if-none-match': headers.etag } })
    .then(() => assert.fail('was sent again'), (e) => assert.equal(e.status, 304));
  await github.repos.update({ ...at, description: 'Two' });
  const again = await github.request('GET /repos/{owner}/{repo}', { ...at, headers: { 'if-none-match': headers.etag } });
  assert.equal(again.data.description, 'Two');
}

async function reports() {
  const { data: head } = await github.git.getRef({ ...at, ref: 'heads/feature/one' });
  const sha = head.object.sha;
  await github.repos.createCommitStatus({ ...at, sha, state: 'success', context: 'ci/one', target_url: 'https://example.org' });
  const invalid = await refused(github.repos.createCommitStatus({ ...at, sha, state: 'fine' }), 422);
  assert.equal(invalid.message, 'Validation Failed');
  const { data: combined } = await github.repos.getCombinedStatusForRef({ ...at, ref: 'feature/one' });
  assert.deepEqual([combined.state, combined.statuses[0].context], ['success', 'ci/one']);
  assert.equal((await github.paginate(github.repos.listCommitStatusesForRef, { ...at, ref: sha })).length, 1);
  const { data: run } = await github.checks.create({ ...at, name: 'unit', head_sha: sha, status: 'in_progress' });
  await github.checks.update({
    ...at, check_run_id: run.id, conclusion: 'failure', output: { title: 'Broken', summary: 'One of two' },
  });
  const { data: seen } = await github.checks.get({ ...at, check_run_id: run.id });
  assert.deepEqual([seen.status, seen.conclusion, seen.output.title], ['completed', 'failure', 'Broken']);
  const runs = await github.paginate(github.checks.listForRef, { ...at, ref: 'feature/one', per_page: 1 });
  assert.deepEqual(runs.map((r) => r.id), [run.id]);
  await refused(github.checks.get({ ...at, check_run_id: 999999 }), 404);
}

async function removal() {
  await github.repos.delete(at);
  await refused(github.repos.get(at), 404);
}

for (const step of [users, repository, files, branches, commits, pages, unchanged, reports, removal]) {
  await step();
  console.log(step.name);
}
