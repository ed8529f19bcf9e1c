// An OpenID Connect provider with its own login and consent pages, on a free port of loopback.
// Prints {"url": …} when it listens; ends when its standard input does.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const redirect_uris = ["https://gate.example/sign-in/back"];
const server = createServer();

server.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(url, {
    clients: [
      { client_id: "confidential app", client_secret: "a secret: 100% + more", redirect_uris },
      { client_id: "public", token_endpoint_auth_method: "none", redirect_uris },
      // A native client may come back to any port of loopback (RFC 8252): ours is picked later.
      {
        client_id: "toolgate",
        client_secret: "only for tests",
        application_type: "native",
        redirect_uris: ["http://127.0.0.1/backend-manager/mcp/callback"],
      },
    ],
    pkce: { required: () => true },
    cookies: { keys: ["only for tests"] },
    features: { devInteractions: { enabled: true } },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: async () => ({
        sub: id,
        email: `${id}@example.com`,
        email_verified: id !== "unverified",
        name: id.toUpperCase(),
      }),
    }),
  });
  server.on("request", provider.callback());
  console.log(JSON.stringify({ url }));
});
process.stdin.on("end", () => process.exit()).resume();
