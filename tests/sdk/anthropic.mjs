// SPDX-License-Identifier: Apache-2.0
// The official Anthropic client against a gate; usage: node anthropic.mjs BASE_URL
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: process.argv[2], apiKey: 'placeholder', maxRetries: 0 });
const base = { model: 'any-model', max_tokens: 100 };
const user = (content) => [{ role: 'user', content }];
const counted = 'One, two, 3! Ünïcödé ✓';
const tools = [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }];

async function messages() {
  const { data, response } = await client.messages.create({ ...base, messages: user('count to 3') }).withResponse();
  assert.equal(data.content[0].text, counted);
  assert.equal(data.stop_reason, 'end_turn');
  assert.equal(data.usage.cache_read_input_tokens, 5);
  assert.equal(response.headers.get('x-coop-brain'), 'script');
}

async function stream() {
  let text = '';
  for await (const event of await client.messages.create({ ...base, messages: user('count to 3'), stream: true })) {
    if (event.type === 'content_block_delta') text += event.delta.text;
  }
  assert.equal(text, counted);
  const helper = client.messages.stream({ ...base, messages: user('count to 3') });
  const final = await helper.finalMessage();
  assert.equal(final.content[0].text, counted);
  assert.equal(final.usage.output_tokens, 8);
}

async function toolUse() {
  for (const ask of [
    (body) => client.messages.create(body),
    (body) => client.messages.stream(body).finalMessage(),
  ]) {
    const first = await ask({ ...base, tools, messages: user('what is the weather in Bern?') });
    const use = first.content.find((block) => block.type === 'tool_use');
    assert.equal(first.stop_reason, 'tool_use');
    assert.deepEqual(use.input, { city: 'Bern', days: 2 });
    const second = await ask({
      ...base, tools,
      messages: [...user('what is the weather in Bern?'), { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'sunny' }] }],
    });
    assert.equal(second.content[0].text, 'It is sunny.');
  }
}

async function others() {
  const count = await client.messages.countTokens({ model: base.model, messages: user('count to 3') });
  assert.ok(count.input_tokens > 0);
  const models = await client.models.list({ limit: 5 });
  assert.equal(models.data[0].id, 'script');
}

async function errors() {
  await assert.rejects(client.messages.create({ ...base, messages: user('too fast') }),
    (e) => e instanceof Anthropic.RateLimitError && e.message.includes('slow down, coder-1'));
  await assert.rejects(client.messages.create({ ...base, messages: user('fail') }),
    (e) => e instanceof Anthropic.InternalServerError && e.status === 502);
  await assert.rejects(client.messages.batches.list(), (e) => e instanceof Anthropic.BadRequestError);
  let pieces = 0;
  await assert.rejects(async () => {
    for await (const _ of await client.messages.create({ ...base, messages: user('break off'), stream: true })) pieces++;
  }, (e) => e instanceof Anthropic.APIError && e.message.includes('broke off'));
  assert.ok(pieces > 0);
}

for (const part of [messages, stream, toolUse, others, errors]) {
  await part();
  console.log(`ok ${part.name}`);
}
