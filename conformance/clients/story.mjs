// The story that every client of the TypeScript SDKs tells; `client` hides what differs between them.
import assert from 'node:assert/strict';

const PATIENCE_MS = 60_000;

export async function tell(client) {
  const tools = await client.tools();
  for (const name of ['schedule_create', 'run_start', 'run_wait']) {
    assert(tools.includes(name), `no tool ${name}`);
  }
  // Of its own, as the same words would be the same schedule.
  const asked = { name: `story-${process.pid}`, agent: 'echo', prompt: 'say hello', every: '1000h' };
  const schedule = (await ok(client, 'schedule_create', asked)).schedule.id;
  const start = { schedule_id: schedule, idempotency_key: `story-${schedule}` };
  const run = (await ok(client, 'run_start', start)).run.id;
  assert.equal((await ok(client, 'run_start', start)).run.id, run, 'the same key is the same run');
  let news = await ok(client, 'run_wait', { run_id: run });
  while (!news.ended) news = await ok(client, 'run_wait', { run_id: run, cursor: news.cursor });
  assert.equal(news.run.state, 'done');
  assert((await client.read(`midwatch://run/${run}`)).includes('say hello'));

  const missing = await client.call('run_get', { run_id: 'run_none' });
  assert.equal(missing.isError, true);
  assert.equal(missing.structuredContent.error.code, 'not_found');
  await assert.rejects(client.call('no_such_tool', {}), (error) => error.code === -32602);

  // What only a human decides: the client opens the page for them, and says yes for them in vain.
  const outside = { name: `outside-${process.pid}`, agent: 'outside', prompt: 'tell them', every: '1000h' };
  const waits = (await ok(client, 'schedule_create', outside)).schedule.id;
  const waiting = (await ok(client, 'run_start', { schedule_id: waits, idempotency_key: `story-${waits}` })).run.id;
  const parked = Date.now() + PATIENCE_MS;
  let approval;
  while (!approval) {
    assert(Date.now() < parked, 'it waits for nobody');
    approval = (await ok(client, 'run_get', { run_id: waiting })).run.approval_id;
  }
  const called = await ok(client, 'approval_call_human', { id: approval });
  assert.equal(called.waiting, true);
  assert.deepEqual(client.opened, [called.link]);
  assert.equal((await ok(client, 'approval_get', { id: approval })).approval.state, 'pending');
  assert.equal((await ok(client, 'run_cancel', { run_id: waiting })).run.state, 'cancelled');

  const uri = `midwatch://schedule/${schedule}`;
  const told = await client.follow(uri);
  const deadline = Date.now() + PATIENCE_MS;
  // What happened before the first look is no news, so it happens until there are some.
  for (let paused = false; !(await told()); paused = !paused) {
    assert(Date.now() < deadline, 'no news came');
    await ok(client, paused ? 'schedule_resume' : 'schedule_pause', { id: schedule });
  }
}

async function ok(client, name, asked) {
  const answer = await client.call(name, asked);
  assert(!answer.isError, `${name}: ${JSON.stringify(answer.structuredContent)}`);
  return answer.structuredContent;
}

// Whether the news have come, after a turn of the loop.
export function heard(promise) {
  let has = false;
  promise.then(() => (has = true));
  return () => new Promise((done) => setImmediate(() => done(has)));
}

export function place() {
  const [how, where] = process.argv.slice(2);
  const headers = { Authorization: `Bearer ${process.env.MIDWATCH_TOKEN}` };
  return how === 'http'
    ? { url: new URL(where), requestInit: { headers } }
    : { command: where, args: ['mcp'], env: { ...process.env, MIDWATCH_TOKEN: '' } };
}
