# SPDX-License-Identifier: Apache-2.0
"""The bombs again where there is no root: what can be contained there is.

Memory is not among it (`degraded` says so), and what only the server decides needs no second run.
"""
import pytest

from test_box_bombs import (server, test_disk_bomb, test_endless_loop, test_endless_output,  # noqa: F401
                            test_everything_removed, test_fork_bomb, test_fork_bomb_is_deleted, test_inode_bomb,
                            test_links_out_of_the_box, test_tar_bombs)
from userserver import bare_server


@pytest.fixture(scope='module', params=['user', 'namespace'])
def one_server(request, program):
    with bare_server(request.param, program) as made:
        yield made
