// Starts a Kafka cluster whose controller a test can kill: in a container, or as a child process.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";

const USER = "admin";
const CONTROL = 9091; // the port of the control API in the container; those of the brokers follow

/**
 * A running cluster. `verdict` is "PASS", "FAIL", or another word for undecided, and `evidence` an
 * archive (tar, gzip); both are undefined until `stop` has returned.
 */
class Cluster {
  #url;
  #token;
  #password;
  #end;

  constructor(url, token, password, end) {
    this.#url = url;
    this.#token = token;
    this.#password = password;
    this.#end = end;
  }

  /** Executes an operation of the control API, such as `post("/node/kill", { id: 2 })`. */
  async post(path, fields = {}) {
    return (await this.#send(path, { method: "POST", body: JSON.stringify(fields) })).json();
  }

  /** Reads from the control API, such as `get("/status")`; `GET /openapi` lists the operations. */
  async get(path) {
    return (await this.#send(path, {})).json();
  }

  async #send(path, options) {
    const headers = { Authorization: `Bearer ${this.#token}` };
    const response = await fetch(this.#url + path, { ...options, headers });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return response;
  }

  /** Returns `host:port` of every broker. */
  async bootstrapServers() {
    return (await this.get("/client")).bootstrap_servers.split(",");
  }

  /** Returns the options of kafkajs, with the authority and the login if the cluster has SASL_SSL. */
  async clientConfig() {
    const client = await this.get("/client");
    const config = { brokers: client.bootstrap_servers.split(",") };
    if (client.certificate_authority) config.ssl = { ca: [client.certificate_authority] };
    if (this.#password) {
      config.sasl = { mechanism: "scram-sha-256", username: USER, password: this.#password };
    }
    return config;
  }

  /** Kills the controller's process (SIGKILL); returns the broker's id. */
  async killController() {
    return (await this.post("/controller/kill")).id;
  }

  /** Returns the controller that every broker that answers names, once it is not `otherThan`. */
  async waitForController(otherThan) {
    const fields = { other_than: otherThan, timeout_s: 60 };
    return (await this.post("/controller/wait", fields)).controller_id;
  }

  /** Adds a fault rule, such as `{ action: "close", api: "CreateTopics" }`; returns its name. */
  async addFault(rule) {
    return (await this.post("/faults/add", rule)).name;
  }

  /** Seals and judges the run, fetches its evidence, and stops the cluster. */
  async stop() {
    try {
      await this.post("/evidence/seal");
      this.verdict = (await this.post("/judge")).verdict;
      const evidence = await this.#send("/evidence", {});
      this.evidence = Buffer.from(await evidence.arrayBuffer());
    } finally {
      await this.#end();
    }
  }
}

/** Returns the variables of docs/container.md; clients connect to brokers at `host`. */
function environmentOf({ brokers = 3, properties = {}, saslSsl = false }, host) {
  const token = randomUUID();
  const password = saslSsl ? randomUUID() : undefined;
  const document = { properties };
  if (saslSsl) {
    document.listeners = { CLIENT: { protocol: "SASL_SSL", host } };
    document.users = { [USER]: { password, super: true } };
  }
  const environment = {
    BRIDGEHEAD_BROKERS: String(brokers),
    BRIDGEHEAD_CONTROL_TOKEN: token,
    BRIDGEHEAD_CLUSTER: JSON.stringify(document),
  };
  return { brokers, token, password, environment };
}

/**
 * Starts ZooKeeper and brokers in one container, on free ports of the Docker host.
 *
 * @param {{image?: string, brokers?: number, properties?: Record<string, string>, saslSsl?: boolean}} options
 */
export async function startContainer(options = {}) {
  const { GenericContainer, Wait } = await import("testcontainers");
  const { brokers, token, password, environment } = environmentOf(options, "0.0.0.0");
  const ports = Array.from({ length: brokers + 1 }, (_, broker) => CONTROL + broker);
  const container = await new GenericContainer(options.image ?? "bridgehead:latest")
    .withEnvironment({ ...environment, BRIDGEHEAD_ADVERTISED: "late" })
    .withExposedPorts(...ports)
    .withWaitStrategy(Wait.forHttp("/openapi", CONTROL))
    .start();
  const mapped = ports.map((port) => `${container.getHost()}:${container.getMappedPort(port)}`);
  const cluster = new Cluster(`http://${mapped[0]}`, token, password, () => container.stop());
  try {
    const addresses = Object.fromEntries(Object.entries(mapped).slice(1));
    await cluster.post("/advertise", { addresses });
  } catch (error) {
    await container.stop();
    throw error;
  }
  return cluster;
}

/**
 * Starts `bridgehead up` as a child process; it ends with this process, even after SIGKILL.
 *
 * @param {{command?: string, folder: string, brokers?: number, properties?: Record<string, string>, saslSsl?: boolean}} options
 *   `folder` gets the cluster's data and evidence.
 */
export async function startProcess(options) {
  const { token, password, environment } = environmentOf(options, "127.0.0.1");
  const words = ["up", "--json", "--ports", "auto", "--until-eof", "--control", "0"];
  words.push("--override", "bridgehead.faults.allow=true", "--data-dir", options.folder);
  const child = spawn(options.command ?? "bridgehead", words, { env: { ...process.env, ...environment } });
  const exited = once(child, "exit");
  const url = await new Promise((resolve, reject) => {
    let document = "";
    let log = "";
    child.stderr.on("data", (part) => (log += part));
    child.stdout.on("data", (part) => {
      document += part;
      if (document.includes("\n}")) resolve(JSON.parse(document).control_url);
    });
    child.on("error", reject);
    child.on("exit", () => reject(new Error(log.trim())));
  });
  return new Cluster(url, token, password, async () => {
    child.stdin.end();
    await exited;
  });
}
