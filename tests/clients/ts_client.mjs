// Talks to a server with the official TypeScript client, once in its default mode and once with version negotiation.
//
//   TOOLGATE_KEY=... node ts_client.mjs URL CALLS.json
//
// HEADERS in the environment is a JSON object of further headers.
// CALLS.json maps a tool name to the arguments of one call: {"get_document": {"collection": "users", ...}}.
// Prints one JSON object: {"default": Seen, "auto": Seen} with
//   Seen = {"version", "era", "server", "tools": [name], "failure": result, "results": {name: result | {"error": {code, message}}}}
// or {"error": {...}} when the connection itself fails. The exit code is 0 whenever that object was printed.

import { readFile } from 'node:fs/promises';
import { argv, env, exit, stdout } from 'node:process';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, callsPath] = argv.slice(2);
if (!url || !callsPath) {
  console.error('usage: TOOLGATE_KEY=... node ts_client.mjs URL CALLS.json');
  exit(2);
}
const calls = JSON.parse(await readFile(callsPath, 'utf8'));

const MODES = { default: {}, auto: { versionNegotiation: { mode: 'auto' } } };

async function look(options) {
  const client = new Client({ name: 'toolgate-ts-client', version: '1.0.0' }, options);
  const headers = JSON.parse(env.HEADERS ?? '{}');
  if (env.TOOLGATE_KEY) headers.Authorization = `Bearer ${env.TOOLGATE_KEY}`;
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  try {
    await client.connect(transport);
    const tools = await listEveryPage(client);
    const results = {};
    for (const [name, args] of Object.entries(calls)) {
      results[name] = await client.callTool({ name, arguments: args }).catch(asError);
    }
    const nobody = { collection: 'users', document_id: 'nobody' };
    const failure = await client.callTool({ name: 'get_document', arguments: nobody }).catch(asError);
    return {
      failure,
      version: client.getNegotiatedProtocolVersion(),
      era: client.getProtocolEra(),
      server: client.getServerVersion(),
      tools: tools.map((tool) => tool.name),
      results
    };
  } catch (error) {
    return asError(error);
  } finally {
    if (transport.sessionId) await transport.terminateSession().catch(() => {});
    await client.close().catch(() => {});
  }
}

// Without a cursor the client gathers all pages by itself; it also remembers each output schema and checks results by it.
async function listEveryPage(client) {
  const { tools } = await client.listTools();
  return tools;
}

function asError(error) {
  return { error: { name: error?.name, code: error?.code, message: String(error?.message ?? error), data: error?.data } };
}

const seen = {};
for (const [mode, options] of Object.entries(MODES)) seen[mode] = await look(options);
stdout.write(JSON.stringify(seen, null, 2) + '\n', () => exit(0));
