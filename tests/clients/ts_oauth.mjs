// The official TypeScript client signs a person in, calls, refreshes, and gives its tokens back.
//
//   TOOLGATE_KEY=... node ts_oauth.mjs URL
//
// The key is what the person types on the sign-in page. Prints one JSON object:
// {"tools": [name], "signIns": n, "tokens": n, "afterRefresh": bool, "revoked": status, "again": n}

import { argv, env, stdout } from 'node:process';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const url = new URL(argv[2]);
const redirect = 'http://127.0.0.1:4242/callback';
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

// What a browser and a person do: two pages, two forms, one cookie.
async function visit(address) {
  kept.signIns += 1;
  const begun = await fetch(address, { redirect: 'manual' });
  const cookie = begun.headers.get('set-cookie').split(';')[0];
  const page = await fetch(begun.headers.get('location'), { headers: { cookie } });
  const signedIn = await send(page, cookie, { key: env.TOOLGATE_KEY });
  const consent = await fetch(signedIn.headers.get('location'), { headers: { cookie } });
  const allowed = await send(consent, cookie, { decision: 'allow' });
  return new URL(allowed.headers.get('location')).searchParams;
}

async function send(page, cookie, given) {
  const text = await page.text();
  const form = new URLSearchParams(given);
  for (const [, name, value] of text.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)) form.set(name, value);
  const action = new URL(/action="([^"]+)"/.exec(text)[1], page.url);
  return fetch(action, { method: 'POST', body: form, headers: { cookie }, redirect: 'manual' });
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
