// The story, told with the first TypeScript SDK.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { heard, place, tell } from './story.mjs';

const there = place();
const transport = there.url
  ? new StreamableHTTPClientTransport(there.url, { requestInit: there.requestInit })
  : new StdioClientTransport(there);
const capabilities = { elicitation: { url: {} } };
const client = new Client({ name: 'story', version: '1' }, { capabilities });
const opened = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  opened.push(params.url);
  return { action: 'accept' };
});
await client.connect(transport);
await tell({
  opened,
  tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: (name, asked) => client.callTool({ name, arguments: asked }),
  read: async (uri) => (await client.readResource({ uri })).contents[0].text,
  follow: async (uri) => {
    const news = new Promise((done) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, (it) => it.params.uri === uri && done());
    });
    await client.subscribeResource({ uri });
    return heard(news);
  },
});
await client.close();
