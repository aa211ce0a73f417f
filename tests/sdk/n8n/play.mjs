// SPDX-License-Identifier: Apache-2.0
// The supplied flow, read and played with n8n's own code: its descriptions of nodes, its expressions, its
// conditions, its HMAC.  node play.mjs check FLOW… | node play.mjs play FLOW TRIGGER '{"headers", "body"}'…
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { NodeHelpers, Workflow, executeFilter } = require('n8n-workflow');
const descriptions = require('n8n-nodes-base/dist/types/nodes.json');
const { Crypto } = require('n8n-nodes-base/dist/nodes/Crypto/Crypto.node.js');

const [order, ...given] = process.argv.slice(2);

function describe(type, version) {
  return descriptions.find((d) => `n8n-nodes-base.${d.name}` === type && [d.version].flat().includes(version));
}

const nodeTypes = {
  getByName: () => undefined,
  getByNameAndVersion(type, version) {
    const description = describe(type, version);
    return description && { description };
  },
  getKnownTypes: () => ({}),
};

// ---- check ----

function check(flow, workflow) {
  const problems = [];
  for (const node of flow.nodes) {
    const description = describe(node.type, node.typeVersion);
    if (!description) {
      problems.push(`${node.name}: n8n has no ${node.type} of version ${node.typeVersion}`);
      continue;
    }
    const names = new Set(description.properties.map((p) => p.name));
    for (const name of Object.keys(node.parameters))
      if (!names.has(name)) problems.push(`${node.name}: there is no parameter '${name}'`);
    const issues = NodeHelpers.getNodeParametersIssues(description.properties, workflow.getNode(node.name));
    if (issues) problems.push(`${node.name}: ${JSON.stringify(issues)}`);
    // What n8n would leave out when it saves the node was never meant to be there.
    const kept = NodeHelpers.getNodeParameters(description.properties, node.parameters, false, false, node);
    for (const name of Object.keys(node.parameters))
      if (!(name in kept) && name !== 'options' && JSON.stringify(description.properties.find((p) => p.name === name)?.default)
          !== JSON.stringify(node.parameters[name])) problems.push(`${node.name}: '${name}' is not used with the others`);
  }
  const reached = new Set(flow.nodes.filter((n) => describe(n.type, n.typeVersion)?.group.includes('trigger')).map((n) => n.name));
  for (const start of [...reached]) for (const name of workflow.getChildNodes(start)) reached.add(name);
  for (const node of flow.nodes) if (!reached.has(node.name)) problems.push(`${node.name}: nothing leads there`);
  for (const [from, ways] of Object.entries(flow.connections))
    for (const { node } of [{ node: from }, ...ways.main.flat()]) if (!workflow.getNode(node)) problems.push(`there is no node ${node}`);
  return problems;
}

// ---- play ----

function evaluator(workflow, node, items) {
  return (name, i, fallback) => {
    const value = node.parameters[name] ?? describe(node.type, node.typeVersion).properties.find((p) => p.name === name
      && NodeHelpers.displayParameter(node.parameters, p, node))?.default ?? fallback;
    return workflow.expression.getParameterValue(value, null, 0, i, node.name, items, 'manual', {}, undefined);
  };
}

async function http(get) {
  const headers = Object.fromEntries(get('headerParameters', 0).parameters.map((h) => [h.name, h.value]));
  const method = get('method', 0);
  const body = get('sendBody', 0) ? get('jsonBody', 0) : undefined;
  const answer = await fetch(get('url', 0), { method, body, headers: { ...headers, ...(body && { 'content-type': 'application/json' }) } });
  if (!answer.ok) throw new Error(`${method} ${get('url', 0)}: ${answer.status} ${await answer.text()}`);
  return [[{ json: await answer.json() }]];
}

const players = {
  webhook: (get, items) => [items],
  httpRequest: http,
  respondToWebhook: (get) => [[{ json: JSON.parse(get('responseBody', 0)) }]],
  crypto: (get, items, node) => new Crypto().execute.call({
    getInputData: () => items, getNodeParameter: get, getNode: () => node, continueOnFail: () => false,
    helpers: { assertBinaryData: (i, name) => items[i].binary[name] },
  }),
  if: (get, items) => (executeFilter(get('conditions', 0)) ? [items, []] : [[], items]),
  set: (get) => [[{ json: Object.fromEntries(get('assignments', 0).assignments.map((a) => [a.name, a.value])) }]],
};

/* As n8n's webhook hands it on. */
function arrived({ headers, body }) {
  return { json: { headers, params: {}, query: {}, body: JSON.parse(body) }, binary: { data: { data: Buffer.from(body).toString('base64'), mimeType: 'application/json' } } };
}

async function play(flow, workflow, name, items, passed) {
  const node = workflow.getNode(name);
  const outputs = await players[node.type.split('.')[1]](evaluator(workflow, node, items), items, node);
  passed.push([name, outputs.map((o) => o[0]?.json ?? null)]);
  for (const [i, way] of (flow.connections[name]?.main ?? []).entries())
    for (const next of way) if (outputs[i]?.length) await play(flow, workflow, next.node, outputs[i], passed);
  return passed;
}

function read(path) {
  const flow = JSON.parse(readFileSync(path));
  return [flow, new Workflow({ id: '1', nodes: structuredClone(flow.nodes), connections: flow.connections, active: false, nodeTypes, settings: flow.settings })];
}

const results = [];
if (order === 'check') for (const path of given) results.push(check(...read(path)));
else for (const request of given.slice(2)) results.push(await play(...read(given[0]), given[1], [arrived(JSON.parse(request))], []));
console.log(JSON.stringify(results));
