// Executes no-op jobs with graphile-worker, and prints how many per second.
//
//   node graphile-worker.mjs URL JOBS        run it where its package is installed
//
// Tuned as its documentation advises for many short jobs: a local queue, completions in batches. Acknowledged
// changes are durable.

import { createRequire } from "node:module";

const packages = createRequire(`${process.cwd()}/`);
const { makeWorkerUtils, run, Logger } = packages("graphile-worker");

const CONCURRENT = 24;
const LOCAL_QUEUE = 500;
const ADDED_AT_ONCE = 2000;
const PAYLOAD = { text: "x".repeat(116) };

const [url, count] = process.argv.slice(2);
const jobs = Number(count);
// The end of stdin: the parent process is gone.
process.stdin.on("end", () => process.exit(1)).resume();

const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString: url, logger });
await utils.migrate();
const adding = performance.now();
for (let first = 0; first < jobs; first += ADDED_AT_ONCE) {
  const length = Math.min(ADDED_AT_ONCE, jobs - first);
  await utils.addJobs(Array.from({ length }, () => ({ identifier: "noop", payload: PAYLOAD })));
}
const added = performance.now();

let executed = 0;
const taskList = { noop: async () => void (executed += 1) };
const left = () => utils.withPgClient(async (client) => {
  const { rows } = await client.query("SELECT count(*)::int AS left FROM graphile_worker._private_jobs");
  return rows[0].left;
});
const worker = {
  connectionString: url,
  concurrentJobs: CONCURRENT,
  maxPoolSize: CONCURRENT,
  localQueue: { size: LOCAL_QUEUE },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
  pollInterval: 1000,
  logger,
};
const executing = performance.now();
const runner = await run({ preset: { worker }, taskList, noHandleSignals: true });
// A completed job is deleted; it counts when the deletion is on the disk.
while (executed < jobs || 0 < (await left())) {
  await new Promise((wake) => setTimeout(wake, 5));
}
const done = performance.now();
await runner.stop();
await utils.release();
const rate = (from, to) => ((jobs * 1000) / (to - from)).toFixed(0);
console.log(`added_per_s=${rate(adding, added)} executed_per_s=${rate(executing, done)}`);
process.exit(0);
