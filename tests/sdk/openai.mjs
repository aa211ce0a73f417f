// SPDX-License-Identifier: Apache-2.0
// The official OpenAI client against a gate; usage: node openai.mjs BASE_URL
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'placeholder', maxRetries: 0 });
const model = 'any-model';
const user = (content) => [{ role: 'user', content }];
const counted = 'One, two, 3! Ünïcödé ✓';
const tools = [{
  type: 'function',
  function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}];

async function chat() {
  const { data, response } = await client.chat.completions
    .create({ model, messages: user('count to 3') }).withResponse();
  assert.equal(data.choices[0].message.content, counted);
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.usage.prompt_tokens, 25);
  assert.equal(response.headers.get('x-coop-brain'), 'script');
}

async function chatStream() {
  let text = '', chunks = 0, usage = null;
  for await (const chunk of await client.chat.completions.create({ model, messages: user('count to 3'), stream: true })) {
    text += chunk.choices[0].delta.content ?? '';
    usage ??= chunk.usage;
    chunks++;
  }
  assert.equal(text, counted);
  assert.ok(chunks > 4);
  assert.ok(!usage, 'the usage chunk came unasked');
  const asked = await client.chat.completions.create(
    { model, messages: user('count to 3'), stream: true, stream_options: { include_usage: true } });
  for await (const chunk of asked) usage ??= chunk.usage;
  assert.equal(usage.completion_tokens, 8);
  assert.equal(usage.prompt_tokens_details.cached_tokens, 5);
}

async function chatTools() {
  const first = await client.chat.completions.create({ model, tools, messages: user('what is the weather in Bern?') });
  const call = first.choices[0].message.tool_calls[0];
  assert.equal(first.choices[0].finish_reason, 'tool_calls');
  assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Bern', days: 2 });
  const second = await client.chat.completions.create({
    model, tools,
    messages: [...user('what is the weather in Bern?'), first.choices[0].message,
      { role: 'tool', tool_call_id: call.id, content: 'sunny' }],
  });
  assert.equal(second.choices[0].message.content, 'It is sunny.');
}

// The helper that runs tools by itself, on streams.
async function chatRunTools() {
  const asked = [];
  const runner = client.chat.completions.runTools({
    model, stream: true, messages: user('what is the weather in Rome?'),
    tools: [{
      type: 'function',
      function: {
        name: 'get_weather', parse: JSON.parse, parameters: tools[0].function.parameters,
        function: ({ city }) => { asked.push(city); return 'rainy'; },
      },
    }],
  });
  assert.equal(await runner.finalContent(), 'It is rainy.');
  assert.deepEqual(asked, ['Rome']);
}

async function responses() {
  const whole = await client.responses.create({ model, input: 'count to 3' });
  assert.equal(whole.output_text, counted);
  assert.equal(whole.usage.input_tokens, 25);
  let text = '', last;
  for await (const event of await client.responses.create({ model, input: 'count to 3', stream: true })) {
    if (event.type === 'response.output_text.delta') text += event.delta;
    last = event;
  }
  assert.equal(text, counted);
  assert.equal(last.type, 'response.completed');
  const stream = client.responses.stream({ model, input: 'only a tool' });
  const final = await stream.finalResponse();
  assert.deepEqual(final.output.map((item) => JSON.parse(item.arguments).city), ['Bern', 'Oslo']);
  const first = await client.responses.create({ model, input: user('what is the weather in Bern?') });
  const call = first.output.find((item) => item.type === 'function_call');
  const second = await client.responses.create({
    model,
    input: [...user('what is the weather in Bern?'), ...first.output,
      { type: 'function_call_output', call_id: call.call_id, output: 'foggy' }],
  });
  assert.equal(second.output_text, 'It is foggy.');
}

async function others() {
  const vectors = await client.embeddings.create({ model, input: ['a', 'b'], dimensions: 16 });
  assert.equal(vectors.data.length, 2);
  assert.equal(vectors.data[0].embedding.length, 16);
  const models = await client.models.list();
  assert.equal(models.data[0].id, 'script');
  assert.equal((await client.models.retrieve('a/b')).id, 'a/b');
}

async function errors() {
  await assert.rejects(client.chat.completions.create({ model, messages: user('too fast') }),
    (e) => e instanceof OpenAI.RateLimitError && e.message.includes('slow down, coder-1'));
  await assert.rejects(client.chat.completions.create({ model, messages: user('fail') }),
    (e) => e instanceof OpenAI.InternalServerError && e.status === 502 && e.code === 'upstream_failed');
  await assert.rejects(client.chat.completions.create({ model, messages: user('nobody knows') }), OpenAI.BadRequestError);
  await assert.rejects(client.responses.create({ model, input: 'x', previous_response_id: 'resp_1' }),
    (e) => e instanceof OpenAI.BadRequestError && e.code === 'stateful_refused');
  await assert.rejects(client.files.list(), (e) => e.code === 'stateful_refused');
  for (const ask of [
    () => client.chat.completions.create({ model, messages: user('break off'), stream: true }),
    () => client.responses.create({ model, input: 'break off', stream: true }),
  ]) {
    let pieces = 0;
    await assert.rejects(async () => { for await (const _ of await ask()) pieces++; },
      (e) => e instanceof OpenAI.APIError && e.message.includes('broke off'));
    assert.ok(pieces > 0);
  }
}

for (const part of [chat, chatStream, chatTools, chatRunTools, responses, others, errors]) {
  await part();
  console.log(`ok ${part.name}`);
}
