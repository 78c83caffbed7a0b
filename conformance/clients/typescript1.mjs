// Runs the story with version 1 of the TypeScript SDK.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { isResolved, run, target } from './story.mjs';

const options = target();
const transport = options.url
  ? new StreamableHTTPClientTransport(options.url, { requestInit: options.requestInit })
  : new StdioClientTransport(options);
const capabilities = { elicitation: { url: {} } };
const client = new Client({ name: 'story', version: '1' }, { capabilities });
const opened = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  opened.push(params.url);
  return { action: 'accept' };
});
await client.connect(transport);
await run({
  opened,
  tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: (name, input) => client.callTool({ name, arguments: input }),
  read: async (uri) => (await client.readResource({ uri })).contents[0].text,
  follow: async (uri) => {
    const updated = new Promise((done) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, (it) => it.params.uri === uri && done());
    });
    await client.subscribeResource({ uri });
    return isResolved(updated);
  },
});
await client.close();
