// Runs the story with version 2 of the TypeScript SDK, which speaks the later era.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { isResolved, run, target } from './story.mjs';

const options = target();
const transport = options.url
  ? new StreamableHTTPClientTransport(options.url, { requestInit: options.requestInit })
  : new StdioClientTransport(options);
const versionNegotiation = { mode: { pin: '2026-07-28' } };
const capabilities = { elicitation: { url: {} } };
const client = new Client({ name: 'story', version: '1' }, { versionNegotiation, capabilities });
const opened = [];
client.setRequestHandler('elicitation/create', ({ params }) => {
  opened.push(params.url);
  return { action: 'accept' };
});
await client.connect(transport);
let listening;
await run({
  opened,
  tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: (name, input) => client.callTool({ name, arguments: input }),
  read: async (uri) => (await client.readResource({ uri })).contents[0].text,
  follow: async (uri) => {
    const updated = new Promise((done) => {
      client.setNotificationHandler('notifications/resources/updated', (it) => it.params.uri === uri && done());
    });
    listening = await client.listen({ resourceSubscriptions: [uri] });
    return isResolved(updated);
  },
});
await listening.close();
await client.close();
