# SPDX-License-Identifier: Apache-2.0
"""A GitHub with a memory: pull requests, comments, reviews and statuses as it keeps them, drafts by GraphQL only."""
import datetime
import itertools
import json
import re
import threading
import urllib.parse

from githubserver import GithubHandler, GithubServer
from gitrepo import git

REPO = '/repos/acme/widget'


class HubHandler(GithubHandler):
    def do_GET(self):
        if self.path == '/api/graphql':
            body = json.loads(self.body())
            self.server.owner.asked.append((self.command, self.path, body))
            return self.tell(*self.server.owner.graphql(body))
        if not self.path.startswith('/api/v3/'):
            return super().do_GET()
        owner = self.server.owner
        body = self.body()
        body = json.loads(body) if body else None
        path, _, query = self.path[len('/api/v3'):].partition('?')
        owner.asked.append((self.command, path, body))
        if self.headers.get('Authorization') not in [f'Bearer {t}' for t in owner.tokens]:
            return self.tell(401, [], {'message': 'Bad credentials'})
        with owner.lock:
            status, fields, value = owner.handle(self.command, path, dict(urllib.parse.parse_qsl(query)), body)
        if self.command != 'GET' and owner.lose > 0:
            owner.lose -= 1
            self.close_connection = True
            return None  # it was done, and nobody hears of it
        return self.tell(status, fields, value)

    def tell(self, status, fields, value):
        text = b'' if value is None else json.dumps(value).encode()
        return self.answer(status, [('Content-Type', 'application/json'), *fields], text)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET


class FakeHub(GithubServer):
    """`lose`: so many answers to writes are lost."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.http.RequestHandlerClass = HubHandler
        self.lock, self.lose, self.ids = threading.Lock(), 0, itertools.count(1000)
        self.clock = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
        self.pulls, self.comments, self.reviews, self.lines, self.statuses = {}, {}, {}, {}, []
        self.people, self.resolved = {'ann', 'bob'}, set()
        self.permissions = {'pull': True, 'push': True}

    # ---- what people do there ----

    def now(self):
        self.clock += datetime.timedelta(seconds=1)
        return self.clock.strftime('%Y-%m-%dT%H:%M:%SZ')

    def item(self, login=None, **more):
        now = self.now()
        return {'id': next(self.ids), 'user': {'login': login or self.login}, 'created_at': now, 'updated_at': now, **more}

    def say(self, number, text, login='ann'):
        made = self.item(login, body=text, number=number)
        self.comments[made['id']] = made
        return made

    def review(self, number, state, text='', login='ann', association='MEMBER'):
        made = self.item(login, body=text, state=state, number=number, submitted_at=self.now(), commit_id='',
                         author_association=association)
        self.reviews[made['id']] = made
        return made

    def set_pull(self, number, **more):
        self.pulls[number].update(more, updated_at=self.now())
        return self.pulls[number]

    # ---- answers ----

    def handle(self, method, path, query, body):
        if (method, path) in self.replies:
            return self.replies[method, path]
        for pattern, func in ROUTES:
            if found := re.fullmatch(REPO + pattern, path):
                answer = func(self, method, query, body, *(int(g) if g.isdigit() else g for g in found.groups()))
                return (200, [], answer) if not isinstance(answer, tuple) else answer
        if path == '/user':
            return 200, self.fields, {'login': self.login}
        return 404, [], {'message': 'Not Found'}

    def page(self, query, items, path):
        page, size = int(query.get('page', 1)), int(query.get('per_page', 30))
        fields = []
        if len(items) > page * size:
            more = urllib.parse.urlencode({**query, 'page': page + 1})
            fields = [('Link', f'<{self.base}{REPO}{path}?{more}>; rel="next"')]
        return 200, fields, items[(page - 1) * size:page * size]

    def on_threads(self, body):
        """Of the lines that begin one; `resolved` are the ids of theirs that are."""
        first = [i for i in self.lines.values() if not i.get('in_reply_to_id')]
        if 'id' in body['variables']:
            thread = int(body['variables']['id'].removeprefix('PRRT_'))
            (self.resolved.discard if 'unresolve' in body['query'] else self.resolved.add)(thread)
            return 200, [], {'data': {}}
        nodes = [{'id': f'PRRT_{i["id"]}', 'isResolved': i['id'] in self.resolved,
                  'comments': {'nodes': [{'databaseId': i['id']}]}} for i in first]
        return 200, [], {'data': {'repository': {'pullRequest': {'reviewThreads': {'nodes': nodes}}}}}

    def graphql(self, body):
        if 'hread' in body['query']:
            return self.on_threads(body)
        pull = next((p for p in self.pulls.values() if p['node_id'] == body['variables']['id']), None)
        if pull is None:
            return 200, [], {'errors': [{'type': 'NOT_FOUND', 'message': 'no such node'}]}
        self.set_pull(pull['number'], draft='convertPullRequestToDraft' in body['query'])
        return 200, [], {'data': {}}

    def on_pulls(self, method, query, body):
        if method == 'GET':
            head = query.get('head', ':').split(':')[1]
            return self.page(query, [p for p in self.pulls.values() if not head or p['head']['ref'] == head], '/pulls')
        if any(p['head']['ref'] == body['head'] and p['state'] == 'open' for p in self.pulls.values()):
            return 422, [], {'message': 'A pull request already exists'}
        number = len(self.pulls) + 70
        self.pulls[number] = self.item(number=number, node_id=f'PR_{number}', title=body['title'], body=body['body'],
                                       state='open', draft=body.get('draft', False), merged=False,
                                       labels=[], requested_reviewers=[],
                                       head={'ref': body['head'], 'sha': self.tip(body['head'])},
                                       base={'ref': body['base']}, html_url=f'https://hub.example/{number}')
        return 201, [], self.pulls[number]

    def on_labels(self, method, query, body, number):
        pull = self.pulls[number]
        have = [str(x.get('name')).lower() for x in pull['labels']]
        new = [{'name': n, 'color': 'ededed'} for n in body['labels'] if n.lower() not in have]
        self.set_pull(number, labels=pull['labels'] + new)
        return self.pulls[number]['labels']

    def on_label(self, method, query, body, number, name):
        left = [x for x in self.pulls[number]['labels'] if str(x.get('name')).lower() != urllib.parse.unquote(str(name)).lower()]
        if len(left) == len(self.pulls[number]['labels']):
            return 404, [], {'message': 'Label does not exist'}
        self.set_pull(number, labels=left)
        return left

    def on_reviewers(self, method, query, body, number):
        asked = [p['login'] for p in self.pulls[number]['requested_reviewers']]
        if method == 'POST' and not set(body['reviewers']) <= self.people:
            return 422, [], {'message': 'Reviews may only be requested from collaborators.'}
        asked = [a for a in asked if a not in body['reviewers']] + (body['reviewers'] if method == 'POST' else [])
        self.set_pull(number, requested_reviewers=[{'login': a} for a in asked])
        return 201 if method == 'POST' else 200, [], self.pulls[number]

    def tip(self, branch):
        return git(self.bare, 'rev-parse', branch)

    def on_pull(self, method, query, body, number):
        if method == 'PATCH':
            self.set_pull(number, **{k: v for k, v in body.items() if k in ('title', 'body', 'state')})
        return self.pulls[number]

    def on_list(self, method, query, body, number, store, make, path):
        if method == 'GET':
            return self.page(query, [i for i in store.values() if i['number'] == number], path)
        made = self.item(number=number, **make(body))
        store[made['id']] = made
        return 201, [], made

    def on_comments(self, method, query, body, number):
        return self.on_list(method, query, body, number, self.comments, lambda b: {'body': b['body']},
                            f'/issues/{number}/comments')

    def on_reviews(self, method, query, body, number):
        if method == 'POST' and body['event'] != 'COMMENT':
            return 422, [], {'message': 'Can not approve your own pull request'}
        return self.on_list(method, query, body, number, self.reviews,
                            lambda b: {'body': b['body'], 'state': 'COMMENTED', 'submitted_at': self.now(),
                                       'author_association': 'OWNER', 'commit_id': ''}, f'/pulls/{number}/reviews')

    def on_lines(self, method, query, body, number):
        if method == 'POST' and body.get('path') == 'nowhere':
            return 422, [], {'message': 'Validation Failed'}
        return self.on_list(method, query, body, number, self.lines,
                            lambda b: {**b, 'in_reply_to_id': b.get('in_reply_to')}, f'/pulls/{number}/comments')

    def on_one(self, method, body, store, item):
        if item not in store:
            return 404, [], {'message': 'Not Found'}
        if method == 'DELETE':
            del store[item]
            return 204, [], None
        store[item].update(body, updated_at=self.now())
        return store[item]

    def on_status(self, method, query, body, sha):
        self.statuses.append({'sha': sha, 'id': next(self.ids), **body})
        return 201, [], self.statuses[-1]

    def on_repo(self, method, query, body):
        return {'full_name': 'acme/widget', 'permissions': self.permissions}


ROUTES = [
    ('', FakeHub.on_repo),
    ('/pulls', FakeHub.on_pulls),
    (r'/pulls/(\d+)', FakeHub.on_pull),
    (r'/issues/(\d+)/comments', FakeHub.on_comments),
    (r'/issues/(\d+)/labels', FakeHub.on_labels),
    (r'/issues/(\d+)/labels/([^/]+)', FakeHub.on_label),
    (r'/pulls/(\d+)/requested_reviewers', FakeHub.on_reviewers),
    (r'/pulls/(\d+)/reviews', FakeHub.on_reviews),
    (r'/pulls/(\d+)/comments', FakeHub.on_lines),
    (r'/issues/comments/(\d+)', lambda hub, m, q, b, i: hub.on_one(m, b, hub.comments, i)),
    (r'/pulls/comments/(\d+)', lambda hub, m, q, b, i: hub.on_one(m, b, hub.lines, i)),
    (r'/pulls/\d+/reviews/(\d+)', lambda hub, m, q, b, i: hub.on_one(m, b, hub.reviews, i)),
    (r'/statuses/([0-9a-f]+)', FakeHub.on_status),
    (r'/commits/([0-9a-f]+)/status', lambda hub, m, q, b, s: {'statuses': [x for x in hub.statuses if x['sha'] == s]}),
    (r'/commits/([0-9a-f]+)/check-runs', lambda hub, m, q, b, s: {'check_runs': []}),
]
