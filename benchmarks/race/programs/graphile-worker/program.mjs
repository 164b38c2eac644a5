// The race's program for graphile-worker: `prepare`, `load` or `work`.
import fs from "node:fs";
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";

const CALL = 2000;
const PAYLOAD_BYTES = 256;
const FLUSH_MS = 200;
const STAMPS = process.env.RACE_STAMPS;
const shown = new Set(["error", "warning"]);
const logger = new Logger(() => (level, message) => {
  if (shown.has(level)) console.error(level, message);
});
const options = { connectionString: process.env.RACE_URL, logger };

function payload(due) {
  const written = { due, pad: "" };
  written.pad = "x".repeat(PAYLOAD_BYTES - JSON.stringify(written).length);
  return written;
}

async function load() {
  const dues = fs.readFileSync(0, "utf8").trim().split("\n").map(Number);
  const utils = await makeWorkerUtils(options);
  for (let at = 0; at < dues.length; at += CALL) {
    const some = dues.slice(at, at + CALL);
    await utils.addJobs(
      some.map((due) => ({ identifier: "bench", payload: payload(due), runAt: new Date(due * 1000) })),
    );
  }
  await utils.release();
}

async function work() {
  let stamps = [];
  const flush = () => {
    if (stamps.length === 0) return;
    const written = Float64Array.from(stamps);
    stamps = [];
    fs.appendFileSync(`${STAMPS}.${process.pid}`, Buffer.from(written.buffer));
  };
  const noop = async () => {};
  const stamp = async ({ due }) => {
    stamps.push(due, (performance.timeOrigin + performance.now()) / 1000);
  };
  if (STAMPS) setInterval(flush, FLUSH_MS);
  const runner = await run({
    ...options,
    noHandleSignals: true,
    taskList: { bench: STAMPS ? stamp : noop },
    preset: {
      worker: {
        concurrentJobs: 24,
        maxPoolSize: 25,
        pollInterval: 50,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  process.on("SIGTERM", async () => {
    await runner.stop();
    process.exit(0);
  });
}

const commands = { prepare: () => runMigrations(options), load, work };
const name = process.argv[2];
await commands[name]();
if (name !== "work") process.exit(0);
