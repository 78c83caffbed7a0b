// Claude Code itself asks `permission_decide` before it writes a file. Its model is a stand-in on this machine that wants
// to write one file that the policy allows, and one that it does not.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { target } from './story.mjs';

const TIMEOUT_MS = 60_000;
const PROGRAM = join(import.meta.dirname, '../node_modules/@anthropic-ai/claude-code-linux-x64/claude');
const PERMISSION_TOOL = 'mcp__midwatch__permission_decide';
const CONTENT = 'written by a stand-in\n';

const directory = mkdtempSync(join(tmpdir(), 'midwatch-claude-'));
try {
  const allowed = await write(join(directory, 'allowed.txt'));
  assert.equal(allowed.isError, false, allowed.text);
  assert.equal(readFileSync(join(directory, 'allowed.txt'), 'utf8'), CONTENT);

  // The policy allows no file that a shell executes without an approval, and a permission prompt is none.
  const denied = await write(join(directory, '.bashrc'));
  assert.equal(denied.isError, true, denied.text);
  assert.match(denied.text, /the policy requires approval/);
  assert(!existsSync(join(directory, '.bashrc')), 'a denied write was made');
} finally {
  rmSync(directory, { recursive: true, force: true });
}

// Lets Claude Code write a file. Returns the result of its tool as its model gets it.
async function write(path) {
  const model = await startModel({ file_path: path, content: CONTENT });
  const { url, requestInit, ...server } = target();
  const config = url ? { type: 'http', url, headers: requestInit.headers } : server;
  const configFile = join(directory, 'mcp.json');
  writeFileSync(configFile, JSON.stringify({ mcpServers: { midwatch: config } }));
  const claude = ['-p', 'Write the file.', '--mcp-config', configFile, '--strict-mcp-config'];
  const { code, output } = await run(PROGRAM, [...claude, '--permission-prompt-tool', PERMISSION_TOOL], {
    ...process.env,
    HOME: directory,
    ANTHROPIC_API_KEY: 'a-stand-in-needs-no-key',
    ANTHROPIC_BASE_URL: model.url,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    IS_SANDBOX: '1',
  });
  model.close();
  assert.equal(code, 0, output);
  assert(model.result, `the tool was not called: ${output}`);
  return model.result;
}

function run(program, args, env) {
  return new Promise((done, failed) => {
    const child = spawn(program, args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: TIMEOUT_MS });
    let output = '';
    child.stdout.on('data', (data) => (output += data));
    child.stderr.on('data', (data) => (output += data));
    child.on('error', failed);
    child.on('close', (code) => done({ code, output }));
  });
}

// The Messages API: the first answer calls `Write`, the next one ends the turn.
async function startModel(input) {
  const model = {};
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const data of request) body += data;
    if (request.method !== 'POST' || !request.url.startsWith('/v1/messages?') && request.url !== '/v1/messages') {
      return response.writeHead(404).end('{}');
    }
    const { messages, stream, tools } = JSON.parse(body);
    const last = messages.at(-1).content;
    const result = Array.isArray(last) ? last.find((block) => block.type === 'tool_result') : undefined;
    if (result) model.result = { isError: result.is_error === true, text: textOf(result.content) };
    const calls = !result && tools?.some((tool) => tool.name === 'Write');
    const block = calls
      ? { type: 'tool_use', id: 'toolu_1', name: 'Write', input }
      : { type: 'text', text: 'Done.' };
    answer(response, block, stream);
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  model.url = `http://127.0.0.1:${server.address().port}`;
  model.close = () => server.closeAllConnections() ?? server.close();
  return model;
}

function textOf(content) {
  return typeof content === 'string' ? content : content.map((block) => block.text ?? '').join('');
}

function answer(response, block, stream) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const stop_reason = block.type === 'tool_use' ? 'tool_use' : 'end_turn';
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'stand-in', stop_sequence: null, usage };
  if (!stream) {
    response.writeHead(200, { 'content-type': 'application/json' });
    return response.end(JSON.stringify({ ...message, content: [block], stop_reason }));
  }
  const [start, delta] =
    block.type === 'tool_use'
      ? [{ ...block, input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }]
      : [{ ...block, text: '' }, { type: 'text_delta', text: block.text }];
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: start },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ]) {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  response.end();
}
