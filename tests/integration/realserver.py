# SPDX-License-Identifier: Apache-2.0
"""`coop start` with the templates that come with Coop, made of real packages.

They are kept between runs, as those of test_templates_real are."""
import contextlib
import os
import pathlib
import shutil
import tempfile

from builds import Builder
from test_templates_real import alone, build, cache_folder
from userserver import UserServer, need_user


class RealServer(UserServer):
    """Run by the user who built the templates, with those."""

    def template(self, name):
        return self.get(f'/api/v1/templates/{name}')


def make_store(program, templates):
    """The folder with these templates, which are built where they are not there."""
    builder = Builder(program, pathlib.Path(tempfile.mkdtemp(prefix='coop-')))
    server = builder.server(store=cache_folder(builder), env={'GOPROXY': os.environ['GOPROXY']} if 'GOPROXY' in os.environ else {})
    server.env['PATH'] = os.environ['PATH']
    try:
        with alone(builder):
            server.start()
            try:
                for name in templates:
                    build(server, name)
            finally:
                server.finish()
        return cache_folder(builder)
    finally:
        builder.remove()


@contextlib.contextmanager
def real_server(program, templates=('base',), env=None, make=RealServer):
    store = make_store(program, sorted(templates))
    user, first = need_user()
    folder = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    folder.chmod(0o755)
    made = make(folder, program, user, first, env={
        'COOP_TEMPLATES_DIR': str(store), 'E2B_TEMPLATE_ID': 'base', 'COOP_BOXES_MEMORY': '1GiB', 'COOP_BOXES_DISK': '1GiB',
        'COOP_BOXES_INODES': '100000', 'COOP_KEEPER_MEMORY_DISK': '0', 'COOP_DOOR_ENABLED': 'true', 'COOP_DOOR_ASK_CLIENTS': 'false', **(env or {})})
    try:
        yield made.start()
    finally:
        made.finish()
        shutil.rmtree(folder, ignore_errors=True)
