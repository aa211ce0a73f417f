# SPDX-License-Identifier: Apache-2.0
"""A server and the commands that talk to it, both run by one user."""
import json

from commands import PREFIX
from harness import IS_ROOT

WHO = ['root', 'user'] if IS_ROOT else ['user']


class Client:
    """`coop` for the data folder of a server, run by the user who runs that server."""

    def __init__(self, coop, server, who):
        self.coop, self.server, self.who = coop, server, who

    def env(self, env):
        return {'COOP_HOME': str(self.server.home), **(env or {})}

    def __call__(self, *args, env=None, **options):
        return self.coop(*args, who=self.who, env=self.env(env), **options)

    def json(self, *args, env=None, code=0, **options):
        return self.coop.json(*args, who=self.who, env=self.env(env), code=code, **options)

    def ok(self, *args, **options):
        done = self(*args, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def error(self, code, *args, **options):
        """The message, which is the same in both formats."""
        done = self(*args, **options)
        assert done.returncode == code, (done.stdout, done.stderr)
        assert done.stdout == '' and done.stderr.startswith('coop: '), done
        told = json.loads(self(*args, '-o', 'json', **options).stderr.splitlines()[-1])['error']
        assert told['code'] == code
        return told['message']


def open_folder(path):
    """For another user who has to work in it."""
    path.chmod(0o777)
    path.parent.chmod(0o755)


def make_client(who, coop, make_server):
    server = make_server(start=False, prefix=PREFIX[who])
    open_folder(server.folder)
    server.log_path.touch()
    server.start()
    return Client(coop, server, who)
