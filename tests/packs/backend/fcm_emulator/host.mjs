// Serves the emulator on loopback: `node host.mjs PORT`.
import http from "node:http";
import { createServer } from "@emulators/core";
import { firebasePlugin } from "@pleaseai/emulate-firebase";

const port = Number(process.argv[2]);
const baseUrl = `http://127.0.0.1:${port}`;
const { app } = createServer(firebasePlugin, { port, baseUrl, tokens: {} });

async function answer(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = request.method === "GET" ? undefined : Buffer.concat(chunks);
  const asked = new Request(baseUrl + request.url, {
    method: request.method,
    headers: request.headers,
    body,
  });
  const answered = await app.fetch(asked);
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  response.end(Buffer.from(await answered.arrayBuffer()));
}

http.createServer(answer).listen(port, "127.0.0.1");
