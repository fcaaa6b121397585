import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { startContainer } from "bridgehead-testcontainers";
import kafkajs from "kafkajs";

// kafkajs does not repeat createTopics after a failed connection.
async function create(admin, topic) {
  for (;;) {
    try {
      return await admin.createTopics({ topics: [{ topic, numPartitions: 3, replicationFactor: 2 }] });
    } catch (error) {
      if (!error.name.startsWith("KafkaJSConnection")) throw error;
      await setTimeout(200);
    }
  }
}

test("a topic is created after the controller died", async () => {
  const kafka = await startContainer({ properties: { "zookeeper.session.timeout.ms": "2000" } });
  try {
    const retry = { retries: 20 };
    const admin = new kafkajs.Kafka({ ...(await kafka.clientConfig()), retry, logLevel: 0 }).admin();
    await admin.connect();
    await kafka.waitForController(await kafka.killController());
    assert.equal(await create(admin, "orders"), true);
    await admin.disconnect();
  } finally {
    await kafka.stop();
  }
  assert.equal(kafka.verdict, "PASS"); // No acknowledged write was lost or executed twice.
});
