# SPDX-License-Identifier: Apache-2.0
"""Agents in boxes: what they find there, what Coop sees of their work, and what is left when something dies."""
import pytest

from crewserver import crew_serving


@pytest.fixture(scope='module')
def server():
    with crew_serving() as running:
        yield running


def test_work_is_pushed_and_checked(server):
    agent = server.begin_agent('echo new >added.txt', 'printf \'{"say": "said", "text": "I added a file"}\\n\'',
                         repository='coop/work')
    assert agent['sandboxId'] and agent['role'] == 'coder'
    ended = server.agent_ended(agent)
    assert ended['state'] == 'done', (ended['problem'], ended['result'], server.log()[-3000:])
    assert ended['report'] == {'outcome': 'done', 'summary': 'I added a file'}
    assert ended['result']['passed'] is None and len(ended['result']['commits']) == 1
    assert server.events_of(agent, 'agent.said')[0]['data']['seen_by'] == 'agent'
