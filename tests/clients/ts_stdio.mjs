// Talks to a program on its standard input and output with the official TypeScript client.
//
//   TOOLGATE_KEY=... node ts_stdio.mjs PROGRAM ARGUMENT...
//
// Prints one JSON object: {"default": Seen, "auto": Seen}, or {"error": ...} for a mode whose connection failed.

import { argv, env, exit, stdout } from 'node:process';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [command, ...args] = argv.slice(2);
const MODES = { default: {}, auto: { versionNegotiation: { mode: 'auto' } } };
const JANE = { name: 'get_document', arguments: { collection: 'users', document_id: 'abc123' } };

async function look(options) {
  const client = new Client({ name: 'toolgate-ts-stdio', version: '1.0.0' }, options);
  const transport = new StdioClientTransport({ command, args, env: { ...env } });
  try {
    await client.connect(transport);
    const progress = [];
    const { tools } = await client.listTools();
    const jane = await client.callTool(JANE);
    const failure = await client.callTool({ ...JANE, arguments: { ...JANE.arguments, document_id: 'nobody' } });
    const { resources } = await client.listResources();
    const read = await client.readResource({ uri: 'cybereco://schema/users' });
    const prompt = await client.getPrompt({ name: 'design_query', arguments: { collection: 'users', goal: 'ü ☃' } });
    await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, { onprogress: (one) => progress.push(one.progress) });
    const many = await Promise.all(Array.from({ length: 20 }, () => client.callTool(JANE)));
    const unknown = await client.callTool({ name: 'no_such_tool', arguments: {} }).catch((error) => ({ code: error.code }));
    const stop = new AbortController();
    const held = client.callTool({ name: 'hold', arguments: {} }, { signal: stop.signal }).catch(() => 'aborted');
    setTimeout(() => stop.abort(), 1000);
    return {
      version: client.getNegotiatedProtocolVersion(),
      tools: tools.map((tool) => tool.name),
      jane: jane.structuredContent,
      failure,
      resources: resources.map((one) => one.uri),
      read: read.contents[0].text,
      prompt: prompt.messages[0].content.text,
      progress,
      many: many.map((one) => one.structuredContent.displayName),
      unknown: unknown.code,
      held: await held
    };
  } catch (error) {
    return { error: String(error?.message ?? error) };
  } finally {
    await client.close().catch(() => {});
  }
}

const seen = {};
for (const [mode, options] of Object.entries(MODES)) seen[mode] = await look(options);
stdout.write(JSON.stringify(seen) + '\n', () => exit(0));
