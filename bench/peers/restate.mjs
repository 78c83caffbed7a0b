// Sends delayed calls through Restate, and prints how late they reach their handler.
//
//   node restate.mjs DIR TIMERS SECONDS        run it where its packages are installed
//
// Starts a server with its data in DIR, on loopback only, with default durability: acknowledged calls are
// flushed. The timers are spread evenly over the seconds.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Agent, request } from "node:http";
import { createServer } from "node:http2";

// The SDK needs it, and Node 20 lacks it.
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};
// Logging every call would be measured, too.
process.env.RESTATE_LOGGING = "ERROR";
const packages = createRequire(`${process.cwd()}/`);
const restate = packages("@restatedev/restate-sdk");

const HOST = "127.0.0.1";
const PORTS = { ingress: 28080, admin: 29070, fabric: 25122, handler: 29080 };
const CONNECTIONS = 64;
const STARTS_MS_MAX = 60_000;
// The wait for late calls after the last timer is due.
const LATE_MS_MAX = 60_000;

const [dir, count, span] = process.argv.slice(2);
const [timers, seconds] = [Number(count), Number(span)];

const program = packages.resolve(
  `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
);
const server = spawn(program, ["--no-logo", "--base-dir", dir, "--node-name", "bench"], {
  stdio: "ignore",
  env: {
    PATH: process.env.PATH,
    DO_NOT_TRACK: "1",
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_LISTEN_MODE: "tcp",
    RESTATE_BIND_IP: HOST,
    RESTATE_BIND_PORT: String(PORTS.fabric),
    RESTATE_ADVERTISED_HOST: HOST,
    RESTATE_ADMIN__BIND_PORT: String(PORTS.admin),
    RESTATE_INGRESS__BIND_PORT: String(PORTS.ingress),
    RESTATE_LOG_FILTER: "error",
  },
});
process.on("exit", () => server.kill("SIGKILL"));
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => process.exit(1));
}
// The end of stdin: the parent process is gone.
process.stdin.on("end", () => process.exit(1)).resume();
server.on("exit", (code) => {
  console.error(`the server ended: ${code}`);
  process.exit(1);
});

const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
const ask = (method, port, path, body) =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
    const asked = request({ host: HOST, port, path, method, agent, headers }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode));
    });
    asked.on("error", reject).end(text);
  });
const comesUp = async (method, port, path, body) => {
  const started = performance.now();
  while (performance.now() - started < STARTS_MS_MAX) {
    const status = await ask(method, port, path, body).catch(() => 0);
    if (200 <= status && status < 300) {
      return;
    }
    await sleep(100);
  }
  throw new Error(`${path} did not come up`);
};

const late = [];
const seen = new Set();
let doubled = 0;
const timer = restate.service({
  name: "timer",
  handlers: {
    fire: async (_, { at, number }) => {
      late.push(Date.now() - at);
      doubled += seen.has(number) ? 1 : 0;
      seen.add(number);
    },
  },
});
const handler = createServer(restate.createEndpointHandler({ services: [timer] }));
await new Promise((listens) => handler.listen(PORTS.handler, HOST, listens));
await comesUp("GET", PORTS.admin, "/health");
await comesUp("POST", PORTS.admin, "/deployments", { uri: `http://${HOST}:${PORTS.handler}` });
await comesUp("GET", PORTS.ingress, "/restate/health");

// All are sent before the first is due, like schedules that are added before they fire.
const sending = performance.now();
const lead = Math.max(10_000, timers * 5);
const first = Date.now() + lead;
let next = 0;
const send = async () => {
  while (next < timers) {
    const number = next++;
    const at = first + Math.floor((number * seconds * 1000) / timers);
    const delay = Math.max(0, at - Date.now());
    const status = await ask("POST", PORTS.ingress, `/timer/fire/send?delay=${delay}ms`, { at, number });
    if (status < 200 || 300 <= status) {
      throw new Error(`a send was refused: ${status}`);
    }
  }
};
await Promise.all(Array.from({ length: CONNECTIONS }, send));
const sent = performance.now();
if (first < Date.now()) {
  throw new Error("sending took longer than was allowed for");
}

const end = first + seconds * 1000 + LATE_MS_MAX;
while (seen.size < timers && Date.now() < end) {
  await sleep(50);
}
late.sort((a, b) => a - b);
const part = (share) => late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? NaN;
console.log(
  `sent_per_s=${((timers * 1000) / (sent - sending)).toFixed(0)} fired=${late.length} ` +
    `doubled=${doubled} p50_ms=${part(0.5)} p99_ms=${part(0.99)} max_ms=${part(1)}`,
);
process.exit(0);
