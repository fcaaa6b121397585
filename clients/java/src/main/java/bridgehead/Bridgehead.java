package bridgehead;

import java.util.HashMap;
import java.util.Map;

/** A cluster in a container ({@link BridgeheadContainer}) or in a child process ({@link BridgeheadProcess}). */
public interface Bridgehead<T> {
  /** The control API, for every operation that has no method here. */
  Control control();

  @SuppressWarnings("unchecked")
  private T me() {
    return (T) this;
  }

  default T withBrokers(int brokers) {
    control().brokers = brokers;
    return me();
  }

  /** Sets one of Kafka's server properties, or one of ours, for every broker. */
  default T withProperty(String name, String value) {
    control().properties.put(name, value);
    return me();
  }

  /** Clients must log in over TLS; {@link #clientConfig} has the authority and the login. */
  default T withSaslSsl() {
    control().password = control().token;
    return me();
  }

  /** {@code host:port,...} of every broker. */
  default String bootstrapServers() {
    return clientConfig().get("bootstrap.servers").toString();
  }

  /** Configuration for a Kafka client, with the authority and the login if the cluster has SASL_SSL. */
  default Map<String, Object> clientConfig() {
    var client = control().get("/client");
    var config = new HashMap<String, Object>(Map.of("bootstrap.servers", client.get("bootstrap_servers").getAsString(),
        "security.protocol", client.get("security_protocol").getAsString()));
    if (!client.get("certificate_authority").isJsonNull()) {
      config.put("ssl.truststore.type", "PEM");
      config.put("ssl.truststore.certificates", client.get("certificate_authority").getAsString());
    }
    if (control().password != null) {
      config.put("sasl.mechanism", "SCRAM-SHA-256");
      config.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required username="
          + Control.USER + " password=\"" + control().password + "\";");
    }
    return config;
  }

  /** Kills the controller's process (SIGKILL); returns the broker's id. */
  default int killController() {
    return control().post("/controller/kill", Map.of()).get("id").getAsInt();
  }

  /** Waits until every broker that answers names the same controller, not {@code otherThan}; returns its id. */
  default int waitForController(int otherThan) {
    var fields = Map.of("other_than", otherThan, "timeout_s", 60);
    return control().post("/controller/wait", fields).get("controller_id").getAsInt();
  }

  /** Adds a fault rule, such as {@code Map.of("action", "close", "api", "CreateTopics")}; returns its name. */
  default String addFault(Map<String, ?> rule) {
    return control().post("/faults/add", rule).get("name").getAsString();
  }

  /** PASS, FAIL, or another word for undecided. Null until the cluster has stopped. */
  default String verdict() {
    return control().verdict;
  }
}
