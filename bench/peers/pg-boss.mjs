// Executes no-op jobs with pg-boss, and prints how many per second.
//
//   node pg-boss.mjs URL JOBS        run it where its package is installed
//
// Jobs are fetched and completed in concurrent batches. Acknowledged changes are durable.

import { createRequire } from "node:module";

const packages = createRequire(`${process.cwd()}/`);
const PgBoss = packages("pg-boss");

const ADDED_AT_ONCE = 1000;
const FETCHED_AT_ONCE = 500;
const FETCHERS = 2;
const QUEUE = "noop";
const PAYLOAD = { text: "x".repeat(116) };

const [url, count] = process.argv.slice(2);
const jobs = Number(count);
// The end of stdin: the parent process is gone.
process.stdin.on("end", () => process.exit(1)).resume();

const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
boss.on("error", (error) => console.error(error.message));
await boss.start();
await boss.createQueue(QUEUE);
const adding = performance.now();
for (let first = 0; first < jobs; first += ADDED_AT_ONCE) {
  const length = Math.min(ADDED_AT_ONCE, jobs - first);
  await boss.insert(Array.from({ length }, () => ({ name: QUEUE, data: PAYLOAD })));
}
const added = performance.now();

let executed = 0;
const work = async () => {
  while (executed < jobs) {
    const batch = (await boss.fetch(QUEUE, { batchSize: FETCHED_AT_ONCE })) ?? [];
    if (batch.length === 0) {
      return;
    }
    await boss.complete(QUEUE, batch.map((job) => job.id));
    executed += batch.length;
  }
};
const executing = performance.now();
await Promise.all(Array.from({ length: FETCHERS }, work));
const done = performance.now();
await boss.stop({ graceful: false });
const rate = (what, from, to) => ((what * 1000) / (to - from)).toFixed(0);
console.log(`added_per_s=${rate(jobs, adding, added)} executed_per_s=${rate(executed, executing, done)}`);
process.exit(0);
