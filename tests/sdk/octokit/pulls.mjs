// SPDX-License-Identifier: Apache-2.0
// Pull requests, reviews, issues, labels and webhooks; usage: node pulls.mjs BASE_URL KEY KEY_THAT_READS
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Octokit } from '@octokit/rest';

const [baseUrl, key, readKey] = process.argv.slice(2);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const connect = (auth) => new Octokit({ baseUrl, auth, log: quiet });
const github = connect(key);
const owner = 'team', repo = 'pulls';
const at = { owner, repo };
const secret = 'it is a secret';
let pull, other;

async function refused(promise, status, words) {
  const error = await promise.then(() => assert.fail('was not refused'), (e) => e);
  assert.equal(error.status, status, error.stack);
  if (words) assert.match(error.message, words);
  return error.response.data;
}

async function write(branch, path, text, message) {
  const old = await github.repos.getContent({ ...at, path, ref: branch }).then((r) => r.data.sha, () => undefined);
  const { data } = await github.repos.createOrUpdateFileContents(
    { ...at, path, branch, message, content: Buffer.from(text).toString('base64'), sha: old });
  return data.commit.sha;
}

// Whoever asks again until it is so: for what is found out behind a change.
async function eventually(ask, what) {
  for (const end = Date.now() + 60000; Date.now() < end;) {
    const found = await ask();
    if (found) return found;
    await new Promise(setImmediate);
  }
  assert.fail(`${what}: not within a minute`);
}

async function prepare() {
  await github.repos.createInOrg({ org: owner, name: repo });
  const first = await write('main', 'a.txt', 'one\ntwo\n', 'feat: begin');
  await github.git.createRef({ ...at, ref: 'refs/heads/change', sha: first });
  await write('change', 'a.txt', 'one\n2\n', 'feat: change');
  await write('change', 'b.txt', 'new\n', 'feat: add');
  const made = await fetch(new URL('/api/v1/keys', baseUrl), {
    method: 'POST', headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: 'second', scopes: 'read,box' }),
  });
  other = connect((await made.json()).key);
}

async function open() {
  const { data, status } = await github.pulls.create({ ...at, title: 'Change it', head: 'change', base: 'main', body: 'Why', draft: true });
  pull = { ...at, pull_number: data.number };
  assert.equal(status, 201);
  assert.deepEqual([data.commits, data.changed_files, data.additions, data.deletions], [2, 2, 2, 1]);
  assert.deepEqual([data.mergeable, data.mergeable_state, data.draft], [true, 'draft', true]);
  await refused(github.pulls.create({ ...at, title: 'Again', head: 'change', base: 'main' }), 422, /open already/);
  await refused(github.pulls.create({ ...at, title: 'None', head: 'none', base: 'main' }), 422, /no branch/);
  await refused(connect(readKey).pulls.update({ ...pull, title: 'No' }), 403);
  const { data: got } = await connect(readKey).pulls.get(pull);
  assert.deepEqual([got.head.label, got.base.ref, got.user.type], ['team:change', 'main', 'User']);
  const { data: ready } = await github.request('PATCH /repos/{owner}/{repo}/pulls/{pull_number}', { ...pull, draft: false });
  assert.deepEqual([ready.draft, ready.mergeable_state], [false, 'blocked']);
}

async function look() {
  const files = await github.paginate(github.pulls.listFiles, { ...pull, per_page: 1 });
  assert.deepEqual(files.map((f) => [f.filename, f.status, f.additions, f.deletions]),
    [['a.txt', 'modified', 1, 1], ['b.txt', 'added', 1, 0]]);
  assert.match(files[0].patch, /^@@.*\n one\n-two\n\+2$/s);
  const commits = await github.paginate(github.pulls.listCommits, { ...pull, per_page: 1 });
  assert.deepEqual(commits.map((c) => c.commit.message.trim()), ['feat: change', 'feat: add']);
  const { data: diff } = await github.pulls.get({ ...pull, mediaType: { format: 'diff' } });
  assert.match(diff, /^diff --git a\/a.txt b\/a.txt\n/);
  const { data: patch } = await github.pulls.get({ ...pull, mediaType: { format: 'patch' } });
  assert.equal(patch.match(/^Subject: /gm).length, 2);
  const listed = await github.paginate(github.pulls.list, { ...at, state: 'all', head: 'team:change' });
  assert.deepEqual(listed.map((p) => p.number), [pull.pull_number]);
}

async function review() {
  await refused(github.pulls.createReview({ ...pull, event: 'APPROVE' }), 422, /author/);
  const { data: me } = await other.users.getAuthenticated();
  const { data: asked } = await github.pulls.requestReviewers({ ...pull, reviewers: [me.login] });
  assert.deepEqual(asked.requested_reviewers.map((r) => r.login), [me.login]);
  assert.equal((await github.pulls.listRequestedReviewers(pull)).data.users.length, 1);
  const { data: pending } = await other.pulls.createReview({ ...pull, comments: [{ path: 'a.txt', line: 2, body: 'Why?' }] });
  assert.equal(pending.state, 'PENDING');
  assert.equal((await github.pulls.listReviews(pull)).data.length, 0);
  const { data: refusal } = await other.pulls.submitReview({ ...pull, review_id: pending.id, event: 'REQUEST_CHANGES', body: 'No' });
  assert.equal(refusal.state, 'CHANGES_REQUESTED');
  const { data: [line] } = await github.pulls.listCommentsForReview({ ...pull, review_id: pending.id });
  const { data: reply } = await github.pulls.createReplyForReviewComment({ ...pull, comment_id: line.id, body: 'So.' });
  assert.equal(reply.in_reply_to_id, line.id);
  const { data: alone } = await other.pulls.createReviewComment(
    { ...pull, body: 'And?', commit_id: pending.commit_id, path: 'b.txt', line: 1, side: 'RIGHT' });
  assert.equal((await github.paginate(github.pulls.listReviewComments, { ...pull, per_page: 2 })).length, 3);
  assert.equal((await github.pulls.updateReviewComment({ ...at, comment_id: reply.id, body: 'Thus.' })).data.body, 'Thus.');
  await other.pulls.deleteReviewComment({ ...at, comment_id: alone.id });
  await refused(github.pulls.getReviewComment({ ...at, comment_id: alone.id }), 404);
  const { data: gone } = await github.pulls.dismissReview({ ...pull, review_id: pending.id, message: 'Done' });
  assert.equal(gone.state, 'DISMISSED');
  assert.equal((await other.pulls.createReview({ ...pull, event: 'APPROVE' })).data.state, 'APPROVED');
}

async function update() {
  const before = (await github.pulls.get(pull)).data.head.sha;
  await write('main', 'c.txt', 'beside\n', 'feat: beside');
  await refused(github.pulls.updateBranch({ ...pull, expected_head_sha: 'f'.repeat(40) }), 422);
  assert.equal((await github.pulls.updateBranch({ ...pull, expected_head_sha: before })).status, 202);
  const { data } = await github.pulls.get(pull);
  assert.notEqual(data.head.sha, before);
  await refused(github.pulls.checkIfMerged(pull), 404);
  const no = await refused(github.pulls.merge(pull), 405);
  assert.ok(no.message.length > 0);
  await refused(github.pulls.merge({ ...pull, pull_number: 999999 }), 404);
}

async function issues() {
  const { data: issue } = await github.issues.create({ ...at, title: 'Broken', labels: ['bug'] });
  const one = { ...at, issue_number: issue.number };
  const { data: comment } = await other.issues.createComment({ ...one, body: 'Indeed' });
  assert.equal((await github.issues.updateComment({ ...at, comment_id: comment.id, body: 'Yes' })).data.body, 'Yes');
  assert.deepEqual((await github.paginate(github.issues.listComments, { ...one, per_page: 1 })).map((c) => c.body), ['Yes']);
  await github.issues.deleteComment({ ...at, comment_id: comment.id });
  await github.issues.createLabel({ ...at, name: 'odd / one', color: 'ff0000' });
  const { data: labels } = await github.issues.addLabels({ ...one, labels: ['odd / one'] });
  assert.deepEqual(labels.map((l) => l.name), ['bug', 'odd / one']);
  await github.issues.removeLabel({ ...one, name: 'odd / one' });
  await github.issues.setLabels({ ...one, labels: ['a', 'b'] });
  await github.issues.removeAllLabels(one);
  assert.equal((await github.issues.updateLabel({ ...at, name: 'odd / one', new_name: 'even' })).data.name, 'even');
  await github.issues.deleteLabel({ ...at, name: 'even' });
  await refused(github.issues.getLabel({ ...at, name: 'even' }), 404);
  const both = await github.paginate(github.issues.listForRepo, { ...at, state: 'all', per_page: 1 });
  assert.deepEqual(both.map((i) => 'pull_request' in i), [false, true]);
  const { data: closed } = await github.issues.update({ ...one, state: 'closed', state_reason: 'not_planned' });
  assert.deepEqual([closed.state, closed.state_reason], ['closed', 'not_planned']);
  await refused(github.issues.lock(one), 404);
  await refused(github.issues.create({ ...at, title: '' }), 422);
}

// A program on this machine hears, and does not believe what is not signed.
async function hooks() {
  const heard = [];
  const server = createServer((request, response) => {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece)).on('end', () => {
      const body = Buffer.concat(pieces);
      const expected = 'sha256=' + createHmac('sha256', secret).update(body).digest('hex');
      assert.equal(request.headers['x-hub-signature-256'], expected);
      heard.push({ event: request.headers['x-github-event'], guid: request.headers['x-github-delivery'], body: JSON.parse(body) });
      response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { data: hook } = await github.repos.createWebhook(
    { ...at, config: { url: `http://127.0.0.1:${server.address().port}/`, secret, content_type: 'json' }, events: ['issues'] });
  const one = { ...at, hook_id: hook.id };
  await refused(other.repos.listWebhooks(at), 403);
  await github.repos.pingWebhook(one);
  const ping = await eventually(() => heard[0], 'a ping');
  assert.deepEqual([ping.event, ping.body.hook_id], ['ping', hook.id]);
  const { data: issue } = await github.issues.create({ ...at, title: 'Heard' });
  const told = await eventually(() => heard[1], 'an issue');
  assert.deepEqual([told.event, told.body.action, told.body.issue], ['issues', 'opened', issue]);
  const done = await eventually(async () => {
    const { data } = await github.repos.listWebhookDeliveries(one);
    return data.every((d) => d.status_code === 200) && data;
  }, 'their ends');
  const { data: whole } = await github.repos.getWebhookDelivery({ ...one, delivery_id: done[0].id });
  assert.deepEqual(whole.request.payload, told.body);
  assert.equal((await github.repos.redeliverWebhookDelivery({ ...one, delivery_id: done[0].id })).status, 202);
  assert.equal((await eventually(() => heard[2], 'it once more')).guid, told.guid);
  assert.equal((await github.repos.updateWebhook({ ...one, active: false })).data.active, false);
  await github.repos.deleteWebhook(one);
  assert.equal((await github.repos.listWebhooks(at)).data.length, 0);
  server.close();
}

async function close() {
  const { data } = await github.pulls.update({ ...pull, state: 'closed' });
  assert.deepEqual([data.state, data.merged, data.mergeable], ['closed', false, null]);
}

for (const step of [prepare, open, look, review, update, issues, hooks, close]) {
  await step();
  console.log(step.name);
}
