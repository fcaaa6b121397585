// kafkajs works on while a controller dies; the judge finds no error.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import kafkajs from "kafkajs";
import { startContainer, startProcess } from "./index.js";

const noDocker = spawnSync("docker", ["version"]).status === 0 ? false : "NOT TESTED: no Docker engine answers";

// Sessions end after 2 s; a response to a write is sent when every broker has applied the write.
const properties = { "zookeeper.session.timeout.ms": "2000", "bridgehead.metadata.blocking": "cluster" };

// createTopics of kafkajs repeats a request neither after NOT_CONTROLLER nor after a failed connection.
async function create(admin, topic, replicationFactor) {
  for (;;) {
    try {
      return await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor }] });
    } catch (error) {
      const isRejected = error.errors?.every((problem) => problem.type === "NOT_CONTROLLER");
      if (!isRejected && !error.name.startsWith("KafkaJSConnection")) throw error;
      await setTimeout(200);
    }
  }
}

async function failOver(cluster) {
  const { Kafka, logLevel } = kafkajs;
  const config = await cluster.clientConfig();
  const admin = new Kafka({ ...config, logLevel: logLevel.NOTHING, retry: { retries: 20 } }).admin();
  await admin.connect();
  const rule = await cluster.addFault({ action: "error", error: "NOT_CONTROLLER", api: "CreateTopics" });
  assert.equal(await create(admin, "before", 3), true);
  const { rules } = await cluster.get("/faults/list");
  assert.deepEqual(rules.map((listed) => listed.name), [rule, rule, rule]);
  assert.ok(rules.reduce((hits, listed) => hits + listed.hits, 0) >= 1, "the client got no NOT_CONTROLLER");
  const killed = await cluster.killController();
  assert.notEqual(await cluster.waitForController(killed), killed);
  assert.equal(await create(admin, "after", 2), true);
  assert.deepEqual((await admin.listTopics()).sort(), ["after", "before"]);
  await admin.disconnect();
}

async function judged(cluster) {
  try {
    await failOver(cluster);
  } finally {
    await cluster.stop();
  }
  assert.equal(cluster.verdict, "PASS");
  assert.ok(cluster.evidence.length > 1000);
}

test("in a container, through mapped ports", { skip: noDocker }, async () => {
  await judged(await startContainer({ properties }));
});

test("in a container, with logins over TLS", { skip: noDocker }, async () => {
  await judged(await startContainer({ properties, saslSsl: true }));
});

test("as a child process", async () => {
  const parent = await mkdtemp(path.join(tmpdir(), "bridgehead-"));
  const command = process.env.BRIDGEHEAD_COMMAND ?? "bridgehead";
  try {
    await judged(await startProcess({ command, folder: path.join(parent, "cluster"), properties }));
  } finally {
    await rm(parent, { recursive: true });
  }
});
