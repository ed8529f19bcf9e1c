// The official TypeScript client signs a person in, calls, refreshes, and gives its tokens back.
//
//   TOOLGATE_TYPED='{"key": "…"}' node ts_oauth.mjs URL
//
// TOOLGATE_TYPED is what the person types, by the name of the field. Prints one JSON object:
// {"tools": [name], "signIns": n, "tokens": n, "afterRefresh": bool, "revoked": status, "again": n}

import { argv, env, stdout } from 'node:process';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const url = new URL(argv[2]);
const redirect = 'http://127.0.0.1:4242/callback';
const typed = { ...JSON.parse(env.TOOLGATE_TYPED), decision: 'allow' };
const kept = { signIns: 0, tokens: 0 };

const provider = {
  redirectUrl: redirect,
  clientMetadata: { client_name: 'TypeScript client', redirect_uris: [redirect] },
  state: () => 'a state',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.pair,
  saveTokens: (pair) => { kept.pair = pair; kept.tokens += 1; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (found) => { kept.found = found; },
  discoveryState: () => kept.found,
  invalidateCredentials: (what) => {
    if (what === 'all' || what === 'tokens') kept.pair = undefined;
    if (what === 'all' || what === 'client') kept.client = undefined;
  },
  redirectToAuthorization: async (address) => { kept.back = await visit(address); },
};

// What a browser and a person do: go where pages lead, and fill in what they ask for.
async function visit(address) {
  kept.signIns += 1;
  const jar = new Map();
  let page = await ask(jar, address);
  for (let pages = 0; pages < 20; pages += 1) {
    const location = page.headers.get('location');
    if (location?.startsWith(redirect)) return new URL(location).searchParams;
    page = location ? await ask(jar, new URL(location, page.url)) : await send(jar, page);
  }
  throw new Error('the pages have no end');
}

async function ask(jar, address, more = {}) {
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const page = await fetch(address, { ...more, headers: { cookie }, redirect: 'manual' });
  for (const one of page.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(one);
    if (value) jar.set(name, value);
    else jar.delete(name);
  }
  return page;
}

async function send(jar, page) {
  const text = await page.text();
  const [, action, fields] = /<form[^>]* action="([^"]+)"[^>]*>(.*?)<\/form>/s.exec(text) ?? [];
  if (!action) throw new Error(`${page.status}: ${text}`);
  const form = new URLSearchParams();
  for (const [, name, value] of fields.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)) form.set(name, value);
  for (const [name, value] of Object.entries(typed)) if (fields.includes(`name="${name}"`)) form.set(name, value);
  return ask(jar, new URL(action, page.url), { method: 'POST', body: form });
}

async function connected() {
  for (;;) {
    const client = new Client({ name: 'toolgate-ts-oauth', version: '1.0.0' });
    const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || kept.signIns > 3) throw error;
      await transport.finishAuth(kept.back);
    }
  }
}

const first = await connected();
const tools = (await first.listTools()).tools.map((tool) => tool.name);
await first.close();
const { signIns, tokens } = kept;

// An access token that is over: the client refreshes, and the person notices nothing.
kept.pair = { ...kept.pair, access_token: `tga_${'0'.repeat(32)}_${'0'.repeat(64)}` };
const second = await connected();
const afterRefresh = kept.signIns === signIns && kept.tokens > tokens;
await second.close();

const body = new URLSearchParams({ token: kept.pair.refresh_token, client_id: kept.client.client_id });
const revoked = (await fetch(new URL('/revoke', url), { method: 'POST', body })).status;
kept.pair = { ...kept.pair, access_token: `tga_${'0'.repeat(32)}_${'0'.repeat(64)}` };
await (await connected()).close();

stdout.write(JSON.stringify({ tools, signIns, tokens, afterRefresh, revoked, again: kept.signIns }));
