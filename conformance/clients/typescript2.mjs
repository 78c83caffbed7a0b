// The story, told with the second TypeScript SDK, which speaks the later era.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { heard, place, tell } from './story.mjs';

const there = place();
const transport = there.url
  ? new StreamableHTTPClientTransport(there.url, { requestInit: there.requestInit })
  : new StdioClientTransport(there);
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
await tell({
  opened,
  tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: (name, asked) => client.callTool({ name, arguments: asked }),
  read: async (uri) => (await client.readResource({ uri })).contents[0].text,
  follow: async (uri) => {
    const news = new Promise((done) => {
      client.setNotificationHandler('notifications/resources/updated', (it) => it.params.uri === uri && done());
    });
    listening = await client.listen({ resourceSubscriptions: [uri] });
    return heard(news);
  },
});
await listening.close();
await client.close();
