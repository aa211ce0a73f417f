// SPDX-License-Identifier: Apache-2.0
'use strict';

// Text from the server is only ever set as textContent: titles, paths and messages may hold
// anything.
const byId = (id) => document.getElementById(id);
const SHOWN_MAX = 200;

function addRow(list, name, value) {
  const dt = document.createElement('dt');
  const dd = document.createElement('dd');
  dt.textContent = name;
  dd.textContent = value;
  list.append(dt, dd);
}

async function ask(method, path, body) {
  const options = { method, headers: { Accept: 'application/json' } };
  if (body !== undefined) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const text = await answer.text();
  const value = text === '' ? {} : JSON.parse(text);
  if (!answer.ok) throw new Error(value.message ?? `status ${answer.status}`);
  return value;
}

// The ticket stands in the fragment, which no browser sends and no log keeps; it is taken out
// of the address before anything else happens.
function takeTicket() {
  const found = /^#ticket=([0-9a-f]+)$/.exec(location.hash);
  if (location.hash !== '') history.replaceState(null, '', location.pathname);
  return found ? found[1] : null;
}

async function showHealth() {
  const health = await ask('GET', '/health');
  byId('state').textContent = health.status;
  const list = byId('server');
  addRow(list, 'Version', health.version);
  addRow(list, 'Up for', `${health.uptime_s} s`);
  for (const part of health.degraded) addRow(list, `Degraded: ${part.part}`, part.reason);
  for (const tier of health.tiers) addRow(list, `Tier ${tier.name}`, tier.available ? 'available' : tier.reason);
}

function showEvent(message) {
  const event = JSON.parse(message.data);
  const item = document.createElement('li');
  const fields = [['seq', event.seq], ['at', event.at], ['kind', event.kind], ['data', JSON.stringify(event.data)]];
  for (const [name, value] of fields) {
    const cell = document.createElement(name === 'at' ? 'time' : 'span');
    cell.className = name;
    cell.textContent = String(value);
    item.append(cell);
  }
  const list = byId('events');
  list.prepend(item);
  while (list.children.length > SHOWN_MAX) list.lastElementChild.remove();
}

async function follow() {
  const { seq } = await ask('GET', '/api/v1/stats');
  const kinds = (await ask('GET', '/openapi.json')).components.schemas.EventKind.enum;
  const source = new EventSource(`/api/v1/events?after=${Math.max(0, seq - 50)}`);
  const state = byId('follow');
  source.addEventListener('beat', () => { state.textContent = 'live'; });
  source.addEventListener('resync', () => { byId('events').replaceChildren(); });
  source.addEventListener('error', () => { state.textContent = 'reconnecting …'; });
  for (const kind of kinds) source.addEventListener(kind, showEvent);
}

async function start() {
  const ticket = takeTicket();
  showHealth().catch((error) => { byId('state').textContent = error.message; });
  try {
    if (ticket !== null) await ask('POST', '/api/v1/session', { ticket });
    await ask('GET', '/api/v1/session');
  } catch (error) {
    // Without a ticket the page's own words say it better.
    if (ticket !== null) byId('why').textContent = error.message;
    byId('signed-out').hidden = false;
    return;
  }
  byId('signed-in').hidden = false;
  byId('sign-out').addEventListener('click', async () => {
    await ask('DELETE', '/api/v1/session');
    location.reload();
  });
  follow().catch((error) => { byId('follow').textContent = error.message; });
}

start();
