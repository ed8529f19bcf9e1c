// Talks to a server with the official TypeScript SDK 1.x.
//
//   TOOLGATE_KEY=... node ts_sdk_1.mjs URL
//   TOOLGATE_KEY=... node ts_sdk_1.mjs PROGRAM ARGUMENT...      on standard input and output
//
// Prints one JSON object: {"tools": [name], "good": result, "failure": result, "unknown": message}.

import { argv, env, exit, stdout } from 'node:process';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [target, ...args] = argv.slice(2);

function transport() {
  if (!target.startsWith('http')) return new StdioClientTransport({ command: target, args, env: { ...env } });
  const headers = { Authorization: `Bearer ${env.TOOLGATE_KEY}` };
  return new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers } });
}

const client = new Client({ name: 'toolgate-ts-sdk-1', version: '1.0.0' });
await client.connect(transport());
// The client remembers each output schema from the list and checks results by it.
const { tools } = await client.listTools();
const get = (id) => client.callTool({ name: 'get_document', arguments: { collection: 'users', document_id: id } });
const seen = {
  tools: tools.map((tool) => tool.name),
  good: await get('abc123'),
  failure: await get('nobody').catch((error) => ({ thrown: String(error?.message ?? error) })),
  unknown: await client.callTool({ name: 'no_such_tool', arguments: {} }).then(
    (result) => result.content[0].text,
    (error) => String(error?.message ?? error)
  )
};
await client.close();
stdout.write(JSON.stringify(seen) + '\n', () => exit(0));
