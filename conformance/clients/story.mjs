// The story that the clients of both TypeScript SDKs run; `client` hides the differences between the SDKs.
import assert from 'node:assert/strict';

const TIMEOUT_MS = 60_000;

export async function run(client) {
  const tools = await client.tools();
  for (const name of ['schedule_create', 'run_start', 'run_wait']) {
    assert(tools.includes(name), `no tool ${name}`);
  }
  // A unique name: the same definition would be the same schedule.
  const definition = { name: `story-${process.pid}`, agent: 'echo', prompt: 'say hello', every: '1000h' };
  const schedule = (await ok(client, 'schedule_create', definition)).schedule.id;
  const start = { schedule_id: schedule, idempotency_key: `story-${schedule}` };
  const runId = (await ok(client, 'run_start', start)).run.id;
  assert.equal((await ok(client, 'run_start', start)).run.id, runId, 'the same key started a second run');
  let progress = await ok(client, 'run_wait', { run_id: runId });
  while (!progress.ended) progress = await ok(client, 'run_wait', { run_id: runId, cursor: progress.cursor });
  assert.equal(progress.run.state, 'done');
  assert((await client.read(`midwatch://run/${runId}`)).includes('say hello'));

  const missing = await client.call('run_get', { run_id: 'run_none' });
  assert.equal(missing.isError, true);
  assert.equal(missing.structuredContent.error.code, 'not_found');
  await assert.rejects(client.call('no_such_tool', {}), (error) => error.code === -32602);

  // A tier-2 run needs approval: the client opens the page, and its own `accept` approves nothing.
  const outside = { name: `outside-${process.pid}`, agent: 'outside', prompt: 'tell them', every: '1000h' };
  const outsideId = (await ok(client, 'schedule_create', outside)).schedule.id;
  const waitingId = (await ok(client, 'run_start', { schedule_id: outsideId, idempotency_key: `story-${outsideId}` })).run.id;
  const approvalDeadline = Date.now() + TIMEOUT_MS;
  let approval;
  while (!approval) {
    assert(Date.now() < approvalDeadline, 'no approval was requested');
    approval = (await ok(client, 'run_get', { run_id: waitingId })).run.approval_id;
  }
  const called = await ok(client, 'approval_call_human', { approval_id: approval });
  assert.equal(called.waiting, true);
  assert.deepEqual(client.opened, [called.link]);
  assert.equal((await ok(client, 'approval_get', { approval_id: approval })).approval.state, 'pending');
  assert.equal((await ok(client, 'run_cancel', { run_id: waitingId })).run.state, 'cancelled');

  const uri = `midwatch://schedule/${schedule}`;
  const hasChanged = await client.follow(uri);
  const deadline = Date.now() + TIMEOUT_MS;
  // Changes before the subscription are not notified, so change it until a notification comes.
  for (let paused = false; !(await hasChanged()); paused = !paused) {
    assert(Date.now() < deadline, 'no notification came');
    await ok(client, paused ? 'schedule_resume' : 'schedule_pause', { schedule_id: schedule });
  }
}

async function ok(client, name, input) {
  const answer = await client.call(name, input);
  assert(!answer.isError, `${name}: ${JSON.stringify(answer.structuredContent)}`);
  return answer.structuredContent;
}

// A function that tells, after a turn of the event loop, whether a promise is resolved.
export function isResolved(promise) {
  let resolved = false;
  promise.then(() => (resolved = true));
  return () => new Promise((done) => setImmediate(() => done(resolved)));
}

// The transport options, from the arguments: `http URL` or `stdio PROGRAM`.
export function target() {
  const [transport, address] = process.argv.slice(2);
  const headers = { Authorization: `Bearer ${process.env.MIDWATCH_TOKEN}` };
  return transport === 'http'
    ? { url: new URL(address), requestInit: { headers } }
    : { command: address, args: ['mcp'], env: { ...process.env, MIDWATCH_TOKEN: '' } };
}
